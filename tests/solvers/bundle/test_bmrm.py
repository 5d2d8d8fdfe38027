"""The bundle method: optima by other solvers, its guarantees, regularisers, its trace."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from marginbench.solvers import (
    OCAS,
    BundleClassifier,
    BundleRegressor,
    BundleTrace,
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Logistic,
    Multiclass,
    PointwiseLoss,
    Quantile,
    SquaredHinge,
    minimize_risk,
)

SEARCHING = [OCAS(tol=1e-8), BundleClassifier(tol=1e-8)]
# Without a search along a line: with all planes, those that were needed just now, or a mixture.
ALL = BundleClassifier(primal_search=False, tol=1e-8, max_idle=None)
FEW = clone(ALL).set_params(max_idle=1)
MIXED = BundleClassifier(inner="line_search", tol=1e-5, max_iter=3000)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("storage", "bias"), [(np.asarray, False), (sparse.csr_matrix, True)])
@pytest.mark.parametrize(
    ("method", "C"),
    [
        *((method, C) for method in (*SEARCHING, ALL, FEW) for C in (0.1, 10.0)),
        *((MIXED, C) for C in (0.01, 1.0)),
    ],
)
def test_the_optimum_of_the_svm_with_guaranteed_progress(
    linear_task, optimum, method, C, storage, bias
):
    task = linear_task
    solver = clone(method).set_params(C=C, fit_intercept=bias).fit(storage(task.X), task.y)
    lam, trace = 1 / (C * task.n), solver.trace_
    least = lam * optimum(task, C, bias=bias).value
    w = solver.coef_[0]
    hinge = np.maximum(0, 1 - task.y * (task.X @ w + solver.intercept_[0])).mean()
    reached = 0.5 * lam * w @ w + hinge
    converged = solver.status_ == "converged"
    assert converged or method is MIXED
    assert (solver.intercept_[0] != 0) == bias
    assert least * (1 - 1e-9) <= reached <= least + (1 if converged else 10 * least) * method.tol
    assert trace.objective.min() == pytest.approx(reached, rel=1e-12)
    assert len(trace.objective) == solver.n_iter_ + 1
    assert (np.diff(trace.lower_bound) >= 0).all()
    assert trace.lower_bound.max() <= least * (1 + 1e-9)
    if method in SEARCHING:
        # The best point of the search along the line.
        assert (np.diff(trace.objective) <= 0).all()
        return
    # BMRM07 Theorem 4 and 5, for ||a|| <= G and Omega* with second derivative 1.
    gamma, G2 = trace.gamma, np.square(task.X).sum(axis=1).max()
    progress = 0.5 * gamma[:-1] * np.minimum(1, lam * gamma[:-1] / (4 * G2))
    assert (np.diff(trace.lower_bound) >= progress - 1e-13).all()
    if converged:
        steps = math.log2(max(lam / (4 * G2), 1e-300)) + 8 * G2 / (lam * trace.epsilon[-2]) - 2
        assert solver.n_iter_ <= max(steps, 1) + 1


class Huber(PointwiseLoss):
    """A loss of one's own, which may be negative: quadratic near 0, linear from 1 on."""

    targets = "numbers"
    lower_bound = -5.0

    def pointwise(self, scores, y):
        r = scores - y
        return np.where(abs(r) <= 1, 0.5 * r * r, abs(r) - 0.5) - 5, np.clip(r, -1, 1)


# Each with weights that may be any numbers, those of the predictor in terms of them, and its value.
REGULARIZERS = {
    "l2": (lambda v: v, lambda w: 0.5 * w @ w),
    "entropic": (np.exp, lambda w: (w * np.log(w) - w + 1).sum()),
    "simplex_entropy": (softmax, lambda w: (w * np.log(w)).sum() + np.log(len(w))),
}


@pytest.mark.parametrize(
    ("regularizer", "lam", "offset", "tol"),
    [
        ("l2", 0.5, None, 1e-9),
        ("l2", 0.005, "eliminated", 1e-9),
        ("l2", 0.02, "feature", 1e-9),
        ("entropic", 0.3, None, 1e-7),
        ("simplex_entropy", 0.03, None, 1e-7),
    ],
)
@pytest.mark.parametrize(
    "loss", [SquaredHinge(), Logistic(), LeastSquares(), Huber()], ids=lambda x: type(x).__name__
)
def test_smooth_losses_against_a_quasi_newton_method(
    linear_task, loss, regularizer, lam, offset, tol
):
    X, y = linear_task.X, linear_task.y + (0.4 if loss.targets == "numbers" else 0.0)
    link, value = REGULARIZERS[regularizer]

    def at(w, b):
        risk, _ = loss.evaluate(X @ w + b, y, np.full(len(y), 1 / len(y)))
        return risk + lam * (value(w) + (0.5 * b * b if offset == "feature" else 0.0))

    best = minimize(
        lambda v: at(link(v[:5]), v[5] if offset else 0.0), np.zeros(6), method="BFGS"
    ).fun
    found = minimize_risk(
        X, y, loss, regularizer=regularizer, lam=lam, offset=offset, tol=tol, max_iter=3000
    )
    assert found.status == "converged"
    assert found.objective == pytest.approx(best, rel=10 * tol)
    assert found.objective == pytest.approx(at(found.weights, found.intercept), rel=1e-10)
    assert found.lower_bound == pytest.approx(best, rel=10 * tol)
    assert (np.diff(found.trace.lower_bound) >= 0).all()
    assert (found.intercept != 0) == (offset is not None)
    if regularizer != "l2":
        assert found.weights.min() > 0
    if regularizer == "simplex_entropy":
        assert found.weights.sum() == pytest.approx(1.0, rel=1e-12)


