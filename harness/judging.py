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


_PLUMBING = {
    "harness/__init__.py": "a docstring",
    "harness/jobs.py": "messages between processes",
    "harness/records.py": "columns and files of records",
    "harness/worker.py": "takes jobs and sends results",
}
_CONTENT = "the fingerprint of the data is in the key"

#: Solvers on tasks: warm-up, checkpoints, scores, objectives, the verdict, the suboptimality.
SVM = Judging(
    harness=(
        "harness/evaluation.py",
        "harness/measurement.py",
        "harness/predictors.py",
        "harness/recording.py",
        "harness/tracing.py",
    ),
    followed=(
        "solvers/kernels/standard.py",
        "solvers/numeric/matrices.py",
        "solvers/models/expansions.py",
        "solvers/models/objectives.py",
        "solvers/models/scoring.py",
    ),
    neutral={
        **_PLUMBING,
        "data_loaders/__init__.py": _CONTENT,
        "harness/errors.py": "classes of errors",
        "harness/loading.py": "finds the class that the key names",
        "harness/planning.py": "what it plans is in the key",
        "harness/study.py": "what it reads is in the key",
        "solvers/__init__.py": "names for annotations",
        "solvers/models/fourier.py": "a part of every solver that returns its models",
        "solvers/interface/monitor.py": "a part of every solver",
        "solvers/kernels/oracle.py": "a part of every solver",
        "solvers/models/voting.py": "a part of every solver that returns its models",
    },
)

#: Methods on generated problems: the generators, the run, the check of the certificate.
CELLS = Judging(
    harness=("harness/separation.py",),
    followed=(
        "data_loaders/feasibility.py",
        "solvers/feasibility/checking.py",
        "solvers/feasibility/problem.py",
    ),
    neutral={**_PLUMBING, "harness/feasibility_records.py": "columns and files of records"},
)

#: Kernel methods on images: the draw, the choice of the width, each class against the rest.
IMAGES = Judging(
    harness=("harness/image_classes.py",),
    followed=("solvers/feasibility/one_vs_rest.py",),
    neutral={
        **_PLUMBING,
        "data_loaders/__init__.py": _CONTENT,
        "harness/feasibility_records.py": "columns and files of records",
        "harness/separation.py": "finds the class that the key names",
    },
)
