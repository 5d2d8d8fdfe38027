"""Dual coordinate ascent, whatever holds w: its parameters, and its epochs up to the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..numeric.ascent import Ascent
from ..numeric.counters import Counters
from ..numeric.validation import check_flag, check_iteration_limit, check_one_of, check_positive
from .convergence import short_of
from .declaration import hyperparameters
from .parameters import SoftMarginParameters, SolverParameters
from .problem import SolveStatus


@hyperparameters
class AscentParameters(SolverParameters, SoftMarginParameters):
    """Dual coordinate ascent: its draws, and when it ends.

    Parameters
    ----------
    order : {"permutation", "iid"}
        A fresh permutation in each epoch (LIBLINEAR), or independent uniform draws ([SBP12]_),
        which need ``stopping="gap"`` and ``shrinking=False``.
    shrinking : bool
        Whether to leave out points at their bounds whose derivative points outward by more than
        any did in the epoch before; all come back before the end (LIBLINEAR).
    stopping : {"gap", "gradient"}
        "gap" stops at the end of an epoch when the duality gap is small. "gradient" is LIBLINEAR's
        rule: stop when the projected derivatives of the dual are close to 0 and to each other,
        first as they were met in an epoch over all points, and then, which LIBLINEAR does not ask,
        all at its end.
    tol : float >= 0
        Stop when the duality gap ("gap") is at most ``tol``, in units of the weighted mean of the
        losses: as a fraction of the objective at w = 0; or when the projected derivatives
        ("gradient") lie within ``tol`` of 0 and of each other, which implies the former.
        LIBLINEAR's own default is 0.1.
    max_epochs : int >= 1
        Stop after this many epochs of n draws, fewer where points are left out.
    """

    order: str = "permutation"
    stopping: str = "gap"
    shrinking: bool = False
    tol: float = 1e-3
    max_epochs: int = 100

    def _check_parameters(self) -> None:
        check_positive("C", self.C)
        check_one_of("order", self.order, ("permutation", "iid"))
        check_one_of("stopping", self.stopping, ("gap", "gradient"))
        check_flag("shrinking", self.shrinking)
        check_iteration_limit(self.max_epochs)
        if self.order == "iid" and (self.stopping != "gap" or self.shrinking):
            raise ValueError(
                "order='iid' does not visit every point in an epoch: set stopping='gap' and "
                "shrinking=False"
            )


def ascend(
    ascent: Ascent,
    solver: Any,
    epoch: Callable[[], bool],
    stopping: str = "",
    after: Callable[[], bool] | None = None,
) -> tuple[SolveStatus, str]:
    """Epochs until the solver's rule is met; the status and what is short of it.

    ``epoch`` does one, and ``after`` is asked between two of them; both say whether to stop.
    """
    stopping, tol = stopping or solver.stopping, solver.tol
    for left in reversed(range(solver.max_epochs)):
        if epoch():
            return "stopped", ""
        measure = ascent.end_epoch(tol)
        if stopping == "gap" and ascent.knows_gap:
            measure = ascent.gap()
        elif measure <= tol:
            # Some derivatives have changed since the epoch met them.
            measure = ascent.violation()
        if measure <= tol:
            return "converged", ""
        if left and after is not None and after():
            return "stopped", ""
    if tol == 0:
        return "budget", ""
    # What the last epoch knows may be about some of the points, or from before its steps. To
    # know better is no part of the method, so it is not charged.
    ascent.counters = Counters()
    measure = ascent.gap() if stopping == "gap" else ascent.violation()
    if measure <= tol:
        return "converged", ""
    achieved = f"the projected derivatives lie up to {measure:.3g} from 0 or each other"
    if stopping == "gap":
        achieved = f"the duality gap is {measure:.3g}"
    return "budget", short_of(achieved, tol)