def test_roc_area_is_the_svm_on_differences(linear_task, solve_dual):
    X, y = linear_task.X[:40], linear_task.y[:40]
    differences = (X[y > 0][:, None] - X[y < 0]).reshape(-1, 5)
    count, lam = len(differences), 0.02
    C = 1 / (lam * count)
    best = lam * solve_dual(differences @ differences.T, np.ones(count), C).value
    found = minimize_risk(X, y, "roc_area", lam=lam, tol=1e-8)
    assert found.objective == pytest.approx(best, rel=1e-6)


def test_two_classes_are_the_binary_machine(linear_task):
    X, y = linear_task.X, linear_task.y
    two = minimize_risk(sparse.csc_matrix(X), (y > 0).astype(int), Multiclass(), lam=0.02, tol=1e-9)
    binary = minimize_risk(X, y, lam=0.01, tol=1e-9)
    assert two.weights.shape == (5, 2)
    assert two.objective == pytest.approx(binary.objective, rel=1e-8)
    np.testing.assert_allclose(two.weights[:, 1], -two.weights[:, 0], rtol=0, atol=1e-12)
    difference = two.weights[:, 1] - two.weights[:, 0]
    np.testing.assert_allclose(difference, binary.weights, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("solver", "of_planes"),
    [
        # With all planes so far and itself; or with itself and the last sum.
        (BundleClassifier(primal_search=False, max_idle=None), sum(range(1, 11))),
        (BundleClassifier(inner="line_search"), 10 * 2),
        (OCAS(), sum(range(1, 11))),
        (OCAS(fit_intercept=True), sum(range(1, 11))),
    ],
)
def test_inner_products_are_those_of_scores_and_planes(linear_task, solver, of_planes):
    solver.set_params(tol=0.0, max_iter=10).fit(linear_task.X, linear_task.y)
    assert solver.n_iter_ == 10
    assert solver.counters_.inner_products == 10 * linear_task.n + 10 + of_planes
    assert solver.counters_.kernel_evals == 0


def test_a_minimum_at_the_start_costs_nothing():
    X, y = np.ones((4, 2)), np.zeros(4)
    found = minimize_risk(X, y, "least_squares", lam=0.1, tol=0.0)
    assert (found.status, found.n_iter, found.objective) == ("converged", 0, 0.0)


def test_what_makes_no_sense_is_refused(linear_task):
    X, y = linear_task.X, linear_task.y
    for options, message in (
        ({"lam": 0.0}, "lam must be a number > 0"),
        ({"loss": "hing"}, "loss must be a Loss or one of hinge, squared_hinge"),
        ({"regularizer": "l3"}, "regularizer must be a Regularizer or one of l2, entropic"),
        ({"inner": "qp", "regularizer": "entropic"}, "inner='qp' cannot take the Entropy"),
        ({"inner": "line_search", "regularizer": "l1"}, "set inner='lp'"),
        ({"offset": "free"}, "offset must be one of eliminated, feature"),
        ({"offset": "eliminated", "loss": "roc_area"}, "the offset of ROCArea cannot be"),
        ({"primal_search": True, "regularizer": "l1"}, "primal_search=True takes the L2 reg"),
        ({"sample_weight": -np.ones(200)}, "Negative values in data passed to `sample_weight`"),
        ({"y": np.where(y > 0, y, np.nan)}, "Input y contains NaN"),
        ({"X": 1e200 * X}, "the squared norms of these points overflow"),
    ):
        with pytest.raises(ValueError, match=message):
            minimize_risk(**{"X": X, "y": y, "lam": 0.1, **options})
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="objective overflows float64"):
        BundleRegressor().fit(X, 1e155 * y)
    with pytest.raises(ValueError, match="the sum of the weights overflows"):
        BundleClassifier().fit(X, y, np.full(len(y), 1e307))


