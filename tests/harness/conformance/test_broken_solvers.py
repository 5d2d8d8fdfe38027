"""Each check catches the fault that it is meant for, in a solver that is right but for that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from marginbench.harness.conformance.findings import CHECKS
from marginbench.harness.conformance.running import checked
from marginbench.harness.conformance.scaffold import Names, write_solver
from marginbench.harness.loading import load_class
from marginbench.solvers import PCT, Solution, Solver, WeightedSolver, hyperparameters


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> type[Solver]:
    """The solver that ``marginbench new solver`` writes."""
    folder = tmp_path_factory.mktemp("good")
    write_solver(Names("Good", "good_solver"), folder)
    return load_class("good_solver.py:Good", folder)


def own_init(good: type[Any]) -> type[Any]:
    class Own(good):
        def __init__(self, C=1.0, max_epochs=100):
            self.C = float(C)
            self.max_epochs = max_epochs

    return Own


def no_default(good: type[Any]) -> type[Any]:
    class Own(good):
        def __init__(self, width):
            self.width = width

    return Own


def unknown_scalarization(good: type[Any]) -> type[Any]:
    class Own(good):
        scalarization = "c"

    return Own


def bias_without_parameter(good: type[Any]) -> type[Any]:
    class Own(Solver):
        supports_bias = True
        scalarization = None

        def _solve(self, problem, monitor):
            return Solution(problem.expansion(problem.y), 1, "converged")

    return hyperparameters(Own)


def many_points_only(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            if problem.n < 30:
                raise RuntimeError("too few points")
            return super()._solve(problem, monitor)

    return Own


def writes_to_the_points(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            if not sparse.issparse(problem.X):
                problem.X /= np.linalg.norm(problem.X, axis=1, keepdims=True)
            return super()._solve(problem, monitor)

    return Own


def changed_model(good: type[Any], change: Any) -> type[Any]:
    """A solver whose final coefficients are changed."""

    class Own(good):
        def _solve(self, problem, monitor):
            solution = super()._solve(problem, monitor)
            coef = change(solution.model.coef)
            return replace(solution, model=replace(solution.model, coef=coef))

    return Own


def wrong_sign(good: type[Any]) -> type[Any]:
    return changed_model(good, lambda coef: -coef)


def not_finite(good: type[Any]) -> type[Any]:
    return changed_model(good, lambda coef: coef * np.nan)


def beyond_the_box(good: type[Any]) -> type[Any]:
    return changed_model(good, lambda coef: 1.5 * coef)


def tells_its_end_twice(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            solution = super()._solve(problem, monitor)
            monitor.finish(solution.n_iter, solution.model)
            return solution

    return Own


def takes_anything(good: type[Any]) -> type[Any]:
    class Own(good):
        def fit(self, X, y, monitor=None):
            X = np.nan_to_num(X.toarray() if sparse.issparse(X) else X)
            return super().fit(X, y, monitor=monitor)

    return Own


def checks_no_parameter(good: type[Any]) -> type[Any]:
    class Own(good):
        def _check_parameters(self):
            pass

    return Own


class _Draws:
    """A problem whose draws are those of another generator."""

    def __init__(self, problem: Any, rng: Any) -> None:
        self._problem, self.rng = problem, rng

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)


def draws_without_seed(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            return super()._solve(_Draws(problem, np.random.default_rng()), monitor)

    return Own


def seeds_the_global_state(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            np.random.seed(0)  # noqa: NPY002
            return super()._solve(problem, monitor)

    return Own


def goes_on_counting(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            solution = super()._solve(problem, monitor)
            self.total = getattr(self, "total", 0) + solution.n_iter
            return replace(solution, n_iter=self.total)

    return Own


def starts_where_it_ended(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            # Of a fit to as many points, which a fit to fewer does not show.
            before = getattr(self, "known", {}).get(problem.n, 0)
            solution = super()._solve(problem, monitor)
            self.known = {problem.n: before + solution.n_iter}
            return replace(solution, n_iter=before + solution.n_iter)

    return Own


def changes_its_parameters(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            self.max_epochs = 150
            return super()._solve(problem, monitor)

    return Own


def goes_around_the_oracle(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            points = problem.oracle.points
            problem.kernel.block(points, points)
            return super()._solve(problem, monitor)

    return Own


def resets_the_counters(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            solution = super()._solve(problem, monitor)
            problem.counters.kernel_evals = 1
            return solution

    return Own


def counts_nothing(good: type[Any]) -> type[Any]:
    class Own(good):
        scalarization = certificate = None
        supports_callable_kernel = False

        def _solve(self, problem, monitor):
            y = problem.y
            means = np.where(y > 0, 1 / (y > 0).sum(), -1 / (y < 0).sum())
            return Solution(problem.expansion(means), 1, "converged")

    return Own


def other_scores(good: type[Any]) -> type[Any]:
    class Own(good):
        def decision_function(self, X):
            return super().decision_function(X) + 0.01

    return Own


def other_objective(good: type[Any]) -> type[Any]:
    class Own(good):
        certificate = None

        def _solve(self, problem, monitor):
            C, self.C = self.C, self.C / problem.n
            try:
                return super()._solve(problem, monitor)
            finally:
                self.C = C

    return Own


def converged_at_once(good: type[Any]) -> type[Any]:
    class Own(good):
        certificate = None

        def _solve(self, problem, monitor):
            epochs, self.max_epochs = self.max_epochs, 1
            try:
                return replace(super()._solve(problem, monitor), status="converged", shortfall="")
            finally:
                self.max_epochs = epochs

    return Own


class _Curious:
    """A monitor whose questions move the solver's draws."""

    def __init__(self, monitor: Any, problem: Any) -> None:
        self._monitor, self._problem = monitor, problem

    def __getattr__(self, name: str) -> Any:
        return getattr(self._monitor, name)

    def record(self, n_iter: int, snapshot: Any) -> bool:
        self._problem.rng.random()
        return bool(self._monitor.record(n_iter, snapshot))


