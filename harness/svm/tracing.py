"""The monitor of a run: clocks that stand still while the harness looks, and the trace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral

from marginbench.harness.errors import EvaluationError
from marginbench.harness.jobs import CheckpointMessage, PhaseMessage, Send
from marginbench.harness.svm.evaluation import Evaluation, Evaluator
from marginbench.harness.svm.records import Checkpoint
from marginbench.solvers.interface.monitor import Monitor
from marginbench.solvers.models import Model
from marginbench.solvers.numeric.counters import Counters


@dataclass
class Clocks:
    """Wall and CPU seconds of the solver alone.

    CPU time is that of the whole process (``time.process_time``), so the threads that a solver
    starts count as well.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    _wall: float = math.nan
    _cpu: float = math.nan
    running: bool = False

    def resume(self) -> None:
        self.running = True
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def pause(self) -> None:
        if self.running:
            self.wall_s += time.perf_counter() - self._wall
            self.cpu_s += time.process_time() - self._cpu
            self.running = False


class TraceMonitor(Monitor):
    """Records checkpoints at geometrically growing counts of evaluations.

    An evaluation is one of the kernel, an inner product of a method without a kernel, or the use of
    an entry of a stored kernel matrix in a product with a vector.

    Each is sent on as soon as it is there, so that a run that is killed keeps its trace. The
    solver's random stream is not touched: evaluation draws nothing.

    Parameters
    ----------
    evaluator : Evaluator
        Scores checkpoints, with float32 entries; the final one with float64 entries.
    first_checkpoint : float
        Evaluations at the first checkpoint: the number of training points.
    factor : float
        Growth from one checkpoint to the next.
    each_epoch : bool
        Whether there are checkpoints at the ends of epochs as well.
    send : callable
        Takes each message.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        first_checkpoint: float,
        factor: float,
        each_epoch: bool = False,
        send: Send,
    ) -> None:
        self.next_checkpoint = first_checkpoint
        self.factor = factor
        self.each_epoch = each_epoch
        self.evaluator = evaluator
        self.send = send
        self.clocks = Clocks()
        self.counters: Counters | None = None
        self.evaluation_s = 0.0
        self.last: Checkpoint | None = None
        self.final: Evaluation | None = None
        self.diverged = False

    def start(self, counters: Counters | None) -> None:
        """The solve begins: the clocks start at zero."""
        self.counters = counters
        self.clocks = Clocks()
        self.send(PhaseMessage("solve"))
        self.clocks.resume()

    def record(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """Record a checkpoint while the clocks stand still; asks to stop a model of NaNs."""
        self.clocks.pause()
        self.send(PhaseMessage("evaluate", self.clocks.wall_s))
        asked = 0
        if self.counters is not None:
            asked = self.counters.evaluations
        evaluation = self._checkpoint(n_iter, snapshot(), "float32")
        while self.next_checkpoint <= asked:
            self.next_checkpoint *= self.factor
        self.diverged = not evaluation.finite
        self.send(PhaseMessage("solve", self.clocks.wall_s))
        self.clocks.resume()
        return self.diverged

    def epoch_ended(self, n_iter: int, snapshot: Callable[[], Model]) -> bool:
        """Record a checkpoint if they are wanted here and there is none yet."""
        if not self.each_epoch or (self.last is not None and self.last.n_iter == n_iter):
            return self.diverged
        return self.record(n_iter, snapshot)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The clocks stand still: what runs inside counts as evaluation."""
        self.clocks.pause()
        self.send(PhaseMessage("evaluate", self.clocks.wall_s))
        started = time.perf_counter()
        yield
        self.evaluation_s += time.perf_counter() - started
        self.send(PhaseMessage("solve", self.clocks.wall_s))
        self.clocks.resume()

    def finish(self, n_iter: int, model: Model) -> None:
        """The solve has ended: the clocks stop, and the final model is evaluated in float64."""
        self.clocks.pause()
        self.send(PhaseMessage("evaluate", self.clocks.wall_s))
        self.final = self._checkpoint(n_iter, model, "float64")
        self.diverged = not self.final.finite

    def _checkpoint(self, n_iter: int, model: Model, dtype: str) -> Evaluation:
        started = time.perf_counter()
        counts = None
        if self.counters is not None:
            known = self.counters.as_dict().items()
            counts = {name: check_count(name, count) for name, count in known}
        evaluation = self.evaluator.evaluate(model, dtype)
        self.last = Checkpoint(
            n_iter=check_count("n_iter", n_iter),
            counters=counts,
            wall_s=self.clocks.wall_s,
            cpu_s=self.clocks.cpu_s,
            n_support=evaluation.n_support,
            train_error=evaluation.train_error,
            test_error=evaluation.test_error,
            primal=evaluation.primal,
            dual=evaluation.dual,
        )
        self.send(CheckpointMessage(self.last))
        self.evaluation_s += time.perf_counter() - started
        return evaluation


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
