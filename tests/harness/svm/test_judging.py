"""The monitor of a run: clocks that leave evaluation out, checkpoints on a grid, counts, limits."""

import subprocess
import sys
import time
from dataclasses import replace
from resource import RUSAGE_CHILDREN, getrusage
from types import SimpleNamespace

import numpy as np
import pytest

from marginbench.data_loaders import Dataset
from marginbench.harness.errors import EvaluationError
from marginbench.harness.evaluation import judging
from marginbench.harness.evaluation.models import plain_model
from marginbench.harness.evaluation.svm import FitWork, Problem, StoppingRules
from marginbench.solvers import RBF, Counters, KernelExpansion, OneVsRestModel
from marginbench.solvers.kernels.oracle import KernelOracle

from ..answers import carried_out

PAUSE = 0.05


def busy():
    time.sleep(PAUSE)
    until = time.process_time() + PAUSE
    while time.process_time() < until:
        pass


def model(pause=0.0):
    time.sleep(pause)
    return KernelExpansion(RBF(1.0), np.zeros((0, 1)), np.zeros(0), 0.0, np.zeros(0, int), 4)


class Watched:
    """A monitor, the states that it gives to be judged, and what it sends."""

    reached = False

    def __init__(
        self,
        judge=lambda model: None,
        rules=StoppingRules(),  # noqa: B008 - it is frozen
        **options,
    ):
        self.judge, self.rules = judge, rules
        self.states, self.messages = [], []
        settings = {"first_checkpoint": 100, "factor": 1.5, **options}
        self.monitor = judging.TraceMonitor(self, **settings)
        self.counters = Counters()

    def __call__(self, model, *, final, **state):
        self.states.append(SimpleNamespace(**state))
        return self.judge(model) is not False

    def send(self, message):
        self.messages.append(message)

    def started(self):
        self.monitor.start(self.counters)
        return self.monitor


def test_evaluation_is_not_in_the_clocks():
    watched, begun = Watched(lambda model: busy()), time.monotonic()
    monitor = watched.started()
    for n_iter in (1, 2):
        time.sleep(0.01)
        assert not monitor.record(n_iter, lambda: model(0.2))
    with monitor.paused():
        busy()
        assert not monitor.clocks.running
    with pytest.raises(ArithmeticError), monitor.paused():
        raise ArithmeticError
    assert monitor.clocks.running
    monitor.finish(4, model())
    assert [item.n_iter for item in watched.states] == [1, 2, 4]
    # A busy machine sleeps longer than it is asked to, and other threads use CPU time as well.
    assert 0.02 <= watched.states[-1].wall_s < time.monotonic() - begun - 7 * PAUSE
    assert watched.states[-1].cpu_s < 3 * PAUSE
    # Snapshots that the solver makes are its own affair; what follows is evaluation.
    assert 15 * PAUSE <= monitor.evaluation_s < time.monotonic() - begun
    # Each checkpoint says itself that solving goes on.
    paused = ["evaluate", "solve"]
    phases = [item["phase"] for item in watched.messages if "phase" in item]
    assert phases == ["solve", "evaluate", "evaluate", *paused, *paused, "evaluate"]


def test_processes_that_a_solver_starts_count():
    # As much time of the system, for new memory, as of its own.
    code = "sum(range(10**6)); [bytearray(10**7) for _ in range(8)]"
    before, began, clocks = getrusage(RUSAGE_CHILDREN), time.process_time(), judging.Clocks()
    clocks.resume()
    subprocess.run([sys.executable, "-c", code], check=True)
    clocks.pause()
    now, here = getrusage(RUSAGE_CHILDREN), time.process_time() - began
    spent = (now.ru_utime - before.ru_utime) + (now.ru_stime - before.ru_stime)
    assert spent <= clocks.cpu_s <= spent + here


