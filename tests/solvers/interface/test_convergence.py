"""A run that ends at its limit before its rule is met warns, with what it achieved."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from marginbench.solvers import SMO, LinearModel, LinearSDCA, Solution, Solver, registry

#: Methods with a fixed horizon: they have no rule to fall short of.
WITHOUT_A_RULE = {"SGD", "Pegasos", "BSCA", "BSGD", "LinearPegasos"}
#: The solvers with a rule: that they say how far they are from it does not depend on packages.
RULED = sorted(
    name
    for name, solver in registry().items()
    if not solver.requires and name not in WITHOUT_A_RULE
)
#: The peers take no tol=0; the perceptrons and feasibility methods look for a separator.
ASK_FOR_MORE = {"Perceptron", "BatchPerceptron", "LIBLINEAR", "LIBSVM", "LIBSVMSubsample"}
ASK_FOR_MORE |= {"MPKFP", "KPCT", "KVN", "SNKP", "ISNKPVN"}


@pytest.fixture(scope="module")
def points():
    """Two classes that overlap: no method is done with them at once."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, 1, -1)
    return rng.standard_normal((60, 3)) + 0.3 * y[:, None], y


def short(name, **params):
    """A solver that may take one step or pass, and the limit in words."""
    solver = registry()[name]()
    known = solver.get_params()
    limit = "max_iter" if "max_iter" in known else "max_epochs"
    given = {limit: 1, "random_state": 0, **params}
    return solver.set_params(**{key: given[key] for key in given if key in known}), f"{limit}=1"


def warnings_of(solver, X, y, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solver.fit(X, y, **options)
    return [item for item in caught if issubclass(item.category, ConvergenceWarning)]


@pytest.mark.parametrize("name", RULED)
def test_a_run_that_ends_at_its_limit_says_what_it_fell_short_of(points, name):
    solver, limit = short(name, tol=1e-9, min_improvement=1e-9)
    rule = r"(tol|min_improvement)=1e-09|target_margin=\S+"
    ended = rf"^{name} ended at {limit} before it converged: .*\b({rule})"
    with pytest.warns(ConvergenceWarning, match=ended) as caught:
        solver.fit(*points)
    assert solver.status_ == "budget"
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", sorted({*RULED} - ASK_FOR_MORE | WITHOUT_A_RULE))
def test_who_asks_for_no_more_than_the_limit_is_not_warned(points, name):
    solver, _ = short(name, tol=0.0, min_improvement=0.0)
    assert not warnings_of(solver, *points)
    assert solver.status_ == "budget"


@pytest.mark.parametrize("name", RULED)
def test_a_run_that_converges_does_not_warn(name):
    X = np.array([[2.0, 0.0], [1.5, 1.0], [-2.0, 0.0], [-1.5, -1.0]] * 5)
    params = {"tol": 0.3} if name in ("SBP", "SIMBA", "Pegasos") else {}
    if name == "SklearnSGD":
        params = {"min_improvement": 1e-3}
    solver = registry()[name](**params)
    assert not warnings_of(solver, X, np.sign(X[:, 0]))
    assert solver.status_ == "converged"


@pytest.mark.parametrize(
    ("limits", "ended"),
    [
        ({}, "its limit"),
        ({"max_epochs": 3}, "max_epochs=3"),
        ({"max_iter": None}, r"its default limit \(max_iter=None\)"),
    ],
)
def test_a_custom_solver_warns_in_the_same_way(points, limits, ended):
    class Bare(Solver):
        def _solve(self, problem, monitor):
            return Solution(LinearModel(np.ones(3)), 1, "budget", "the gap is 7")

    for name, value in limits.items():
        setattr(Bare, name, value)
    with pytest.warns(ConvergenceWarning, match=f"^Bare ended at {ended} before it .*gap is 7$"):
        Bare().fit(*points)


@pytest.mark.parametrize("stopping", ["gap", "gradient"])
def test_linear_ascent_says_what_its_last_point_fell_short_of(points, stopping):
    X, y = points
    signs = np.where(y == y.max(), 1.0, -1.0)
    for max_epochs in (2, 20):
        solver = LinearSDCA(C=2.0, stopping=stopping, tol=1e-12, max_epochs=max_epochs)
        with pytest.warns(ConvergenceWarning) as caught:
            solver.set_params(random_state=0).fit(X, y)
        text = str(caught[0].message)
        said = float(re.search(r"(?:gap is|lie up to) (\S+?)(?: from 0 or each other)?,", text)[1])
        w, alpha = solver.coef_[0], solver.model_.dual_coef * signs
        margins = signs * (X @ w)
        if stopping == "gap":
            primal = w @ w / 2 + 2.0 * np.maximum(0, 1 - margins).sum()
            found = (primal - alpha.sum() + w @ w / 2) / (2.0 * len(y))
        else:
            slopes = margins - 1
            slopes = np.where(alpha == 0, np.minimum(slopes, 0), slopes)
            slopes = np.where(alpha == 2.0, np.maximum(slopes, 0), slopes)
            found = max(slopes.max() - slopes.min(), np.abs(slopes).max())
        assert said == pytest.approx(found, rel=0.01)


def test_a_failed_fit_leaves_nothing_behind(points):
    X, y = points
    solver = SMO().fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        solver.fit(X, np.ones(len(y)))
    with pytest.raises(NotFittedError):
        solver.predict(X)
    # One whose warning is made an error leaves its model.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            solver.set_params(max_iter=1).fit(X, y)
    assert solver.predict(X).shape == y.shape
