"""Which checks there are, in their order, what they find, and how that travels from the worker.

No check is imported here: the command only lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..execution.jobs import Send, Work, described

Verdict = Literal["pass", "fail", "not applicable", "not run"]


#: Estimators, which `fit` trains, and feasibility methods on columns, with their `solve`.
Sort = Literal["estimator", "method"]


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes
    ----------
    name : str
    function : str
        "module.function" in this package; it takes the subject and raises MendError or
        NotApplicableError.
    gate : bool
        Whether a failure leaves nothing to see for the later checks.
    fits : bool
        Whether it fits an estimator, which is compiled before.
    """

    name: str
    function: str
    gate: bool = False
    fits: bool = True


CHECKS: dict[str, tuple[Check, ...]] = {
    "estimator": (
        Check("constructor", "estimators.constructor", gate=True, fits=False),
        Check("traits", "estimators.traits", fits=False),
        Check("warm-up", "estimators.warm_up", gate=True),
        Check("fit", "estimators.fit", gate=True),
        Check("bad data", "estimators.bad_data"),
        Check("bad parameters", "estimators.bad_parameters"),
        Check("determinism", "estimators.determinism"),
        Check("refitting", "estimators.refitting"),
        Check("side effects", "estimators.side_effects"),
        Check("counters", "measurements.counters"),
        Check("scores", "estimators.scores"),
        Check("objective", "measurements.objective"),
        Check("certificate", "measurements.certificate"),
        Check("monitor", "measurements.monitor"),
        Check("checkpoints", "measurements.checkpoints"),
        Check("stopping", "measurements.stopping"),
        Check("limits", "measurements.limits"),
        Check("sparse data", "estimators.sparse_data"),
        Check("float32 data", "estimators.float32_data"),
        Check("kernel function", "estimators.kernel_function"),
        Check("labels", "estimators.labels"),
        Check("weights", "estimators.weights"),
        Check("several classes", "estimators.several_classes"),
        Check("row order", "estimators.row_order"),
        Check("saving", "estimators.saving"),
    ),
    # Feasibility methods on columns.
    "method": (
        Check("constructor", "methods.constructor", gate=True),
        Check("solve", "methods.solve", gate=True),
        Check("certificates", "methods.certificates"),
        Check("bad data", "methods.bad_data"),
        Check("bad parameters", "methods.bad_parameters"),
        Check("determinism", "methods.determinism"),
        Check("counters", "methods.counters"),
        Check("limits", "methods.limits"),
        Check("side effects", "methods.side_effects"),
    ),
}


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


@dataclass(frozen=True)
class Imported:
    """A class that could be imported.

    Attributes
    ----------
    kind : str
        The first of the kinds of studies that takes it.
    sort : {"estimator", "method"}
        Which checks are for it.
    """

    kind: str
    sort: Sort


@dataclass(frozen=True)
class ImportWork(Work):
    """Import a solver's class, for the first of these kinds of studies that takes it."""

    solver: str
    kinds: tuple[str, ...]

    def run(self, send: Send) -> Imported:
        from .performing import imported

        return imported(self, send)

    def parsed(self, value: Any) -> Imported:
        found: Imported = described(Imported, value)
        return found


@dataclass(frozen=True)
class CheckWork(Work):
    """Do one check of a solver's class."""

    solver: str
    kind: str
    check: str

    def run(self, send: Send) -> Finding:
        from .performing import perform

        return perform(self, send)

    def parsed(self, value: Any) -> Finding:
        found: Finding = described(Finding, value)
        return found
