"""The monitor of a run: clocks that stand still while the harness looks, and states to judge."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from resource import RUSAGE_CHILDREN, getrusage

# By their own names: a solver that puts others in their place in the module changes nothing here.
from time import perf_counter, process_time

from ...solvers.interface.monitor import Monitor
from ...solvers.models import Model
from ...solvers.numeric.counters import SERVED, Counters
from ..errors import EvaluationError
from ..execution.jobs import PhaseMessage, Send
from .plain import PlainModel, plain_model
from .svm import StoppingRules

_NO_RULES = StoppingRules()


@dataclass(frozen=True)
class Snapshot:
    """A state of a run.

    Attributes
    ----------
    n_iter : int or None
        None if the solver does not tell.
    counters : dict or None
        Counts by name.
    wall_s, cpu_s : float
        Seconds by the clocks of the solver's own process.
    model : PlainModel
    final : bool
        Whether it is the returned model.
    """

    n_iter: int | None
    counters: dict[str, int] | None
    wall_s: float
    cpu_s: float
    model: PlainModel
    final: bool = False


#: Takes a snapshot, and says whether the model's objective is finite.
Judge = Callable[[Snapshot], bool]


@dataclass
class Clocks:
    """Wall and CPU seconds of the solver alone.

    CPU time is that of the whole process and of child processes that have ended, so what a solver
    starts counts as well. The part of it that the system's kernel spent in this process, above all
    for new memory, is known to a hundredth of a second.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    system_s: float = 0.0
    _wall: float = math.nan
    _cpu: float = math.nan
    _system: float = math.nan
    running: bool = False

    def resume(self) -> None:
        self.running = True
        self._system = os.times().system
        self._cpu = _cpu_s()
        self._wall = perf_counter()

    def pause(self) -> None:
        if self.running:
            self.wall_s += perf_counter() - self._wall
            self.cpu_s += _cpu_s() - self._cpu
            self.system_s += os.times().system - self._system
            self.running = False


def _cpu_s() -> float:
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


class TraceMonitor(Monitor):
    """Takes snapshots at geometrically growing counts of evaluations.

    An evaluation is one of the kernel, an inner product of a method without a kernel, or the use of
    an entry of a stored kernel matrix in a product with a vector.

    Each is judged as soon as it is there, so that a run that is killed keeps its trace. The
    solver's random stream is not touched: judging draws nothing.

    Parameters
    ----------
    judge : callable
        Takes each snapshot.
    first_checkpoint : float
        Evaluations at the first checkpoint: the number of training points.
    factor : float
        Growth from one checkpoint to the next.
    each_epoch : bool
        Whether there are checkpoints at the ends of epochs as well.
    rules : StoppingRules
        What ends the run early. A checkpoint is due where the evaluations are used up.
    reached : callable
        Says after each checkpoint whether its objective is good enough.
    send : callable
        Takes the phases.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        first_checkpoint: float,
        factor: float,
        each_epoch: bool = False,
        rules: StoppingRules = _NO_RULES,
        reached: Callable[[], bool] = lambda: False,
        send: Send,
    ) -> None:
        self.rules = rules
        self.reached = reached
        self._on_grid = first_checkpoint
        self.next_checkpoint = min(first_checkpoint, rules.evaluations)
        self.factor = factor
        self.each_epoch = each_epoch
        self.judge = judge
        self.send = send
        self.clocks = Clocks()
        self.counters: Counters | None = None
        self.evaluation_s = 0.0
        self.last: Snapshot | None = None
        self.diverged = False
        self._served = Served()

    @property
    def ended(self) -> bool:
        """Whether the solver has said that it has ended."""
        return self.last is not None and self.last.final

    def start(self, counters: Counters | None) -> None:
        """The solve begins: the clocks start at zero."""
        self.counters = counters
        self.clocks = Clocks()
        self._served = Served()
        self.send(PhaseMessage("solve"))
        self.clocks.resume()

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """Record a checkpoint while the clocks stand still.

        Asks to stop a model of NaNs, a run that has used up what it had, and one that is good
        enough.
        """
        self.clocks.pause()
        self.send(PhaseMessage("evaluate", self.clocks.wall_s))
        asked = self._asked or 0
        self._take(n_iter, snapshot(), final=False)
        while self._on_grid <= asked:
            self._on_grid *= self.factor
        limit = self.rules.evaluations
        # A solver that goes on all the same is not looked at more often than others.
        self.next_checkpoint = self._on_grid if asked >= limit else min(self._on_grid, limit)
        self.send(PhaseMessage("solve", self.clocks.wall_s))
        self.clocks.resume()
        return self.diverged or self.reached() or self._is_spent(n_iter)

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """Record a checkpoint if they are wanted here and there is none yet."""
        if not self.each_epoch or (self.last is not None and self.last.n_iter == n_iter):
            return self.diverged or self._is_spent(n_iter)
        return self.record(n_iter, snapshot)

    @property
    def _asked(self) -> int | None:
        return None if self.counters is None else self.counters.evaluations

    def _is_spent(self, n_iter: int) -> bool:
        return bool(self.rules.spent(n_iter, self._asked))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The clocks stand still: what runs inside counts as evaluation."""
        self.clocks.pause()
        self.send(PhaseMessage("evaluate", self.clocks.wall_s))
        started, served = perf_counter(), Served()
        try:
            yield
        finally:
            self.evaluation_s += perf_counter() - started
            self._served.leave_out(served)
            self.send(PhaseMessage("solve", self.clocks.wall_s))
            self.clocks.resume()

    def finish(self, n_iter: int, model: Model) -> None:
        """The solve has ended: the clocks stop, and the final model is judged."""
        self.clocks.pause()
        self.send(PhaseMessage("evaluate", self.clocks.wall_s))
        self._take(n_iter, model, final=True)

    def _take(self, n_iter: int, model: Model, *, final: bool) -> None:
        started = perf_counter()
        self.last = Snapshot(
            n_iter=check_count("n_iter", n_iter),
            counters=None if self.counters is None else self._counts(self.counters),
            wall_s=self.clocks.wall_s,
            cpu_s=self.clocks.cpu_s,
            model=plain_model(model),
            final=final,
        )
        self.diverged = not self.judge(self.last)
        self.evaluation_s += perf_counter() - started

    def _counts(self, counters: Counters) -> dict[str, int]:
        """The counts, none of which may have fallen or be less than what was handed out."""
        counts = {name: check_count(name, count) for name, count in counters.as_dict().items()}
        before = (self.last and self.last.counters) or {}
        least = {**before, **self._served.since()}
        for name, count in counts.items():
            if count < least.get(name, 0):
                raise EvaluationError(
                    f"{name} is {count}, but the solver has already had {least[name]}"
                )
        return counts


class Served:
    """What all oracles of this process have handed out from now on."""

    def __init__(self) -> None:
        self._asked, self._computed = SERVED.asked, SERVED.computed

    def leave_out(self, later: Served) -> None:
        """Forget what has been handed out since a later moment."""
        self._asked += SERVED.asked - later._asked
        self._computed += SERVED.computed - later._computed

    def since(self) -> dict[str, int]:
        """The least that the counters can say."""
        return {
            "kernel_evals": SERVED.asked - self._asked,
            "kernel_evals_computed": SERVED.computed - self._computed,
        }


def check_count(name: str, value: object) -> int:
    """The count as an int.

    Raises
    ------
    EvaluationError
        If it is no whole number from 0 to 2^63 - 1.
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**63:
        return int(value)
    raise EvaluationError(f"{name} is {value!r:.40}, not a count")
