"""Checks of a run that is watched: checkpoints, requests to stop, limits."""

from __future__ import annotations

import warnings
from itertools import pairwise

from sklearn.exceptions import ConvergenceWarning

from ..errors import EvaluationError
from .findings import MendError, NotApplicableError
from .subject import LIMITS, Fitted, Subject, Watch, overlapping

_NO_CHECKPOINTS = (
    "it records no checkpoints (monitor.due, monitor.record): reports show only the end of a run"
)
# Checkpoints of a run that are looked at.
_MOST = 30
# A tolerance that no run reaches in a few iterations; some methods take none of 0.
_TINY = 1e-12


def monitor(subject: Subject) -> None:
    """A fit that is watched is the fit that is not."""
    points = overlapping()
    alone = Fitted.of(subject.make().fit(*points))
    differs = alone.differences(Fitted.of(subject.make().fit(*points, monitor=Watch())))
    if differs:
        raise MendError(
            f"with a monitor the fit differs in {differs}; what it is asked and told must change "
            "nothing, and snapshot() may only read"
        )


def checkpoints(subject: Subject) -> None:
    """Each checkpoint is a valid model of its own, and iterations and counts only rise."""
    points, watch = overlapping(), Watch()
    bias = not subject.cls.supports_no_bias
    solver = subject.make().fit(*points, monitor=watch)
    if not watch.seen:
        raise NotApplicableError(_NO_CHECKPOINTS)
    iterations = [seen.n_iter for seen in watch.seen] + [solver.n_iter_]
    if any(after < before for before, after in pairwise(iterations)):
        raise MendError("the iterations given to monitor.record fall; count them from the start")
    evaluator = subject.evaluator(points, bias=bias)
    for seen in watch.seen[:: max(1, len(watch.seen) // _MOST)]:
        if seen.model.digest != seen.digest:
            raise MendError(
                f"the model of the checkpoint at iteration {seen.n_iter} changed later; snapshot() "
                "must copy what the solver goes on changing"
            )
        try:
            finite = evaluator.evaluate(seen.model).finite
        except EvaluationError as error:
            raise MendError(f"the checkpoint at iteration {seen.n_iter}: {error}") from None
        if not finite:
            raise MendError(f"the model at iteration {seen.n_iter} is not finite")


def stopping(subject: Subject) -> None:
    """A request to stop is obeyed at once, with the model of that moment."""
    points, whole = overlapping(), Watch()
    subject.make().fit(*points, monitor=whole)
    if not whole.seen:
        raise NotApplicableError(_NO_CHECKPOINTS)
    for wanted in {1, max(1, len(whole.seen) // 2)}:
        watch = Watch(stop_after=wanted)
        solver = subject.make().fit(*points, monitor=watch)
        if len(watch.seen) > wanted or solver.n_iter_ > watch.seen[-1].n_iter:
            raise MendError(
                "it goes on after monitor.record has returned True; return a Solution with the "
                "status 'stopped' there"
            )
        if solver.status_ != "stopped":
            raise MendError(
                f"stopped by the monitor, it says {solver.status_!r:.40}; the status is 'stopped'"
            )
        if Fitted.of(solver).model != watch.seen[-1].digest:
            raise MendError(
                "stopped by the monitor, it returns another model than that of the checkpoint"
            )


def limits(subject: Subject) -> None:
    """A run ends near its limit of iterations, and says if it falls short of its tolerance."""
    known = [name for name in LIMITS if name in subject.defaults]
    if not known:
        raise NotApplicableError(
            "it has neither max_epochs nor max_iter: only its own rule and the timeout end a run"
        )
    X, y = overlapping()
    for name in known:
        # So small a tolerance leaves the end to the limit.
        solver = subject.make(**{name: 2}, tol=_TINY).fit(X, y)
        allowed = 2 * len(y) if name == "max_epochs" else 2 + len(y)
        if solver.n_iter_ > allowed:
            raise MendError(
                f"with {name}=2 it does {solver.n_iter_} iterations on {len(y)} points; at most "
                f"{allowed} are allowed"
            )
        _check_shortfall(subject, name)


def _check_shortfall(subject: Subject, name: str) -> None:
    """A method with a stopping rule says what it fell short of."""
    if "tol" not in subject.defaults:
        return
    X, y = overlapping()
    if subject.make().fit(X, y).status_ != "converged":
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        solver = subject.make(**{name: 1}, tol=_TINY).fit(X, y)
    warned = any(issubclass(item.category, ConvergenceWarning) for item in caught)
    if solver.status_ == "budget" and not warned:
        raise MendError(
            f"with {name}=1 it ends before it converges and nobody is told; give the Solution a "
            "shortfall, such as 'the duality gap is 0.2, tol=0.001'"
        )
