"""What every solver has in common: scikit-learn's conventions, checks, errors, attributes."""

import dataclasses
import re
import runpy
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from marginbench import solvers
from marginbench.solvers import KernelExpansion, LinearModel, Solver, registry
from marginbench.solvers.numeric.counters import SERVED

#: Whether there is a solver of a package that may be missing depends on the environment.
SOLVERS = {name: cls() for name, cls in registry().items() if not cls.requires}
NAMES = [*SOLVERS]
#: Solvers whose model has points of its own.
BUDGET = [name for name, solver in SOLVERS.items() if hasattr(solver, "maintenance")]
#: Solvers without a kernel.
LINEAR = [name for name, solver in SOLVERS.items() if "gamma" not in solver.get_params()]
#: Solvers whose model is an expansion over training points, with any kernel.
EXPANSIONS = [name for name in NAMES if name not in (*BUDGET, *LINEAR, "RandomFourierFeatures")]
#: These draw nothing where there are no more points than they would draw, as here.
DRAWS_ALL = ("CuttingPlane", "LIBSVMSubsample")
SEEDED = [name for name in NAMES if not (SOLVERS[name].deterministic or name in DRAWS_ALL)]
#: One solver of each family, on which the quick tests run all of scikit-learn's checks.
REPRESENTATIVES = [
    *("SMO", "BSCA", "LinearSDCA", "RandomFourierFeatures", "LIBSVM", "BundleRegressor"),
    "RandomFourierMap",
]
KERNELS = {
    "rbf": lambda A, B: np.exp(-0.7 * np.square(A[:, None] - B).sum(axis=2)),
    "linear": lambda A, B: A @ B.T,
    "poly": lambda A, B: (0.7 * A @ B.T + 0.5) ** 2,
}


def make(name, **params):
    solver_class = registry()[name]
    known = solver_class().get_params()
    return solver_class(**{key: value for key, value in params.items() if key in known})


def make_exact(name, **params):
    return make(name, dtype="float64", random_state=0, **params)


def coefficients(solver):
    return solver.dual_coef_ if hasattr(solver, "dual_coef_") else solver.coef_


def stored(X, storage):
    """The points as an array of float64 or float32, or as a sparse matrix."""
    return {"dense": X, "float32": X.astype(np.float32), "csr": sparse.csr_matrix(X)}[storage]


def takes_kernel(name, kernel):
    """Whether a solver takes a kernel of this name."""
    if kernel == "laplacian":
        return name in EXPANSIONS and not name.startswith("LIBSVM")
    return name in EXPANSIONS or name in BUDGET or kernel == ("linear" if name in LINEAR else "rbf")


@pytest.fixture(scope="module")
def conformance():
    """The script that writes docs/conformance.md, which holds the expected failures."""
    path = Path(__file__).resolve().parents[2] / "docs" / "conformance.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(params=EXPANSIONS)
def expansion(request):
    return request.param


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in REPRESENTATIVES else pytest.mark.slow)
        for name in [*NAMES, "BundleRegressor", "StructuredSVM", "RandomFourierMap"]
    ],
)
def test_scikit_learn_checks(name, conformance):
    estimator = getattr(solvers, name)()
    # The points of some checks cannot be told apart: more steps than these change nothing there.
    fewer = {"budget": 8, "max_epochs": 5, "max_iter": 100}
    known = estimator.get_params()
    estimator.set_params(**{key: fewer[key] for key in fewer if key in known})
    _, failed = conformance.failures(estimator)
    expected = conformance.expected_failures(estimator)
    assert failed.keys() <= expected.keys(), failed
    # What only rounding breaks may hold on another processor.
    certain = {check for check, why in expected.items() if why not in conformance.UNCERTAIN}
    assert certain <= failed.keys()