def test_a_run_that_ends_at_its_limit_says_what_it_achieved(linear_task):
    X, y = linear_task.X, linear_task.y
    with pytest.warns(ConvergenceWarning, match="ended at max_iter=2 before it conv") as caught:
        found = minimize_risk(X, y, lam=1e-3, max_iter=2, tol=1e-5)
    assert caught[0].filename == __file__
    part = found.trace.epsilon[-1] / found.trace.objective[0]
    assert f": the gap is {part:.2g} of the objective at the start" in str(caught[0].message)
    with pytest.warns(ConvergenceWarning, match="ended at max_iter=2 before it conv") as caught:
        BundleRegressor(loss="quantile", max_iter=2).fit(X, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("loss", "lower", "upper", "penalty"),
    [(EpsilonInsensitive(0.2), 1.0, 1.0, 0.3), (Quantile(0.3), 0.3, 0.7, 0.03)],
)
def test_l1_against_the_whole_linear_program(linear_task, loss, lower, upper, penalty):
    X, n = linear_task.X[:60], 60
    y = X @ [1.0, -2.0, 0.0, 0.0, 0.5] + np.random.default_rng(1).standard_normal(n)
    # min penalty ||w||_1 + mean (lower max(0, y - s - e) + upper max(0, s - y - e)), by HiGHS.
    e, eye, zero = getattr(loss, "epsilon", 0.0), np.eye(n), np.zeros((n, n))
    costs = np.r_[np.full(2 * 5, penalty), np.full(n, lower / n), np.full(n, upper / n)]
    A = np.vstack([np.hstack([-X, X, -eye, zero]), np.hstack([X, -X, zero, -eye])])
    best = linprog(costs, A, np.r_[e - y, e + y]).fun
    found = minimize_risk(X, y, loss, lam=penalty, regularizer="l1", tol=1e-9)
    assert found.status == "converged"
    assert found.objective == pytest.approx(best, rel=1e-7)
    assert found.lower_bound <= best * (1 + 1e-12)
    # Weights at zero are exactly there.
    assert ((found.weights == 0) | (abs(found.weights) > 1e-4)).all()


@pytest.mark.parametrize("unit", [1e-12, 1e16])
def test_l1_does_not_depend_on_the_units_of_the_features(linear_task, unit):
    X, y = linear_task.X, linear_task.y
    plain = minimize_risk(X, y, lam=0.01, regularizer="l1")
    found = minimize_risk(X * unit, y, lam=0.01 * unit, regularizer="l1")
    assert (found.status, found.n_iter) == ("converged", plain.n_iter)
    assert found.objective == pytest.approx(plain.objective, rel=1e-9)
    np.testing.assert_allclose(found.weights * unit, plain.weights, rtol=1e-6, atol=1e-9)


def test_l1_takes_features_of_very_different_units(linear_task):
    X, y = linear_task.X, linear_task.y
    plain = minimize_risk(X, y, lam=0.01, regularizer="l1")
    found = minimize_risk(X * [1.0, 1.0, 1.0, 1.0, 1e14], y, lam=0.01, regularizer="l1")
    assert found.status == "converged"
    # The last weight costs next to nothing.
    assert found.objective < plain.lower_bound


def test_a_trace_is_noted_at_evenly_spread_iterations():
    objective = np.array([1.0, 0.5, 0.6, 0.4])
    lower_bound = np.array([0.0, 0.1, 0.2, 0.3])
    noted = BundleTrace(objective, lower_bound).noted()
    assert [step.n_iter for step in noted] == [0, 1, 2, 3]
    np.testing.assert_allclose([step.gamma for step in noted], [1.0, 0.4, 0.4, 0.1])
    np.testing.assert_allclose([step.epsilon for step in noted], [1.0, 0.4, 0.3, 0.1])
    assert len(BundleTrace(objective[:1], lower_bound[:1]).noted()) == 1
    long = BundleTrace(np.linspace(2.0, 1.0, 100_001), np.linspace(0.0, 1.0, 100_001)).noted()
    iterations = np.array([step.n_iter for step in long])
    assert len(long) <= 201
    assert (iterations[0], iterations[-1], long[-1].gamma) == (0, 100_000, 0.0)
    assert (np.diff(iterations) > 0).all()
    # The ratio of neighbours is 100 000^(1 / 199) = 1.06, but for rounding.
    assert (iterations[2:] <= 1.06 * iterations[1:-1] + 1).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("scale", "lam"), [(1.0, 1e-4), (1e4, 1e-8), (1e6, 1e-4), (1e6, 1e-8)])
def test_the_lower_bound_is_one_however_long_the_points_are(scale, lam):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((300, 4))
    target = Z @ [1.0, 2.0, 0.0, -1.0] + 0.3 * rng.standard_normal(300)
    found = minimize_risk(Z * scale, np.sign(target), Hinge(), lam=lam, max_iter=200)
    best = minimize_risk(Z, np.sign(target), Hinge(), lam=lam / scale**2, max_iter=200)
    assert found.lower_bound <= min(found.objective, best.objective) * (1 + 1e-12)
