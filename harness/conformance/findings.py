"""Which checks there are, in their order, and what they find.

No check is imported here: the command only lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "fail", "not applicable", "not run"]

#: Estimators, which `fit` trains, and feasibility methods on columns, with their `solve`.
Sort = Literal["estimator", "method"]

#: Check -> the module of its function, which takes the subject and raises MendError or
#: NotApplicableError.
CHECKS: dict[str, dict[str, str]] = {
    "estimator": {
        "constructor": "subject",
        "traits": "estimators",
        "warm-up": "estimators",
        "fit": "estimators",
        "bad parameters": "estimators",
        "determinism": "estimators",
        "refitting": "estimators",
        "side effects": "estimators",
        "counters": "measurements",
        "scores": "estimators",
        "objective": "measurements",
        "certificate": "measurements",
        "monitor": "measurements",
        "checkpoints": "measurements",
        "stopping": "measurements",
        "limits": "measurements",
        "sparse data": "estimators",
        "float32 data": "estimators",
        "kernel function": "estimators",
        "weights": "estimators",
        "several classes": "estimators",
        "saving": "estimators",
        # The longest, and what it needs is compiled by then.
        "scikit-learn": "estimators",
    },
    "method": {
        "constructor": "subject",
        "solve": "methods",
        "certificates": "methods",
        "bad data": "methods",
        "bad parameters": "methods",
        "determinism": "methods",
        "counters": "methods",
        "limits": "methods",
        "side effects": "methods",
    },
}
#: Checks whose failure leaves nothing to see for the later ones.
GATES = ("constructor", "warm-up", "fit", "solve")


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes
    ----------
    check : str
        Its name.
    verdict : {"pass", "fail", "not applicable", "not run"}
    detail : str
        One line: what to mend, or why the check does not apply or was not run.
    """

    check: str
    verdict: Verdict
    detail: str = ""


class MendError(Exception):
    """Something to be mended; the message is one line that says what and how."""


class NotApplicableError(Exception):
    """The check has nothing to look at; the message says why."""
