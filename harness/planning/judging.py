"""Which files measure and judge the runs of each kind: an edit of their code changes its keys.

Files of the harness are named here and not found by their imports, which lead to nearly all of the
project. The code of the solver or method counts beside them, with all that it imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Judging:
    """The files that decide what a record says, besides those of the solver.

    Attributes
    ----------
    harness : tuple of str
        Files of the harness, each by itself.
    followed : tuple of str
        Files of other packages, each with all that it imports.
    neutral : mapping
        Other files that a run imports and that cannot change its numbers -> why.
    """

    harness: tuple[str, ...]
    followed: tuple[str, ...]
    neutral: Mapping[str, str]


#: What runs of every kind import without effect on their numbers.
PLUMBING = {
    "harness/__init__.py": "a docstring",
    "harness/evaluation/__init__.py": "a docstring",
    "harness/execution/__init__.py": "a docstring",
    "harness/planning/__init__.py": "a docstring",
    "harness/results/__init__.py": "a docstring",
    "harness/errors.py": "classes of errors",
    "harness/interrupts.py": "what Ctrl-C does in a command",
    "harness/execution/jobs.py": "messages between processes",
    "harness/planning/solvers.py": "finds the class that the key names",
    "harness/results/measures.py": "declarations of columns",
    "harness/results/mistakes.py": "the form in which mistakes are stored",
    "harness/results/records.py": "columns of records",
    "harness/storage.py": "messages about files that cannot be written",
    "harness/words.py": "words of messages",
    "harness/execution/worker.py": "takes jobs and sends results",
    "data_loaders/cache.py": "the fingerprint of the data is in the key",
    "data_loaders/errors.py": "classes of errors",
    "solvers/interface/convergence.py": "words of warnings, and their silence",
}