def draws_for_checkpoints(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            return super()._solve(problem, _Curious(monitor, problem))

    return Own


class _Live:
    """A monitor that is shown one model, which goes on changing."""

    def __init__(self, monitor: Any) -> None:
        self._monitor, self._model = monitor, None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._monitor, name)

    def record(self, n_iter: int, snapshot: Any) -> bool:
        now = snapshot()
        if self._model is None or self._model.coef.shape != now.coef.shape:
            self._model = now
        self._model.coef[:] = now.coef
        return bool(self._monitor.record(n_iter, lambda: self._model))


def live_snapshots(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            return super()._solve(problem, _Live(monitor))

    return Own


class _Deaf:
    """A monitor whose requests to stop are lost."""

    def __init__(self, monitor: Any) -> None:
        self._monitor = monitor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._monitor, name)

    def record(self, n_iter: int, snapshot: Any) -> bool:
        self._monitor.record(n_iter, snapshot)
        return False


def does_not_stop(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            return super()._solve(problem, _Deaf(monitor))

    return Own


def stops_in_silence(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            solution = super()._solve(problem, monitor)
            return replace(
                solution, status="budget" if solution.status == "stopped" else "converged"
            )

    return Own


def ignores_its_limit(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            epochs, self.max_epochs = self.max_epochs, 10
            try:
                return super()._solve(problem, monitor)
            finally:
                self.max_epochs = epochs

    return Own


def no_shortfall(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            return replace(super()._solve(problem, monitor), shortfall="")

    return Own


def by_storage(good: type[Any], is_other: Any) -> type[Any]:
    """A solver that has other coefficients for points in another form."""

    class Own(good):
        def _solve(self, problem, monitor):
            solution = super()._solve(problem, monitor)
            if not is_other(problem.X):
                return solution
            coef = solution.model.coef.astype(np.float16).astype(np.float64)
            return replace(solution, model=replace(solution.model, coef=coef))

    return Own


def rounds_sparse_data(good: type[Any]) -> type[Any]:
    return by_storage(good, sparse.issparse)


def rounds_float32_data(good: type[Any]) -> type[Any]:
    return by_storage(good, lambda X: X.dtype == np.float32)


class _OwnRows:
    """A problem whose oracle takes every row for one of a Gaussian kernel."""

    def __init__(self, problem: Any, gamma: float) -> None:
        self._problem, self._gamma = problem, gamma
        self.oracle = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def diag(self) -> Any:
        return np.ones(self.n)

    def row(self, i: int) -> Any:
        distances = np.square(self.X - self.X[i]).sum(axis=1)
        return np.exp(-self._gamma * distances)


def own_gram_matrix(good: type[Any]) -> type[Any]:
    class Own(good):
        scalarization = certificate = None
        supports_sparse = False

        def _solve(self, problem, monitor):
            gamma = getattr(problem.kernel, "gamma", self.gamma)
            return super()._solve(_OwnRows(problem, gamma), monitor)

    return Own


def numbers_as_labels(good: type[Any]) -> type[Any]:
    class Own(good):
        def fit(self, X, y, monitor=None):
            return super().fit(X, np.sign(y), monitor=monitor)

    return Own


def keeps_scores_for_the_next_class(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            solution = super()._solve(problem, monitor)
            coef = problem.once("coef", lambda: np.zeros(problem.n))
            coef[solution.model.support] += solution.model.coef
            return replace(solution, model=problem.expansion(coef))

    return Own


def ignores_weights(good: type[Any]) -> type[Any]:
    class Own(WeightedSolver):
        scalarization = None

        def _solve(self, problem, monitor):
            return Solution(problem.expansion(problem.y), 1, "converged")

    return hyperparameters(Own)


def first_rows_only(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            solution = super()._solve(problem, monitor)
            coef = np.zeros(problem.n)
            coef[solution.model.support] = solution.model.coef
            coef[problem.n // 2 :] = 0
            return replace(solution, model=problem.expansion(coef))

    return Own


def keeps_a_function(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            self.step_ = lambda x: x
            return super()._solve(problem, monitor)

    return Own


def keeps_a_part_beside_its_model(good: type[Any]) -> type[Any]:
    class Own(good):
        def _solve(self, problem, monitor):
            self.shift_ = 0.5
            return super()._solve(problem, monitor)

        def decision_function(self, X):
            return super().decision_function(X) + getattr(self, "shift_", 0.0)

    return Own


#: A fault -> the check that is meant for it, and words of what it says.
FAULTS = {
    own_init: ("scikit-learn", "check_do_not_raise_errors_in_init_or_set_param"),
    no_default: ("constructor", "width has no default"),
    unknown_scalarization: (
        "traits",
        "scalarization is 'c'; it must be one of 'C', 'R', 'S', None",
    ),
    bias_without_parameter: ("traits", "there is no parameter fit_intercept"),
    many_points_only: ("warm-up", "it raises RuntimeError: too few points"),
    writes_to_the_points: ("warm-up", "output array is read-only ("),
    wrong_sign: ("fit", "check the signs of the coefficients"),
    not_finite: ("fit", "the returned model holds NaN or infinity"),
    tells_its_end_twice: ("fit", "monitor.start and monitor.finish once each"),
    takes_anything: ("scikit-learn", "doesn't check for NaN and inf in fit"),
    checks_no_parameter: ("bad parameters", "C=0.0"),
    draws_without_seed: ("determinism", "differ in model"),
    goes_on_counting: ("refitting", "differs from a new one in n_iter"),
    starts_where_it_ended: ("refitting", "differs from a new one in n_iter"),
    seeds_the_global_state: ("side effects", "fit uses the global random state"),
    changes_its_parameters: ("side effects", "fit changes parameters"),
    goes_around_the_oracle: ("counters", "kernel entries were computed, but"),
    resets_the_counters: ("counters", "kernel_evals falls during the run"),
    counts_nothing: ("counters", "it counts nothing"),
    other_scores: ("scores", "the returned model"),
    other_objective: ("objective", "check the objective, or how the stopping rule"),
    converged_at_once: ("objective", "it says converged at tol=1e-05"),
    beyond_the_box: ("certificate", "the coefficients are no dual point"),
    draws_for_checkpoints: ("monitor", "with a monitor the fit differs in model"),
    live_snapshots: ("checkpoints", "changed later; snapshot() must copy"),
    does_not_stop: ("stopping", "it goes on after monitor.record has returned True"),
    stops_in_silence: ("stopping", "stopped by the monitor, it says 'budget'"),
    ignores_its_limit: ("limits", "with max_epochs=2 it does"),
    no_shortfall: ("limits", "give the Solution a shortfall"),
    rounds_sparse_data: ("sparse data", "scores with CSR data differ by"),
    rounds_float32_data: ("float32 data", "scores with float32 data differ by"),
    own_gram_matrix: ("kernel function", "take every entry from problem.oracle"),
    numbers_as_labels: ("scikit-learn", "needs at least two classes in y"),
    keeps_scores_for_the_next_class: ("several classes", "class 2 of 3 differs by"),
    ignores_weights: ("weights", "weights change nothing"),
    first_rows_only: ("fit", "do not rely on the order of the rows"),
    keeps_a_part_beside_its_model: ("saving", "its model must hold all"),
    keeps_a_function: ("scikit-learn", "check_estimators_pickle: "),
}


def test_every_check_of_estimators_has_a_fault_that_it_catches() -> None:
    assert {check for check, _ in FAULTS.values()} == set(CHECKS["estimator"])


Broken = Callable[[Any], type[Any]]


@pytest.fixture
def broken(good: type[Any], monkeypatch: pytest.MonkeyPatch) -> Broken:
    """The solver with a fault, as a class that pickle finds by its name."""

    def with_fault(fault: Any) -> type[Any]:
        cls: type[Any] = fault(good)
        cls.__qualname__ = cls.__name__ = f"Broken{fault.__name__}"
        monkeypatch.setattr(sys.modules[cls.__module__], cls.__name__, cls, raising=False)
        return cls

    return with_fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_caught_by_the_check_that_is_meant_for_it(broken: Broken, fault: Any) -> None:
    check, words = FAULTS[fault]
    found = checked(broken(fault), "estimator", check)
    assert found.verdict == "fail"
    assert words in found.detail
    assert "\n" not in found.detail


def test_what_scikit_learn_asserts_without_a_word_is_shown(broken: Broken) -> None:
    found = checked(broken(wrong_sign), "estimator", "scikit-learn")
    assert found.detail.startswith("check_classifiers_train: assert accuracy_score(")


#: Faults that are about one thing: no other check may fail.
SINGLE = [
    *(unknown_scalarization, takes_anything, checks_no_parameter, goes_on_counting),
    *(seeds_the_global_state, goes_around_the_oracle, resets_the_counters, counts_nothing),
    *(other_scores, other_objective, draws_for_checkpoints, live_snapshots, does_not_stop),
    *(stops_in_silence, no_shortfall, rounds_sparse_data, rounds_float32_data),
    *(keeps_scores_for_the_next_class, keeps_a_function),
]


def failing(cls: type[Any], *, but: str = "") -> set[str]:
    found = (checked(cls, "estimator", check) for check in CHECKS["estimator"] if check != but)
    return {finding.check for finding in found if finding.verdict == "fail"}


def test_the_solver_without_a_fault_passes(good: type[Any]) -> None:
    assert failing(good) == set()


@pytest.mark.slow
@pytest.mark.parametrize("fault", SINGLE, ids=lambda fault: fault.__name__)
def test_a_fault_of_one_thing_is_caught_by_one_check(broken: Broken, fault: Any) -> None:
    check = FAULTS[fault][0]
    # scikit-learn's takes longer than all others together.
    but = "" if check == "scikit-learn" else "scikit-learn"
    assert failing(broken(fault), but=but) == {check}


def wrong_certificate() -> type[Any]:
    class Own(PCT):
        def solve(self, A, *, max_seconds=np.inf):
            found = super().solve(A, max_seconds=max_seconds)
            return replace(found, y=-found.y)

    return Own


def undecided() -> type[Any]:
    class Own(PCT):
        def solve(self, A, *, max_seconds=np.inf):
            return replace(super().solve(A, max_seconds=max_seconds), status="budget")

    return Own


def no_result() -> type[Any]:
    class Own(PCT):
        def solve(self, A, *, max_seconds=np.inf):
            return super().solve(A, max_seconds=max_seconds).y

    return Own


def uncounted() -> type[Any]:
    class Own(PCT):
        def solve(self, A, *, max_seconds=np.inf):
            found = super().solve(A, max_seconds=max_seconds)
            return replace(found, counters=replace(found.counters, matvecs=0))

    return Own


def counts_on() -> type[Any]:
    class Own(PCT):
        runs = 0

        def solve(self, A, *, max_seconds=np.inf):
            found = super().solve(A, max_seconds=max_seconds)
            Own.runs += found.counters.matvecs
            return replace(found, counters=replace(found.counters, matvecs=Own.runs))

    return Own


def endless() -> type[Any]:
    class Own(PCT):
        def solve(self, A, *, max_seconds=np.inf):
            return PCT(max_iter=50, tol=self.tol).solve(A, max_seconds=max_seconds)

    return Own


def forgiving() -> type[Any]:
    class Own(PCT):
        def solve(self, A, *, max_seconds=np.inf):
            self.tol = abs(np.nan_to_num(self.tol))
            return super().solve(A, max_seconds=max_seconds)

    return Own


def takes_any_columns() -> type[Any]:
    class Own(PCT):
        def solve(self, A, *, max_seconds=np.inf):
            A = np.nan_to_num(A, posinf=0.0) if isinstance(A, np.ndarray) else A
            return super().solve(A, max_seconds=max_seconds)

    return Own


METHOD_FAULTS = {
    wrong_certificate: ("certificates", "y does not separate"),
    undecided: ("certificates", "ends with the status 'budget'"),
    no_result: ("solve", "solve returns ndarray"),
    uncounted: ("counters", "have no matrix-vector product"),
    counts_on: ("determinism", "differ in counters"),
    endless: ("limits", "with max_iter=3 it does"),
    forgiving: ("bad parameters", "tol=-1.0 is accepted"),
    takes_any_columns: ("bad data", "NaN is accepted"),
}


@pytest.mark.parametrize("fault", METHOD_FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_of_a_method_is_caught(fault: Any) -> None:
    check, words = METHOD_FAULTS[fault]
    found = checked(fault(), "method", check)
    assert found.verdict == "fail"
    assert words in found.detail
