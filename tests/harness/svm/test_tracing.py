"""Clocks that leave evaluation out, the grid of checkpoints, and undisturbed random streams."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from marginbench.harness.errors import EvaluationError
from marginbench.harness.evaluation.judging import Snapshot, TraceMonitor
from marginbench.harness.evaluation.models import Evaluation, Evaluator, TaskPoints
from marginbench.harness.evaluation.svm import StoppingRules
from marginbench.harness.jobs import Message, PhaseMessage
from marginbench.solvers import RBF, SBP, Counters, KernelExpansion, Pegasos, Solver
from marginbench.solvers.kernels.oracle import KernelOracle

PAUSE = 0.05


class SlowEvaluator:
    """Takes its time."""

    def evaluate(self, model: KernelExpansion, dtype: str = "float64") -> Evaluation:
        time.sleep(PAUSE)
        busy_until = time.process_time() + PAUSE
        while time.process_time() < busy_until:
            pass
        return Evaluation(0.1, 0.2, 3, 1.0, None, 1.0, 0.5)


def model() -> KernelExpansion:
    return KernelExpansion(RBF(1.0), np.zeros((0, 1)), np.zeros(0), 0.0, np.zeros(0, int), 4)


def watch(evaluator: Any, **options: Any) -> tuple[TraceMonitor, list[Message | Snapshot]]:
    """A monitor, and all that it says: phases, and the states that it gives to be judged."""
    messages: list[Message | Snapshot] = []

    def judge(snapshot: Snapshot) -> bool:
        messages.append(snapshot)
        evaluation: Evaluation = evaluator.evaluate(snapshot.model)
        return evaluation.finite

    settings = {"first_checkpoint": 100, "factor": 1.5, **options}
    return TraceMonitor(judge, send=messages.append, **settings), messages


def checkpoints(messages: list[Message | Snapshot]) -> list[Snapshot]:
    return [item for item in messages if isinstance(item, Snapshot)]


def test_evaluation_is_not_in_the_clocks() -> None:
    monitor, messages = watch(SlowEvaluator())
    counters = Counters()
    monitor.start(counters)
    for n_iter in (1, 2, 3):
        time.sleep(0.01)
        counters.kernel_evals += 1000
        assert monitor.due(counters.kernel_evals)
        monitor.record(n_iter, model)
    monitor.finish(4, model())
    trace = checkpoints(messages)
    assert len(trace) == 4
    # A busy machine sleeps longer than it is asked to, and other threads use CPU time as well.
    assert 0.03 <= trace[-1].wall_s < 4 * PAUSE
    assert trace[-1].cpu_s < 4 * PAUSE
    assert monitor.evaluation_s >= 4 * PAUSE
    assert [item.n_iter for item in trace] == [1, 2, 3, 4]


def test_building_the_snapshot_is_not_in_the_clocks() -> None:
    monitor, messages = watch(SlowEvaluator())

    def slow_snapshot() -> KernelExpansion:
        time.sleep(0.2)
        return model()

    monitor.start(Counters())
    monitor.record(1, slow_snapshot)
    monitor.finish(1, model())
    assert checkpoints(messages)[-1].wall_s < 0.2


def test_checkpoints_stand_on_a_geometric_grid() -> None:
    class Quick(SlowEvaluator):
        def evaluate(self, model: KernelExpansion, dtype: str = "float64") -> Evaluation:
            return Evaluation(0.1, 0.2, 3, 1.0, None, 1.0, 0.5)

    monitor, messages = watch(Quick())
    counters = Counters()
    monitor.start(counters)
    for step in range(1, 100):
        counters.kernel_evals = 10 * step
        if monitor.due(counters.kernel_evals):
            monitor.record(step, model)
    asked = [item.counters["kernel_evals"] for item in checkpoints(messages)]
    grid = [100 * 1.5**k for k in range(6)]  # 100, 150, 225, 337.5, 506.25, 759.375
    assert asked == [10 * int(np.ceil(value / 10)) for value in grid]


def test_the_end_of_an_epoch_is_a_checkpoint_if_asked_for_and_not_twice() -> None:
    found = {}
    for each_epoch in (False, True):
        monitor, messages = watch(SlowEvaluator(), each_epoch=each_epoch)
        counters = Counters(kernel_evals=150)
        monitor.start(counters)
        monitor.record(10, model)
        for n_iter in (10, 20, 30):
            assert monitor.epoch_ended(n_iter, model) is False
        found[each_epoch] = [item.n_iter for item in checkpoints(messages)]
    assert found == {False: [10], True: [10, 20, 30]}


def test_inner_products_make_checkpoints_due_as_kernel_evaluations_do() -> None:
    monitor, messages = watch(SlowEvaluator(), first_checkpoint=100, factor=2.0)
    counters = Counters(kernel_evals=40)
    monitor.start(counters)
    for step in range(1, 5):
        counters.inner_products += 100
        if monitor.due(counters.kernel_evals + counters.inner_products):
            monitor.record(step, model)
    counts = [item.counters for item in checkpoints(messages)]
    found = [(count["kernel_evals"], count["inner_products"]) for count in counts]
    assert found == [(40, 100), (40, 200), (40, 400)]


def test_a_count_that_is_none_is_refused() -> None:
    monitor, _ = watch(SlowEvaluator())
    monitor.start(Counters(inner_products=2.5))  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match=r"inner_products is 2\.5, not a count"):
        monitor.finish(1, model())


def test_the_parent_hears_of_every_change_of_phase() -> None:
    monitor, messages = watch(SlowEvaluator())
    monitor.start(Counters())
    monitor.record(1, model)
    monitor.finish(1, model())
    phases = [item.phase for item in messages if isinstance(item, PhaseMessage)]
    assert phases == ["solve", "evaluate", "solve", "evaluate"]


def test_a_solver_that_does_not_count_still_has_a_final_checkpoint() -> None:
    monitor, messages = watch(SlowEvaluator())
    monitor.start(None)
    monitor.finish(7, model())
    (last,) = checkpoints(messages)
    assert (last.n_iter, last.counters) == (7, None)


@pytest.mark.parametrize("make", [lambda: SBP(nu=0.1), lambda: Pegasos(C=1.0)])
def test_watching_changes_nothing(make: Callable[[], Solver]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.sign(rng.normal(size=80)).astype(int)
    evaluator = Evaluator(
        TaskPoints(RBF(1.0), X, X), C=1.0, fit_intercept=False, y_train=y, y_test=y,
        dual_certificate=False,
    )  # fmt: skip
    plain = make().set_params(gamma=1.0, max_epochs=3, random_state=5).fit(X, y)
    watched = make().set_params(gamma=1.0, max_epochs=3, random_state=5)
    monitor, messages = watch(evaluator, first_checkpoint=80, factor=1.1)
    watched.fit(X, y, monitor=monitor)
    assert len(checkpoints(messages)) > 5
    np.testing.assert_array_equal(plain.dual_coef_, watched.dual_coef_)
    assert plain.counters_.kernel_evals == watched.counters_.kernel_evals
    assert checkpoints(messages)[-1].counters == watched.counters_.as_dict()


def test_a_model_of_nan_asks_the_solver_to_stop() -> None:
    class Bad(SlowEvaluator):
        def evaluate(self, model: KernelExpansion, dtype: str = "float64") -> Evaluation:
            return Evaluation(0.5, 0.5, 3, float("nan"), None, float("nan"), float("nan"))

    monitor, _ = watch(Bad())
    monitor.start(Counters())
    assert monitor.record(1, model) is True
    assert monitor.diverged


def test_the_clocks_stand_still_while_a_solver_looks_at_itself() -> None:
    monitor, messages = watch(SlowEvaluator())
    monitor.start(Counters())
    before = monitor.evaluation_s
    with monitor.paused():
        time.sleep(PAUSE)
        assert not monitor.clocks.running
    assert monitor.clocks.running
    assert monitor.clocks.wall_s < PAUSE
    assert monitor.evaluation_s - before >= PAUSE
    phases = [item.phase for item in messages if isinstance(item, PhaseMessage)]
    assert phases == ["solve", "evaluate", "solve"]


def test_what_a_solver_raises_while_it_looks_at_itself_does_not_stop_the_clocks() -> None:
    monitor, _ = watch(SlowEvaluator())
    monitor.start(Counters())
    with pytest.raises(ArithmeticError), monitor.paused():
        raise ArithmeticError
    assert monitor.clocks.running


def gaussian(n: int = 20) -> KernelOracle:
    return KernelOracle("rbf", np.random.default_rng(0).normal(size=(n, 2)), counters=Counters())


def test_a_count_never_falls() -> None:
    monitor, _ = watch(SlowEvaluator())
    counters = Counters(inner_products=5)
    monitor.start(counters)
    monitor.record(1, model)
    counters.inner_products = 4
    with pytest.raises(EvaluationError, match=r"inner_products is 4, but .* already had 5"):
        monitor.record(2, model)


@pytest.mark.parametrize("name", ["kernel_evals", "kernel_evals_computed"])
def test_counts_are_at_least_what_the_oracle_has_handed_out(name: str) -> None:
    oracle = gaussian()
    oracle.row(0)  # before the run
    monitor, messages = watch(SlowEvaluator())
    oracle.counters = Counters()
    monitor.start(oracle.counters)
    oracle.rows([1, 2])
    monitor.record(1, model)
    assert checkpoints(messages)[-1].counters == oracle.counters.as_dict()
    setattr(oracle.counters, name, 39)
    with pytest.raises(EvaluationError, match=f"{name} is 39, but .* already had 40"):
        monitor.finish(2, model())


def test_what_a_solver_evaluates_to_look_at_itself_need_not_be_counted() -> None:
    oracle, aside = gaussian(), gaussian()
    monitor, messages = watch(SlowEvaluator())
    monitor.start(oracle.counters)
    oracle.row(0)
    with monitor.paused():
        aside.rows([1, 2, 3])
    monitor.finish(1, model())
    assert checkpoints(messages)[-1].counters["kernel_evals"] == 20  # type: ignore[index]
    aside.row(0)
    with pytest.raises(EvaluationError, match=r"kernel_evals is 20, but .* already had 40"):
        monitor.finish(2, model())


def test_a_checkpoint_is_due_where_the_evaluations_are_used_up() -> None:
    class Quick(SlowEvaluator):
        def evaluate(self, model: KernelExpansion, dtype: str = "float64") -> Evaluation:
            return Evaluation(0.1, 0.2, 3, 1.0, None, 1.0, 0.5)

    monitor, messages = watch(Quick(), rules=StoppingRules(evaluations=130))
    counters = Counters()
    monitor.start(counters)
    asked = []
    for step in range(1, 24):
        counters.kernel_evals = 10 * step
        if monitor.due(counters.kernel_evals):
            asked.append(monitor.record(step, model))
    # It is asked to stop at 130, and ignores that: the grid goes on as if nothing were.
    counts = [item.counters["kernel_evals"] for item in checkpoints(messages)]
    assert counts == [100, 130, 150, 230]
    assert asked == [False, True, True, True]


def test_an_epoch_ends_a_run_without_a_checkpoint() -> None:
    monitor, messages = watch(SlowEvaluator(), rules=StoppingRules(iterations=20))
    monitor.start(Counters())
    assert [monitor.epoch_ended(n_iter, model) for n_iter in (10, 20)] == [False, True]
    assert checkpoints(messages) == []
