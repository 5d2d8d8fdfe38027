"""Each check catches the fault that it is meant for, in a solver that is right but for that."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import check_classifiers_train

from marginbench.harness.conformance import estimators
from marginbench.harness.conformance.running import CHECKS, checked
from marginbench.harness.conformance.scaffold import write_solver
from marginbench.harness.loading import load_class
from marginbench.solvers import (
    PCT,
    SBP,
    SDCA,
    SMO,
    Solution,
    Solver,
    WeightedSolver,
    hyperparameters,
)

#: A fault -> a class that has it, the check that is meant for it, and words of what that says.
FAULTS = {}


def broken(name, check, words, base=SDCA, **attributes):
    """A class with a fault: some of its attributes are others."""
    cls = type(f"Broken_{name}", (base,), {"__module__": __name__, **attributes})
    globals()[cls.__name__] = cls  # pickle finds it by its name
    FAULTS[name] = cls, check, words


def fault(check, words, **attributes):
    """A fault of ``_solve``, given the right one as the last argument."""

    def of(change):
        def _solve(self, problem, monitor):
            def solve(problem=problem, monitor=monitor):
                return SDCA._solve(self, problem, monitor)

            return change(self, problem, monitor, solve)

        broken(change.__name__, check, words, _solve=_solve, **attributes)

    return of


def outcome(name, check, words, change):
    """A fault in what ``_solve`` returns: the solution with changes that depend on it."""

    def _solve(self, problem, monitor):
        solution = SDCA._solve(self, problem, monitor)
        return replace(solution, **change(solution))

    broken(name, check, words, _solve=_solve)


class Other:
    """A problem or a monitor of which some attributes are others."""

    def __init__(self, inner, **own):
        self.__dict__ |= {"inner": inner, **own}

    def __getattr__(self, name):
        return getattr(self.inner, name)


def takes_anything(self, X, y, monitor=None):
    X = np.nan_to_num(X.toarray() if sparse.issparse(X) else X)
    return SDCA.fit(self, X, y, monitor=monitor)


def with_fitted(**values):
    """A fit that sets attributes at its end."""

    def fit(self, X, y, *, monitor=None):
        SDCA.fit(self, X, y, monitor=monitor)
        vars(self).update(values)
        return self

    return fit


broken("words_for_n_iter", "fit", "n_iter_ is 'many'; return", fit=with_fitted(n_iter_="many"))
broken("negative_n_iter", "fit", "n_iter_ is -1; return", fit=with_fitted(n_iter_=-1))
broken("no_counters", "fit", "counters_ is None although", fit=with_fitted(counters_=None))
broken("no_default", "constructor", "width has no default", __init__=lambda self, width: None)
broken("takes_anything", "scikit-learn", "check for NaN and inf in fit", fit=takes_anything)
broken(
    *("other_scores", "fit", "the returned model"),
    decision_function=lambda self, X: SDCA.decision_function(self, X) + 0.01,
)
broken("unknown_scalarization", "traits", "scalarization is 'c'; it must", scalarization="c")
broken("one_for_true", "traits", "supports_sparse is 1; it must", supports_sparse=1)
broken("denies_its_draws", "determinism", "deterministic is True, but with", deterministic=True)


@hyperparameters
class IgnoresWeights(WeightedSolver):
    scalarization = None

    def _solve(self, problem, monitor):
        return Solution(problem.expansion(problem.y), 1, "converged")


@hyperparameters
class HasNoParameterOfTheBias(Solver):
    supports_bias, scalarization = True, None
    _solve = IgnoresWeights._solve


broken("no_bias", "traits", "there is no parameter fit_intercept", HasNoParameterOfTheBias)
broken("ignores_weights", "weights", "weights change nothing", IgnoresWeights)


@fault("weights", "with weights its objective is")
def squares_weights(self, problem, monitor, solve):
    return solve(Other(problem, weights=problem.weights**2))


@fault(
    *("saving", "its model must hold all"),
    decision_function=lambda self, X: SDCA.decision_function(self, X) + vars(self).get("shift_", 0),
)
def keeps_a_part_beside_its_model(self, problem, monitor, solve):
    self.shift_ = 0.5
    return solve()


@fault("warm-up", "output array is read-only (")
def writes_to_the_points(self, problem, monitor, solve):
    if not sparse.issparse(problem.X):
        problem.X /= np.linalg.norm(problem.X, axis=1, keepdims=True)
    return solve()


def other_coef(change):
    return lambda found: {"model": replace(found.model, coef=change(found.model.coef))}


outcome("wrong_sign", "fit", "check the signs of the coefficients", other_coef(lambda c: -c))
outcome("not_finite", "fit", "is not finite", other_coef(lambda c: np.nan * c))
outcome("beyond_the_box", "certificate", "no feasible dual point", other_coef(lambda c: 1.5 * c))
outcome("no_shortfall", "limits", "give the Solution a shortfall", lambda found: {"shortfall": ""})
outcome(
    *("says_converged", "limits", "it says converged, but its objective is"),
    lambda found: {"status": "converged", "shortfall": ""},
)
outcome(
    *("stops_in_silence", "stopping", "stopped by the monitor, it says 'budget'"),
    lambda found: {"status": "budget" if found.status == "stopped" else "converged"},
)


@fault("fit", "fit calls monitor.finish twice")
def tells_its_end_twice(self, problem, monitor, solve):
    solution = solve()
    monitor.finish(solution.n_iter, solution.model)
    return solution


@fault("determinism", "differ in model")
def draws_without_seed(self, problem, monitor, solve):
    return solve(Other(problem, rng=np.random.default_rng()))


@fault("side effects", "fit uses the global random state")
def seeds_the_global_state(self, problem, monitor, solve):
    np.random.seed(0)  # noqa: NPY002
    return solve()


@fault("side effects", "fit changes parameters")
def changes_its_parameters(self, problem, monitor, solve):
    self.max_epochs = 150
    return solve()


@fault("refitting", "differs from a new one in n_iter")
def starts_where_it_ended(self, problem, monitor, solve):
    # Of a fit to as many points, which a fit to fewer does not show.
    before = getattr(self, "known", {}).get(problem.n, 0)
    solution = solve()
    self.known = {problem.n: before + solution.n_iter}
    return replace(solution, n_iter=before + solution.n_iter)


@fault("counters", "kernel entries were computed, but")
def goes_around_the_oracle(self, problem, monitor, solve):
    problem.kernel.block(problem.oracle.points, problem.oracle.points)
    return solve()


@fault("counters", "but the solver")
def counts_twice(self, problem, monitor, solve):
    solution = solve()
    problem.counters.kernel_evals *= 2
    return solution


NO_PROBLEM = {"scalarization": None, "certificate": None}


@fault("counters", "it counts nothing", supports_callable_kernel=False, **NO_PROBLEM)
def counts_nothing(self, problem, monitor, solve):
    y = problem.y
    means = np.where(y > 0, 1 / (y > 0).sum(), -1 / (y < 0).sum())
    return Solution(problem.expansion(means), 1, "converged")


def meanwhile(solver, solve, **values):
    """The solution with other parameters than those that it has."""
    before = {name: getattr(solver, name) for name in values}
    vars(solver).update(values)
    try:
        return solve()
    finally:
        vars(solver).update(before)


@fault("objective", "check how the stopping rule measures tol", certificate=None)
def other_objective(self, problem, monitor, solve):
    return meanwhile(self, solve, C=self.C / problem.n)


@fault("objective", "it says converged at tol=1e-05", certificate=None)
def converged_at_once(self, problem, monitor, solve):
    return replace(meanwhile(self, solve, max_epochs=1), status="converged", shortfall="")


@fault("limits", "with max_epochs=2 it does")
def ignores_its_limit(self, problem, monitor, solve):
    return meanwhile(self, solve, max_epochs=10)


@fault("monitor", "with a monitor the fit differs in model")
def draws_for_checkpoints(self, problem, monitor, solve):
    def record(n_iter, snapshot):
        problem.rng.random()
        return monitor.record(n_iter, snapshot)

    return solve(problem, Other(monitor, record=record))


@fault("checkpoints", "changed later; snapshot() must copy")
def live_snapshots(self, problem, monitor, solve):
    shown = []

    def record(n_iter, snapshot):
        now = snapshot()
        if not shown or shown[0].coef.shape != now.coef.shape:
            shown[:] = [now]
        shown[0].coef[:] = now.coef
        return monitor.record(n_iter, lambda: shown[0])

    return solve(problem, Other(monitor, record=record))


@fault("stopping", "it goes on after monitor.record has returned True")
def does_not_stop(self, problem, monitor, solve):
    def record(n_iter, snapshot):
        monitor.record(n_iter, snapshot)
        return False

    return solve(problem, Other(monitor, record=record))


def rounded(solution):
    return replace(solution, **other_coef(lambda c: c.astype(np.float16).astype(float))(solution))


@fault("sparse data", "the model of CSR data differs by")
def rounds_sparse_data(self, problem, monitor, solve):
    return rounded(solve()) if sparse.issparse(problem.X) else solve()


@fault("float32 data", "the model of float32 data differs by")
def rounds_float32_data(self, problem, monitor, solve):
    return rounded(solve()) if problem.X.dtype == np.float32 else solve()


@fault(
    "kernel function", "take every entry from problem.oracle", supports_sparse=False, **NO_PROBLEM
)
def own_gram_matrix(self, problem, monitor, solve):
    X, gamma = problem.X, getattr(problem.kernel, "gamma", self.gamma)
    K = np.exp(-gamma * np.square(X[:, None] - X).sum(axis=2))
    return Solution(problem.expansion(problem.y / K.sum(axis=1)), 1, "converged")


@fault("several classes", "class 2 of 3 differs by")
def keeps_scores_for_the_next_class(self, problem, monitor, solve):
    solution = solve()
    coef = problem.once("coef", lambda: np.zeros(problem.n))
    coef[solution.model.support] += solution.model.coef
    return replace(solution, model=problem.expansion(coef))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_the_check_that_is_meant_for_it(name):
    cls, check, words = FAULTS[name]
    found = checked(cls, "estimator", check)
    assert found.verdict == "fail"
    assert words in found.detail
    assert "\n" not in found.detail


def test_what_is_written_to_begin_with_passes_and_every_check_has_a_fault_that_it_catches(tmp_path):
    write_solver("GoodSolver", tmp_path)
    good = load_class("good_solver.py:GoodSolver", tmp_path)
    found = [checked(good, "estimator", check) for check in CHECKS["estimator"]]
    assert [finding for finding in found if finding.verdict == "fail"] == []
    assert {check for _, check, _ in FAULTS.values()} == set(CHECKS["estimator"])


WITHOUT_ITERATIONS = type("Single", (SDCA,), {"fit": with_fitted(n_iter_=0)})


@pytest.mark.parametrize(
    ("cls", "check"),
    [
        (WITHOUT_ITERATIONS, "fit"),
        # It needs no parameters for what it does not support.
        (IgnoresWeights, "traits"),
        # Its slack is that of the solution for C.
        (SBP, "objective"),
        # It counts iterations, not epochs.
        (SMO, "limits"),
    ],
)
def test_what_is_allowed_is_no_fault(cls, check):
    assert checked(cls, "estimator", check).verdict == "pass"


def test_solutions_within_the_tolerance_may_differ():
    tols = itertools.cycle([1.0, 0.3, 0.1])

    class Uneven(SMO):
        supports_no_bias = False

        def _solve(self, problem, monitor):
            def solve():
                return SMO._solve(self, problem, monitor)

            return meanwhile(self, solve, tol=self.tol * next(tols))

    assert checked(Uneven, "estimator", "several classes").verdict == "pass"


def test_what_scikit_learn_asserts_without_a_word_is_shown_and_how_many_more_fail(monkeypatch):
    wrong, names = FAULTS["wrong_sign"][0], ["check_class_weight_classifiers"]
    with pytest.raises(AssertionError) as caught:
        check_classifiers_train("Own", wrong())

    def check_estimator(solver, **options):
        failed = {"status": "failed", "exception": caught.value}
        return [{"check_name": name, **failed} for name in names]

    monkeypatch.setattr(estimators, "check_estimator", check_estimator)  # all take seconds
    for name, others in (("check_classifiers_train", 0), ("check_dtype", 1)):
        names.append(name)
        found = checked(wrong, "estimator", "scikit-learn")
        assert found.detail.startswith("check_classifiers_train: assert accuracy_score(")
        assert found.detail.count("(and 1 more check)") == found.detail.count("(and") == others
    # What looks for a separator need not find one there.
    assert checked(IgnoresWeights, "estimator", "scikit-learn").detail.startswith("check_dtype: ")


# Feasibility methods


def changed(**changes):
    """A method whose results have changes, by what they are."""

    class Own(PCT):
        def solve(self, A, *, max_seconds=np.inf):
            found = super().solve(A, max_seconds=max_seconds)
            return replace(found, **{name: change(found) for name, change in changes.items()})

    return Own


class CountsOn(PCT):
    total = 0

    def solve(self, A, *, max_seconds=np.inf):
        found = super().solve(A, max_seconds=max_seconds)
        CountsOn.total += found.counters.matvecs
        return replace(found, counters=replace(found.counters, matvecs=CountsOn.total))


class Bare(PCT):
    def solve(self, A, *, max_seconds=np.inf):
        return super().solve(A, max_seconds=max_seconds).y


class Endless(PCT):
    def solve(self, A, *, max_seconds=np.inf):
        return PCT(max_iter=50, tol=self.tol).solve(A, max_seconds=max_seconds)


def nothing_counted(found):
    return replace(found.counters, matvecs=0)


@pytest.mark.parametrize(
    ("cls", "check", "words"),
    [
        (changed(y=lambda found: -found.y), "certificates", "y does not separate"),
        (changed(status=lambda found: "budget"), "certificates", "with the status 'budget'"),
        (changed(counters=nothing_counted), "counters", "have no matrix-vector product"),
        (Bare, "solve", "solve returns ndarray"),
        (CountsOn, "determinism", "differ in counters"),
        (Endless, "limits", "with max_iter=3 it does"),
    ],
)
def test_a_fault_of_a_method_is_caught(cls, check, words):
    found = checked(cls, "method", check)
    assert found.verdict == "fail"
    assert words in found.detail
