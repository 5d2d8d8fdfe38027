"""KernelExpansion: scores, norm, and the file that holds it."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import (
    RBF,
    SMO,
    BudgetExpansion,
    FourierExpansion,
    KernelExpansion,
    LinearModel,
    Model,
    VotedExpansion,
)
from marginbench.solvers.kernels import base, scoring


@pytest.fixture(scope="module")
def dense():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    return rng.standard_normal((40, 30)) * (rng.random((40, 30)) < 0.5) + 0.2 * y[:, None], y


def thin(X):
    """CSR of low density, as it stays sparse inside."""
    X = sparse.csr_matrix(X)
    return sparse.hstack([X, sparse.csr_matrix((40, 1000))], format="csr")


def fitted(kernel, X, y, **params):
    return SMO(kernel, gamma=0.1, degree=2, coef0=0.5, fit_intercept=True, **params).fit(X, y)


def rounds_by_place(dtype):
    """Whether BLAS rounds a product otherwise at another place of the block, as some kernels do."""
    points = np.random.default_rng(1).standard_normal((64, 30)).astype(dtype)
    order = np.random.default_rng(2).permutation(16)
    products = points[:16] @ points.T
    return bool((points[:16][order] @ points.T != products[order]).any())


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "linear"])
def test_entries_that_stand_twice_in_a_row_are_one(kernel):
    X = sparse.random(60, 500, density=0.02, format="csr", random_state=1)
    twice = sparse.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    solver = SMO(kernel=kernel, gamma=0.5, dtype="float64").fit(X, y)
    expected = solver.decision_function(X)
    for scores in (solver.decision_function, solver.model_.decision_function):
        np.testing.assert_allclose(scores(twice), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(scores(twice[:1]), expected[:1], rtol=1e-12, atol=1e-12)
    assert twice.nnz == 2 * X.nnz


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_score_of_a_point_does_not_depend_on_those_asked_for_with_it(dense, kernel, dtype):
    X, y = dense
    model = fitted(kernel, X, y, dtype=dtype).model_
    scores = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(40)])
    # BLAS has another order for larger products: each entry is off by a few units of rounding.
    size = np.abs(model.coef).sum() * max(1.0, model.kernel.diag(model.prepared()).max())
    atol = 16 * np.finfo(dtype).eps * size
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=0, atol=atol)
    few = atol if kernel != "linear" and rounds_by_place(dtype) else 0
    for count in (2, 7, 16):
        parts = [model.decision_function(X[i : i + count]) for i in range(0, 40, count)]
        np.testing.assert_allclose(np.concatenate(parts), scores, rtol=0, atol=few)
    order = np.random.default_rng(6).permutation(40)[:15]
    np.testing.assert_allclose(model.decision_function(X[order]), scores[order], rtol=0, atol=few)


@pytest.mark.parametrize(
    ("kernel", "storage", "dtype"),
    [
        *(("rbf", "dense", "float32"), ("rbf", "csr", "float64"), ("rbf", "thin csr", "float32")),
        *(("linear", "dense", "float64"), ("poly", "dense", "float32")),
    ],
)
def test_a_saved_model_scores_the_same_to_the_bit(tmp_path, dense, kernel, storage, dtype):
    X, y = dense
    X = {"dense": X, "csr": sparse.csr_matrix(X), "thin csr": thin(X)}[storage]
    model = fitted(kernel, X, y, dtype=dtype).model_
    model.save(tmp_path / "model")
    loaded = KernelExpansion.load(tmp_path / "model")
    assert loaded.kernel == model.kernel
    assert loaded.intercept == model.intercept != 0
    assert loaded.n_train == 40
    assert loaded.dtype == dtype
    assert sparse.issparse(loaded.points) == (storage != "dense")
    np.testing.assert_array_equal(loaded.coef, model.coef)
    np.testing.assert_array_equal(loaded.support, model.support)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.n_support == model.n_support


def test_a_model_of_a_callable_kernel_cannot_be_saved(tmp_path, dense):
    model = SMO(lambda A, B: A @ B.T).fit(*dense).model_
    with pytest.raises(ValueError, match="a callable or custom kernel cannot be saved"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("storage", ["dense", "thin csr"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_scores_in_blocks_are_the_scores_at_once(monkeypatch, dense, kernel, storage):
    X, y = dense
    X = thin(X) if storage == "thin csr" else X
    model = fitted(kernel, X, y, dtype="float64").model_
    at_once = model.decision_function(X)
    for rows in (1, 7, 39):
        monkeypatch.setattr(scoring, "_BYTES", rows * X.shape[1] * 8)
        monkeypatch.setattr(base, "BLOCK_BYTES", rows * model.n_support * 8)
        np.testing.assert_allclose(model.decision_function(X), at_once, rtol=1e-12, atol=1e-13)


def test_float32_entries_are_summed_in_float64():
    # 1 + 2^-20 in each of 4001 terms of alternating sign: a float32 sum would lose it.
    n = 4001
    points = np.ones((n, 1))
    signs = np.where(np.arange(n) % 2, -1.0, 1.0)
    coef = signs * (1 + 2.0**-20 * np.arange(n))
    model = SMO("linear").fit([[1.0], [-1.0]], [1, 0]).model_
    model = dataclasses.replace(
        model, points=points, coef=coef, support=np.arange(n), n_train=n, intercept=0.0
    )
    np.testing.assert_allclose(model.decision_function(np.ones((2, 1))), coef.sum(), rtol=1e-12)


def test_squared_norm_of_a_precomputed_kernel_is_refused(dense):
    X, y = dense
    with pytest.raises(ValueError, match="does not hold the kernel's entries"):
        SMO("precomputed").fit(X @ X.T, y).model_.squared_norm()


LAST = KernelExpansion(RBF(0.5), np.eye(3), np.array([2.0, -1.0, 1.0]), 0.0, np.arange(3), 9)
EVERY_KIND = [
    LAST,
    BudgetExpansion(RBF(0.5), np.eye(3) + 1, np.array([2.0, -1.0, 1.0]), 0.25),
    LinearModel(np.array([1.0, 2.0, -1.0]), 0.5),
    LinearModel(np.array([1.0, 2.0, -1.0]), dual_coef=np.array([0.5, 0.0])),
    FourierExpansion(np.eye(2, 3), np.array([1.0, -1.0, 0.5, 2.0]), -0.5),
    VotedExpansion(LAST, np.array([0, 1, 0, 2]), np.array([3, 1, 1, 2])),
]


@pytest.mark.parametrize("model", EVERY_KIND, ids=lambda model: model.kind)
def test_a_model_of_any_kind_is_read_as_what_it_is(tmp_path, model):
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert type(loaded) is type(model)
    Z = np.random.default_rng(1).standard_normal((6, 3))
    scores = model.decision_function(Z)
    np.testing.assert_array_equal(loaded.decision_function(Z), scores)
    assert scores.shape == (6,)
    assert scores.dtype == np.float64
    assert loaded.n_support == model.n_support
    assert loaded.intercept == model.intercept
    for name, value in model.attributes().items():
        np.testing.assert_array_equal(loaded.attributes()[name], value)
    if isinstance(model, LinearModel):
        np.testing.assert_array_equal(loaded.dual_coef, model.dual_coef)
    for other in {type(known) for known in EVERY_KIND} - {type(model)}:
        with pytest.raises(ValueError, match=f"a model of kind {model.kind!r}, not a"):
            other.load(tmp_path / "model")
