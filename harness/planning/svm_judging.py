"""Which files measure and judge the runs of solvers on SVM tasks."""

from __future__ import annotations

from .judging import PLUMBING, Judging

#: Warm-up, checkpoints, scores, objectives, the verdict, the suboptimality.
JUDGING = Judging(
    harness=(
        "harness/evaluation/comparison.py",
        "harness/evaluation/compiling.py",
        "harness/evaluation/entries.py",
        "harness/evaluation/models.py",
        "harness/evaluation/folds.py",
        "harness/evaluation/measurement.py",
        "harness/evaluation/plain.py",
        "harness/evaluation/predictors.py",
        "harness/evaluation/multiclass.py",
        "harness/evaluation/search.py",
        "harness/evaluation/tracing.py",
        "harness/evaluation/tuning.py",
        "harness/evaluation/verdict.py",
    ),
    followed=(
        "solvers/kernels/choice.py",
        "solvers/numeric/matrices.py",
        "solvers/models/expansions.py",
        "solvers/models/objectives.py",
        "solvers/kernels/scoring.py",
    ),
    neutral={
        **PLUMBING,
        "harness/results/svm.py": "columns of records",
        "harness/evaluation/svm.py": "what it carries is in the key",
        "solvers/interface/base.py": "a part of every solver",
        "solvers/interface/monitor.py": "a part of every solver",
        "solvers/kernels/linear.py": "the code of the kernel in use is in the key",
        "solvers/models/several.py": "scores of several classes are computed from its parts",
        "solvers/models/fourier.py": "a part of every solver that returns its models",
        "solvers/models/voting.py": "a part of every solver that returns its models",
        "solvers/numeric/counters.py": "a part of every solver that counts",
    },
)

#: The same for classifiers of other libraries.
OUTSIDE = Judging(
    harness=(*JUDGING.harness, "harness/evaluation/estimators.py"),
    followed=JUDGING.followed,
    neutral=JUDGING.neutral,
)
