"""Which checks there are, in their order. Nothing is imported here: the command only lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    """

    name: str
    function: str
    gate: bool = False


CHECKS: dict[str, tuple[Check, ...]] = {
    "estimator": (
        Check("constructor", "constructors.constructor", gate=True),
        Check("traits", "constructors.traits"),
        Check("warm-up", "fitting.warm_up", gate=True),
        Check("fit", "fitting.fit", gate=True),
        Check("bad data", "inputs.bad_data"),
        Check("bad parameters", "inputs.bad_parameters"),
        Check("determinism", "repeating.determinism"),
        Check("refitting", "repeating.refitting"),
        Check("side effects", "repeating.side_effects"),
        Check("counters", "counting.counters"),
        Check("scores", "fitting.scores"),
        Check("objective", "optimum.objective"),
        Check("certificate", "optimum.certificate"),
        Check("monitor", "progress.monitor"),
        Check("checkpoints", "progress.checkpoints"),
        Check("stopping", "progress.stopping"),
        Check("limits", "progress.limits"),
        Check("sparse data", "forms.sparse_data"),
        Check("float32 data", "forms.float32_data"),
        Check("kernel function", "forms.kernel_function"),
        Check("labels", "forms.labels"),
        Check("weights", "forms.weights"),
        Check("several classes", "forms.several_classes"),
        Check("row order", "forms.row_order"),
        Check("saving", "forms.saving"),
    ),
    # Feasibility methods on columns.
    "method": (
        Check("constructor", "constructors.method_constructor", gate=True),
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
