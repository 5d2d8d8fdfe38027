"""How a run is watched: the protocol between a solver and whoever records its progress."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ..models import Model
from ..numeric.counters import Counters


class Monitor:
    """Watches a fit; this base class does nothing and costs one comparison per question.

    A solver calls :meth:`due` with its count of kernel evaluations as often as it likes, and
    :meth:`record` when the answer is yes. What a monitor does there is not the solver's work: it
    stops the clocks first and must leave the solver's random stream alone.
    """

    #: The count of kernel evaluations at which the next checkpoint is due.
    next_checkpoint: float = math.inf

    def start(self, counters: Counters | None) -> None:
        """The solve begins now. ``counters`` stay live; None if the solver does not count."""

    def due(self, kernel_evals: int) -> bool:
        """Whether a checkpoint is due at this count of kernel evaluations."""
        return kernel_evals >= self.next_checkpoint

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """Record a checkpoint; ``snapshot`` builds the predictor as it stands.

        Returns
        -------
        bool
            True to ask the solver to stop.
        """
        return False

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """An epoch of n iterations has ended and others follow: :meth:`record`, if wanted."""
        return False

    def after_epoch(self, counters: Counters, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """An epoch has ended that charges few evaluations, or none: :meth:`record` or its like."""
        if self.due(counters.evaluations):
            return self.record(n_iter, snapshot)
        return self.epoch_ended(n_iter, snapshot)

    def paused(self) -> AbstractContextManager[None]:
        """What runs inside is not the solver's work (such as objectives for its own trace)."""
        return nullcontext()

    def finish(self, n_iter: int, model: Model) -> None:
        """The solve has ended with this model."""

    def interruptible(self) -> AbstractContextManager[None]:
        """What a fit is done in; :class:`Progress` lets Ctrl-C end it there with a model."""
        return nullcontext()


#: Seconds of work between two looks at the clock, about.
_LOOK = 0.1


class Progress(Monitor):
    """Calls a function in regular intervals of time, and lets Ctrl-C end a fit with a model.

    A fit without a monitor has one that calls nothing, or that writes a line each second if
    ``verbose`` is set.

    Parameters
    ----------
    callback : callable, optional
        Called with the number of iterations and with a function that builds the
        :class:`Model` as it stands. A true value asks the solver to stop.
    every : float >= 0, default=1.0
        Seconds between two calls, at least.

    Attributes
    ----------
    seconds : float
        Wall time since the fit began.
    counters : Counters or None
        What the fit has cost so far; None if the solver does not count.

    Examples
    --------
    >>> from marginbench import BSGD, Progress, load
    >>> digits, errors = load("digits"), []
    >>> def validate(n_iter, build):
    ...     scores = build().decision_function(digits.X_test)
    ...     errors.append(((scores > 0) != (digits.y_test > 0)).mean())
    ...     return len(errors) == 3
    >>> model = BSGD(gamma=0.1, budget=50, max_epochs=1000)
    >>> model.fit(digits.X_train, digits.y_train, monitor=Progress(validate, every=0)).status_
    'stopped'
    """

    def __init__(
        self,
        callback: Callable[[int, Callable[[], Model]], object] | None = None,
        every: float = 1.0,
    ) -> None:
        self.callback = callback
        self.every = every
        self.counters: Counters | None = None
        self._began = self._called = time.perf_counter()
        self._evaluations = 0
        self._interrupted = False

    @property
    def seconds(self) -> float:
        """Wall time since the fit began."""
        return time.perf_counter() - self._began

    def start(self, counters: Counters | None) -> None:
        self.counters = counters
        self._began = self._called = time.perf_counter()
        self.next_checkpoint = 1.0

    def due(self, kernel_evals: int) -> bool:
        self._evaluations = kernel_evals
        return super().due(kernel_evals)

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        if self._interrupted:
            return True
        now = time.perf_counter()
        self.next_checkpoint = self._evaluations * (1 + _LOOK / max(now - self._began, 1e-3))
        if self.callback is None or now - self._called < self.every:
            return False
        self._called = now
        return bool(self.callback(n_iter, snapshot))

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        return self.record(n_iter, snapshot)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """In this block the first Ctrl-C asks the solver to stop, and is raised at the end."""
        usual = signal.default_int_handler
        in_main = threading.current_thread() is threading.main_thread()
        if not in_main or signal.getsignal(signal.SIGINT) is not usual:
            yield
            return

        def ask(*_: object) -> None:
            self._interrupted, self.next_checkpoint = True, 0.0
            signal.signal(signal.SIGINT, usual)

        self._interrupted = False
        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)
        if self._interrupted:
            raise KeyboardInterrupt


def progress_line(name: str) -> Progress:
    """A monitor that writes a line about a fit to the error stream each second."""

    def write(n_iter: int, build: Callable[[], Model]) -> None:
        spent = monitor.counters
        cost = f", {spent.evaluations:.3g} evaluations" if spent is not None else ""
        line = f"{name}: {monitor.seconds:.0f} s, {n_iter} iterations{cost}"
        print(line, file=sys.stderr, flush=True)

    monitor = Progress(write)
    return monitor