def test_the_page_of_conformance_lists_every_estimator_and_reason(conformance):
    page = conformance.PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(.*?)` (.*)$", page, re.MULTILINE))
    estimators = conformance.estimators()
    assert rows.keys() == estimators.keys()
    for name, row in rows.items():
        expected = conformance.expected_failures(estimators[name])
        assert f"| {len(expected)} |" in row
        assert all(check in row and f". {why}." in page for check, why in expected.items())


#: Tolerances so small that a run finds the optimum to more digits than scikit-learn looks at.
EXACT_OPTIMA = {
    "SMO": {"tol": 1e-10},
    "SDCA": {"tol": 1e-13, "max_epochs": 20_000},
    "LinearSDCA": {"tol": 1e-11, "max_epochs": 20_000},
    "LIBLINEAR": {"tol": 1e-11, "max_epochs": 20_000},
    "Nystrom": {"tol": 1e-9, "max_epochs": 20_000},
    "LowRankSVM": {"tol": 1e-11, "max_epochs": 20_000},
    "Falkon": {"tol": 1e-13},
    "RandomFourierFeatures": {"tol": 1e-11, "max_epochs": 20_000},
    "CuttingPlane": {},
}


@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {}) for name in EXACT_OPTIMA),
        ("SMO", {"class_weight": "balanced"}),
        ("SDCA", {"stopping": "gradient", "shrinking": True}),
    ],
    ids=str,
)
def test_a_weight_is_a_number_of_repetitions(name, params):
    solver = make(name, **EXACT_OPTIMA[name], dtype="float64", **params)
    check_sample_weight_equivalence_on_dense_data(name, solver)
    if name not in ("Nystrom", "RandomFourierFeatures"):  # slow, and their features are dense
        check_sample_weight_equivalence_on_sparse_data(name, solver)


# All solvers leave the labels to their base class.
@pytest.mark.parametrize("name", ["SMO", "LinearSDCA", "LIBSVM"])
def test_any_two_labels_will_do(name, points):
    X, y = points
    expected = make_exact(name).fit(X, y)
    positive = (expected.decision_function(X) > 0).astype(int)
    for labels in [(0, 1), (3, 7), ("ham", "spam"), (False, True), (-1.0, 1.0), (1, 2)]:
        named = np.array(labels)[(y > 0).astype(int)]
        solver = make_exact(name).fit(X, named)
        np.testing.assert_array_equal(solver.classes_, labels)
        np.testing.assert_array_equal(coefficients(solver), coefficients(expected))
        np.testing.assert_array_equal(solver.predict(X), np.array(labels)[positive])
        assert solver.score(X, named) == expected.score(X, y) > 0.7


def test_scores_are_the_kernel_expansion(expansion, points):
    X, y = points
    Z = np.random.default_rng(1).standard_normal((11, 3))
    for kernel in sorted(KERNELS):
        solver = make_exact(expansion, kernel=kernel, gamma=0.7, degree=2, coef0=0.5).fit(X, y)
        K = KERNELS[kernel](Z, solver.support_vectors_)
        by_hand = K @ solver.dual_coef_[0] + solver.intercept_[0]
        scale = np.abs(solver.dual_coef_).sum() * np.abs(K).max()
        atol = (1e-6 if expansion == "LIBSVM" else 1e-13) * scale
        np.testing.assert_allclose(solver.decision_function(Z), by_hand, rtol=0, atol=atol)
        assert solver.decision_function(Z).dtype == np.float64


def test_fitted_attributes_counters_and_certificates(name, points):
    for storage in ("dense", "float32", "csr"):
        X, y = stored(points[0], storage), points[1]
        solver, served = make(name, C=0.7, random_state=0), dataclasses.replace(SERVED)
        assert solver.fit(X, y) is solver
        counters = solver.counters_
        if solver.instrumented:
            assert counters.kernel_evals == SERVED.asked - served.asked
            assert counters.kernel_evals_computed == SERVED.computed - served.computed
        assert solver.n_features_in_ == 3
        assert solver.status_ in ("converged", "budget")
        assert type(solver.n_iter_) is int
        assert solver.n_iter_ > 0
        assert solver.intercept_.shape == (1,)
        if name not in ("SMO", "LIBSVM", "LIBSVMSubsample"):
            assert solver.intercept_[0] == 0
        if name in LINEAR:
            assert isinstance(solver.model_, LinearModel)
            assert (solver.coef_.shape, solver.coef_.dtype) == ((1, 3), np.float64)
            assert not hasattr(solver, "dual_coef_")
            if solver.instrumented:
                assert counters.kernel_evals == counters.kernel_evals_computed == 0
                assert counters.inner_products > 0
            np.testing.assert_allclose(solver.decision_function(X), X @ solver.coef_[0], rtol=1e-12)
        elif name in EXPANSIONS:
            n_support = solver.model_.n_support
            assert isinstance(solver.model_, KernelExpansion)
            assert 0 < n_support <= 40
            assert (solver.dual_coef_.shape, solver.dual_coef_.dtype) == ((1, n_support), float)
            assert (solver.dual_coef_ != 0).all()
            assert (solver.support_.shape, solver.support_.dtype) == ((n_support,), np.int64)
            assert (np.diff(solver.support_) > 0).all()
            assert solver.support_vectors_.shape == (n_support, 3)
            assert sparse.issparse(solver.support_vectors_) == (storage == "csr")
            assert abs(solver.support_vectors_ - X[solver.support_]).max() == 0
            if solver.instrumented:
                # SMO looks at some points anew, for the rounding; a textbook run does not.
                asked = np.inf if name == "SMO" else counters.kernel_evals
                assert asked >= counters.kernel_evals_computed > 0
        if solver.certificate == "dual":
            coef = solver.model_.dual_coef if name in LINEAR else solver.dual_coef_[0]
            alpha = coef * (y if name in LINEAR else y[solver.support_])
            assert 0 <= alpha.min() <= alpha.max() <= 0.7
            assert alpha.max() > 0
            if solver.intercept_[0] != 0:
                assert abs(coef.sum()) <= 1e-9


def test_kernels_given_as_matrix_and_as_function(expansion, points):
    X, y = points
    expected = make_exact(expansion, kernel="linear").fit(X, y).decision_function(X)
    atol = 5e-3 * np.abs(expected).max()
    for wrap in (np.asarray, sparse.csr_matrix):
        K = wrap(X @ X.T)
        solver = make_exact(expansion, kernel="precomputed").fit(K, y)
        assert solver.support_vectors_.shape == (0, 0)
        np.testing.assert_allclose(solver.decision_function(K), expected, rtol=0, atol=atol)
        solver = make_exact(expansion, kernel=lambda A, B: A @ B.T).fit(wrap(X), y)
        np.testing.assert_allclose(solver.decision_function(wrap(X)), expected, rtol=0, atol=atol)


def test_the_storage_of_the_points_does_not_matter_and_is_left_alone(name):
    X = sparse.random(50, 200, density=0.03, format="csr", random_state=1)
    y = np.arange(50) % 2
    # Each entry in two parts, not in the order of the features.
    parts = np.argsort(np.tile(X.tocoo().row, 2), kind="stable") % X.nnz
    twice = sparse.csr_matrix((X.data[parts] / 2, X.indices[parts], 2 * X.indptr), X.shape)
    before = [array.copy() for array in (twice.data, twice.indices, twice.indptr)]
    # Rounding decides when scikit-learn's loss has stopped falling.
    params = {"min_improvement": 0.0} if name == "SklearnSGD" else {}
    for kernel in filter(partial(takes_kernel, name), ("rbf", "linear", "poly", "laplacian")):
        solver = make_exact(name, kernel=kernel, gamma=0.5, coef0=1.0, **params)
        expected = solver.fit(X.toarray(), y).decision_function(X.toarray())
        solver.fit(twice, y)
        for Z in (X.toarray(), X.tocsc(), twice, twice[:1]):
            scores = solver.decision_function(Z)
            np.testing.assert_allclose(scores, expected[: Z.shape[0]], rtol=1e-6)
        for array, copy in zip((twice.data, twice.indices, twice.indptr), before, strict=True):
            np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("name", SEEDED)
def test_the_seed_decides_the_run_and_leaves_the_global_state_alone(points, name):
    X, y = points
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    tol = 1e-12 if name == "LIBLINEAR" else 0.0
    first, again, other, generator = (
        make(name, max_epochs=3, tol=tol, random_state=seed).fit(X, y)
        for seed in (1, 1, 2, np.random.default_rng(1))
    )
    for same in (again, generator):
        np.testing.assert_array_equal(coefficients(first), coefficients(same))
    assert first.counters_ == again.counters_
    assert not np.array_equal(first.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    # The iterations of these are passes and products; they have tests of their own.
    if name not in ("LIBLINEAR", "Falkon"):
        assert (first.status_, first.n_iter_) == ("budget", 3 * len(y))


def with_value(value, storage):
    """The points with a value that is not finite in two rows, the first of them row 17."""

    def spoil(X, y):
        X = X.copy()
        X[17, 2] = X[30, 1] = value
        return stored(X, storage), y

    return spoil


MISTAKES = {
    "NaN": (with_value(np.nan, "dense"), r"NaN.* row 17, column 2"),
    "NaN, float32": (with_value(np.nan, "float32"), r"NaN.* row 17, column 2"),
    "-infinity, csr": (with_value(-np.inf, "csr"), r"inf.* row 17, column 2"),
    "one class": (lambda X, y: (X, np.full(40, 7)), "two classes in y, got only one class.*7"),
    "no points": (lambda X, y: (np.empty((0, 3)), []), "0 sample"),
    "no features": (lambda X, y: (np.empty((4, 0)), [0, 1, 0, 1]), "0 feature"),
    "no points, csr": (lambda X, y: (sparse.csr_matrix((0, 3)), []), "0 sample"),
    "lengths that differ": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_data_is_one_line(points, mistake):
    spoil, message = MISTAKES[mistake]
    X, y = spoil(*points)
    for name in NAMES:
        with pytest.raises(ValueError, match=message) as failure:
            make(name).fit(X, y)
        assert "\n" not in str(failure.value)


@pytest.mark.parametrize("name", [*LINEAR, "RandomFourierFeatures"])
def test_points_whose_norms_overflow_are_refused(name):
    X = np.array([[1e200, 1.0], [-1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="squared norms of these points overflow"):
        make_exact(name, gamma=1.0).fit(X, [1, 0, 1, 0])


@pytest.mark.timeout(60)
def test_a_kernel_that_overflows_is_an_error(expansion, points):
    """Neither a "converged" model of NaN, nor a run that never ends."""
    solver_class = registry()[expansion]
    biases = [False] * solver_class.supports_no_bias + [True] * solver_class.supports_bias
    for bias in biases:
        solver = make(expansion, kernel="poly", degree=60, gamma=100.0, fit_intercept=bias)
        with (
            np.errstate(over="ignore", invalid="ignore"),
            pytest.raises(ValueError, match="the poly kernel of these points overflows float"),
        ):
            solver.fit(*points)


def test_an_intercept_that_is_unclear_or_not_supported_is_refused(points):
    with pytest.raises(ValueError, match=r"fit_intercept.*'no'"):
        make("SMO", fit_intercept="no").fit(*points)
    for name in (name for name in NAMES if not registry()[name].supports_bias):
        message = f"{name} has no unregularised bias: set fit_intercept=False"
        with pytest.raises(ValueError, match=message):
            make(name, fit_intercept=True).fit(*points)


def test_a_solver_that_returns_no_solution_is_told_so(points):
    class Forgetful(Solver):
        def _solve(self, problem, monitor):
            problem.oracle.diag()

    with pytest.raises(TypeError, match=r"Forgetful\._solve returned NoneType, not"):
        Forgetful().fit(*points)