@pytest.mark.parametrize(
    ("options", "name", "step", "expected"),
    [
        ({}, "kernel_evals", 10, [100, 150, 230, 340, 510, 760]),
        # With 40 evaluations of the kernel.
        ({"factor": 2.0}, "inner_products", 100, [100, 200, 400, 800]),
        # It is asked to stop at 130, and ignores that: the grid goes on as if nothing were.
        ({"rules": StoppingRules(evaluations=130)}, "kernel_evals", 10, [100, 130, 150, 230, 340]),
    ],
)
def test_checkpoints_stand_on_a_geometric_grid_of_all_evaluations(options, name, step, expected):
    watched = Watched(**options)
    watched.counters = Counters(kernel_evals=0 if name == "kernel_evals" else 40)
    monitor, answers = watched.started(), []
    for count in range(step, expected[-1] + 50, step):
        setattr(watched.counters, name, count)
        if monitor.due(watched.counters.evaluations):
            answers.append(monitor.record(count // step, model))
    assert [item.counters[name] for item in watched.states] == expected
    assert answers == [count >= watched.rules.evaluations for count in expected]


@pytest.mark.parametrize("each_epoch", [False, True])
def test_the_end_of_an_epoch_is_a_checkpoint_if_asked_for_and_not_twice(each_epoch):
    watched = Watched(each_epoch=each_epoch, rules=StoppingRules(iterations=30))
    monitor = watched.started()
    monitor.record(10, model)
    ends = [monitor.epoch_ended(n_iter, model) for n_iter in (10, 20, 30)]
    assert ends == [False, False, True]
    found = [item.n_iter for item in watched.states]
    assert found == ([10, 20, 30] if each_epoch else [10])


def test_a_model_of_nan_asks_the_solver_to_stop():
    watched = Watched(lambda model: False)
    assert watched.started().record(1, model) is True
    assert watched.monitor.diverged


def test_counts_are_whole_and_at_least_what_the_oracle_has_handed_out_and_what_they_were():
    X, watched = np.random.default_rng(0).normal(size=(20, 2)), Watched()
    oracle, aside = (KernelOracle("rbf", X, counters=Counters()) for _ in range(2))
    oracle.row(0)  # before the run
    counters = watched.counters = oracle.counters = Counters()
    monitor = watched.started()
    oracle.rows([1, 2])
    counters.inner_products = 5
    with monitor.paused():
        aside.rows([1, 2, 3])  # to look at itself

    def refused(name, count, words):
        before = getattr(counters, name)
        setattr(counters, name, count)
        with pytest.raises(EvaluationError, match=f"{name} is {words}"):
            monitor.finish(2, model())
        setattr(counters, name, before)

    for name in ("kernel_evals", "kernel_evals_computed"):
        refused(name, 39, "39, but the solver has already had 40")
    monitor.record(1, model)
    assert watched.states[-1].counters == counters.as_dict()
    refused("inner_products", 4, "4, but the solver has already had 5")
    refused("inner_products", 5.5, "5.5, not a count")
    refused("inner_products", 2**63, f"{2**63}, not a count")


# What ends a run


GAUSSIAN = Problem(
    "checkers", {"n_train": 200, "n_test": 100}, {"name": "rbf", "gamma": 3.0}, 1.0, False
)


def run(solver, rules, **params):
    """The columns that a run found out, and its checkpoints."""
    params = {"gamma": 3.0, "random_state": 0, **params}
    return carried_out(FitWork(GAUSSIAN, solver, params, 1.19, rules=rules))[:2]


def test_evaluations_end_a_run_within_one_step():
    columns, trace = run("BSGD", StoppingRules(evaluations=2500), max_epochs=1000)
    counted = columns["counters"]["kernel_evals"]
    # A step asks for one row at most, and for as many entries again with maintenance.
    assert 2500 <= counted <= 2500 + 2 * 200
    assert columns["status"] == "budget"
    assert columns["reason"] == f"used {counted} of 2500 evaluations"
    assert trace[-1].n_iter == columns["n_iter"]


def test_iterations_end_a_run_at_the_next_checkpoint():
    columns, trace = run("Pegasos", StoppingRules(iterations=1000), max_epochs=1000)
    assert columns["status"] == "budget"
    assert columns["reason"] == f"used {columns['n_iter']} of 1000 iterations"
    # Checkpoints are a factor of 1.19 apart.
    before = [state.n_iter for state in trace if state.n_iter < columns["n_iter"]]
    assert before[-1] < 1000 <= columns["n_iter"] < 1.19 * 1000 + 1


def test_a_run_that_is_good_enough_ends():
    free, whole = run("SDCA", StoppingRules(), max_epochs=50)
    target = 1.01 * free["primal"]
    columns, trace = run("SDCA", StoppingRules(primal=target), max_epochs=50)
    assert columns["status"] == "budget"
    assert columns["reason"] == "reached the suboptimality asked for"
    assert columns["primal"] <= target
    assert len(trace) < len(whole)
    # The last two are the checkpoint that ended it and the returned model.
    assert all(state.primal > target for state in trace[:-2])
    just, _ = run("SDCA", StoppingRules(primal=free["primal"]), max_epochs=50)
    assert just["reason"] == columns["reason"]


# What a finished run is found to be

POINTS, CLASSES = np.random.default_rng(0).normal(size=(306, 2)), np.arange(306) % 3
THREE = Dataset("", {}, POINTS[:6], CLASSES[:6], POINTS[6:], CLASSES[6:], "", "", "")
SIGNS = [np.where(CLASSES[:6] == label, 1.0, -1.0) for label in range(3)]
PARTS = (KernelExpansion(RBF(3.0), POINTS[:6], each, 0.0, np.arange(6), 6) for each in SIGNS)
MODEL = OneVsRestModel(tuple(PARTS))


@pytest.fixture
def judge():
    """Has been given a model of three classes for the end."""
    problem = replace(GAUSSIAN, C=2.0)
    made = judging.Judgement(problem, THREE, True, 1.0, StoppingRules(), lambda message: None)
    made(plain_model(MODEL), final=True, n_iter=1, counters=None, wall_s=0.0, cpu_s=0.0)
    return made


def test_converged_allows_a_gap_of_twice_tol_for_each_class_and_what_float32_hides(judge):
    scores = judge.evaluator.test_scores(MODEL, judging.compared_rows(300))
    # Of six points and C = 2, in units of the mean loss.
    gap, hidden = judge.final.gap / 12.0, 2.0 * judge.evaluator.score_noise(MODEL)
    least = (gap - hidden) / (2.0 * 3)
    judge.tol = least * (1 + 1e-8)
    assert judge.verdict("converged", scores) == ("converged", "")
    # A limit that is reached ends a run, whatever the solver says.
    judge.rules = StoppingRules(iterations=1)
    assert judge.verdict("converged", scores) == ("budget", "used 1 of 1 iterations")
    judge.tol = least * (1 - 1e-8)
    with pytest.raises(EvaluationError, match=rf"duality gap is {gap:.3g} in units of the mean"):
        judge.verdict("converged", scores)


def test_scores_may_differ_by_a_millionth_beyond_what_float32_hides(judge):
    rows = judging.compared_rows(300)
    bounds = judge.evaluator.score_bounds(MODEL, rows)
    assert len(rows) == 200
    for point, end, sign in ((0, 0, -1), (299, 1, 1)):
        scores, place = sum(bounds) / 2, (list(rows).index(point), 1)
        worst = bounds[end][place]
        scores[place] = worst + sign * 0.9e-6 * (1 + abs(worst))
        assert judge.verdict("converged", scores) == ("converged", "")
        for wrong in (worst + sign * 1.1e-6 * (1 + abs(worst)), np.nan):
            scores[place] = wrong
            words = f"gives {wrong:.6g} for test point {point}, the returned model"
            with pytest.raises(EvaluationError, match=words):
                judge.verdict("converged", scores)
