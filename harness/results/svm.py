"""Records of runs of solvers on the soft-margin SVM."""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from .measures import Measure, column
from .records import CPU, TRAIN_ERROR, CheckpointBase, RecordBase

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]

_SUPPORT = Measure(
    "Support vectors",
    "support vectors",
    "integer",
    better="lower",
    short="SVs",
    table=50,
    needs="shows_model",
    absent="no model",
    meaning="Training points with a weight other than 0 in the model.",
)


@dataclass(frozen=True, kw_only=True)
class Checkpoint(CheckpointBase):
    """A checkpoint of a run."""

    cpu_s: float = column("CPU seconds", measure=CPU)
    n_support: int | None = column(
        "points with a non-zero coefficient; null without a model", low=0, measure=_SUPPORT
    )
    train_error: float = column("fraction in [0, 1]", low=0, high=1, measure=TRAIN_ERROR)
    primal: float | None = column("C units: 1/2 ||w||^2 + C sum hinge; null without a w")
    dual: float | None = column("C units; null without a feasible dual point")


@dataclass(kw_only=True)
class Record(RecordBase):
    """The outcome of one run of a solver on a task."""

    kind: ClassVar[str] = "svm"
    checkpoint: ClassVar[type[CheckpointBase]] = Checkpoint

    # costs
    system_s: float | None = column(
        "the part of cpu_s that the system's kernel spent, as for new memory, to 0.01 s; null: not "
        "measured",
        default=None,
        low=0,
    )
    # the task
    dataset: str = column("name of the dataset")
    dataset_params: str = column("its parameters", default="{}", json="object")
    fingerprint: str | None = column("SHA-256 of its canonical content", default=None)
    kernel: str = column("the kernel's name and parameters", default="{}", json="object")
    C: float | None = column("weight of the summed loss", default=None)
    fit_intercept: bool = column("whether the task has an unregularised bias", default=False)
    other_problem: str = column(
        "how the problem that the run solves differs from the task's; empty: it does not",
        default="",
    )
    judged_by: Literal["model", "predictions"] = column(
        "what errors are computed from; with predictions there is no objective", default="model"
    )
    # sizes
    n_train: int | None = column("training points", default=None)
    n_test: int | None = column("test points", default=None)
    n_features: int | None = column("features", default=None)
    n_classes: int | None = column("classes", default=None)
    # scores, recomputed by the harness from the returned model
    n_support: int | None = column(
        "points with a non-zero coefficient", default=None, low=0, measure=_SUPPORT
    )
    primal: float | None = column("C units: 1/2 ||w||^2 + C sum hinge", default=None)
    dual: float | None = column("C units; null without a feasible dual point", default=None)
    gap: float | None = column("primal - dual, C units", default=None)
    suboptimality: float | None = column(
        "(primal - reference) / reference; null if not a primal",
        default=None,
        measure=Measure(
            "Suboptimality",
            "relative suboptimality",
            "scientific",
            better="lower",
            short="subopt.",
            table=40,
            needs="minimises",
            absent="not minimised",
            meaning="The objective of the model less that of the reference optimum, divided by "
            "the latter.",
        ),
    )
    mistakes: str = column(
        "test points that the returned model gets wrong: base64 of the deflated bits, one a point; "
        "empty: not known",
        default="",
    )
    # the task's frozen reference optimum
    reference_primal: float | None = column("its primal value, C units", default=None)
    reference_gap: float | None = column(
        "certified: the optimum is in [primal - gap, primal]", default=None
    )
    reference_test_error: float | None = column("fraction in [0, 1]", default=None)
    reference_nu: float | None = column("mean hinge loss / ||w||", default=None)
    reference_alpha_sum: float | None = column("sum of the dual variables", default=None)
    reference_n_free: int | None = column("dual variables strictly between 0 and C", default=None)
    reference_hash: str | None = column("hash of the stored optimum", default=None)
    # tuning, before the run
    tuning: str = column(
        "the trials: configuration, validation error, costs, how each ended; []: nothing is tuned",
        default="[]",
        json="array",
    )
    tuning_wall_s: float | None = column(
        "wall-clock seconds inside the solver in all trials", default=None, low=0
    )
    tuning_cpu_s: float | None = column("CPU seconds meanwhile", default=None, low=0)
    tuning_evals: int | None = column(
        "evaluations requested in all trials; null: not counted", default=None, low=0
    )
    epochs: str = column(
        "what a solver that keeps a trace_ noted at the end of each epoch",
        default="[]",
        json="array",
    )


def packed(mistakes: Mask) -> str:
    """Which test points a model gets wrong, for a record: base64 of the deflated bits, one a point.

    Two solvers are compared on the same points: that tells much smaller differences apart than
    their two error rates.
    """
    import numpy as np

    return base64.b64encode(zlib.compress(np.packbits(mistakes).tobytes(), 9)).decode()


def unpacked(text: str, n_test: int) -> Mask | None:
    """What :func:`packed` was given; None if the text is none of so many points."""
    import numpy as np

    limit = (n_test + 7) // 8
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(text, validate=True), limit + 1)
    except (binascii.Error, zlib.error, ValueError):
        return None
    if len(data) != limit or not inflate.eof:
        return None
    return np.unpackbits(np.frombuffer(data, np.uint8), count=n_test).astype(bool)
