"""Which files measure and judge the runs of feasibility methods."""

from __future__ import annotations

from .judging import PLUMBING, Judging

_NEUTRAL = {
    **PLUMBING,
    "harness/results/feasibility.py": "columns of records",
    "harness/evaluation/feasibility.py": "what it carries is in the key",
}

#: Methods on generated problems: the generators, the run, the check of the certificate.
CELLS = Judging(
    harness=("harness/evaluation/cells.py",),
    followed=(
        "data_loaders/feasibility.py",
        "solvers/feasibility/checking.py",
        "solvers/feasibility/problem.py",
    ),
    neutral=_NEUTRAL,
)

#: Kernel methods on images: the draw, the choice of the width, each class against the rest.
IMAGES = Judging(
    harness=("harness/evaluation/images.py",),
    followed=("solvers/interface/one_vs_rest.py",),
    neutral=_NEUTRAL,
)
