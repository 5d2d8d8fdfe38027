"""Models: their scores, however they are asked for, and the file that holds one; objectives."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from marginbench.solvers import (
    RBF,
    SMO,
    BudgetExpansion,
    FourierExpansion,
    KernelExpansion,
    Laplacian,
    Linear,
    LinearModel,
    Model,
    OneVsRestModel,
    Polynomial,
    StructuredExpansion,
    VotedExpansion,
)
from marginbench.solvers.kernels import base, scoring
from marginbench.solvers.models import fourier, voting
from marginbench.solvers.models.objectives import dual_value, hinge, primal_value


@pytest.fixture(scope="module")
def dense():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    return rng.standard_normal((40, 30)) * (rng.random((40, 30)) < 0.5) + 0.2 * y[:, None], y


def fitted(kernel, X, y, dtype):
    solver = SMO(kernel, gamma=0.1, degree=2, coef0=0.5, fit_intercept=True, dtype=dtype)
    return solver.fit(X, y).model_


def rounds_by_place(dtype):
    """Whether BLAS rounds a product otherwise at another place of the block, as some kernels do."""
    points = np.random.default_rng(1).standard_normal((64, 30)).astype(dtype)
    order = np.random.default_rng(2).permutation(16)
    products = points[:16] @ points.T
    return bool((points[:16][order] @ points.T != products[order]).any())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_score_of_a_point_does_not_depend_on_those_asked_for_with_it(dense, kernel, dtype):
    X, y = dense
    model = fitted(kernel, X, y, dtype)
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


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_scores_in_blocks_are_the_scores_at_once(monkeypatch, dense, kernel):
    X, y = dense
    # Of such a low density that it stays sparse inside.
    thin = sparse.hstack([sparse.csr_matrix(X), sparse.csr_matrix((40, 1000))], format="csr")
    for given in (X, thin):
        model = fitted(kernel, given, y, "float64")
        with monkeypatch.context() as patch:
            at_once = model.decision_function(given)
            for rows in (1, 7, 39):
                patch.setattr(scoring, "_BYTES", rows * given.shape[1] * 8)
                patch.setattr(base, "BLOCK_BYTES", rows * model.n_support * 8)
                scores = model.decision_function(given)
                np.testing.assert_allclose(scores, at_once, rtol=1e-12, atol=1e-13)


def test_float32_entries_are_summed_in_float64():
    # 1 + 2^-20 in each of 4001 terms of alternating sign: a float32 sum would lose it.
    index = np.arange(4001)
    coef = np.where(index % 2, -1.0, 1.0) * (1 + 2.0**-20 * index)
    model = KernelExpansion(Linear(), np.ones((4001, 1)), coef, 0.0, index, 4001)
    np.testing.assert_allclose(model.decision_function(np.ones((2, 1))), coef.sum(), rtol=1e-12)


def test_squared_norm_of_a_precomputed_kernel_is_refused(dense):
    X, y = dense
    with pytest.raises(ValueError, match="does not hold the kernel's entries"):
        SMO("precomputed").fit(X @ X.T, y).model_.squared_norm()


POLY = {"metric": "poly", "degree": 2, "gamma": 0.7, "coef0": 0.5}
LAST = KernelExpansion(RBF(0.5), np.eye(3), np.array([2.0, -1.0, 1.0]), 0.0, np.arange(3), 9)
SPARSE = KernelExpansion(
    Polynomial(2, 0.7, 0.5), sparse.csr_matrix(np.eye(2, 3) / 3), np.array([0.7, -0.3]), 0.5,
    np.array([4, 7]), 8, "float64",
)  # fmt: skip
# Its first point is the last one of LAST.
NEXT = KernelExpansion(
    RBF(0.5), np.eye(3)[[2, 2]] + [[0], [1]], np.array([-3.0, 1.0]), 0.75, np.array([2, 5]), 9
)
EMPTY = KernelExpansion(RBF(0.5), np.empty((0, 3)), np.empty(0), 0.25, np.arange(0), 9)
BUDGET = BudgetExpansion(RBF(0.5), np.eye(3) + 1, np.array([2.0, -1.0, 1.0]))
LINEAR = LinearModel(np.array([1.0, 2.0, -1.0]), 0.5)
FOURIER = FourierExpansion(np.eye(2, 3), np.array([1.0, -1.0, 0.5, 2.0]), -0.5)
EVERY_KIND = [
    *(LAST, SPARSE, EMPTY, BUDGET, LINEAR, FOURIER),
    *(dataclasses.replace(LAST, kernel=kernel) for kernel in (Laplacian(0.3), Linear())),
    LinearModel(np.array([1.0, 2.0, -1.0]), dual_coef=np.array([0.5, 0.0])),
    VotedExpansion(LAST, np.array([0, 1, 0, 2]), np.array([3, 1, 1, 2])),
    VotedExpansion(dataclasses.replace(EMPTY, intercept=0.0), np.arange(0), np.arange(0)),
    StructuredExpansion(
        RBF(0.5), np.eye(3), np.arange(6.0).reshape(3, 2), np.ones(4), np.arange(3), 9
    ),
    *(OneVsRestModel(parts) for parts in ((LAST, None, NEXT), (SPARSE, SPARSE), (EMPTY, EMPTY))),
    OneVsRestModel((BUDGET, dataclasses.replace(BUDGET, coef=np.arange(3.0), intercept=0.25))),
    *(OneVsRestModel((LINEAR, other)) for other in (LINEAR, LAST, None)),
    OneVsRestModel((FOURIER, dataclasses.replace(FOURIER, intercept=2.0))),
    OneVsRestModel((FOURIER, FourierExpansion(np.eye(2, 3)[::-1], np.arange(4.0)))),
]


def entries(model, Z):
    if model.n_support == 0:
        return np.zeros((len(Z), 0))
    known = {
        RBF: {"metric": "rbf", "gamma": 0.5},
        Laplacian: {"metric": "laplacian", "gamma": 0.3},
        Linear: {"metric": "linear"},
        Polynomial: POLY,
    }
    return pairwise_kernels(Z, model.points, **known[type(model.kernel)])


def by_definition(model, Z):
    """The scores as the docstring of each class has them, and ||w||^2."""
    match model:
        case OneVsRestModel():
            each = [by_definition(part, Z) if part else (np.zeros(6), 0.0) for part in model.parts]
            return np.stack([scores for scores, _ in each], axis=1), sum(norm for _, norm in each)
        case VotedExpansion():
            steps = (entries(model.last, Z) * np.sign(model.last.coef))[:, model.mistakes]
            return np.sign(steps.cumsum(axis=1)) @ model.survivals, None
        case FourierExpansion():
            phases = Z @ model.frequencies.T
            Z = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(2)
    w = getattr(model, "weights", np.zeros(3))
    if isinstance(model, LinearModel | FourierExpansion):
        return Z @ w + model.intercept, w @ w
    points = sparse.csr_matrix(model.points).toarray()
    norm = (model.coef * (entries(model, points) @ model.coef)).sum() + w @ w
    return entries(model, Z) @ model.coef + model.intercept, norm


@pytest.mark.parametrize("model", EVERY_KIND, ids=lambda model: model.kind)
def test_scores_and_norms_are_those_of_the_definition(monkeypatch, model):
    for module in (fourier, voting):
        monkeypatch.setattr(module, "_BLOCK_BYTES", 8)  # less than a row: a row at a time
    Z = np.random.default_rng(1).standard_normal((6, 3))
    scores, norm = by_definition(model, Z)
    np.testing.assert_allclose(model.decision_function(Z), scores, rtol=1e-5, atol=1e-6)
    if norm is not None:
        assert model.squared_norm() == pytest.approx(norm, rel=1e-5)
    told = model.attributes()
    if isinstance(model, OneVsRestModel) and "support_" in told:
        # They say the same; a point that classes share is there once.
        assert model.n_support == len({*told["support_"]})
        points, coef = told["support_vectors_"], told["dual_coef_"].T
        joint = dataclasses.replace(model.parts[0], points=points, coef=coef)
        again = entries(joint, Z) @ coef + told["intercept_"]
        np.testing.assert_allclose(again, scores, rtol=1e-5, atol=1e-6)


def test_objectives_are_in_units_of_C():
    margins = np.array([2.0, 1.0, -0.5])
    np.testing.assert_array_equal(hinge(margins), [0.0, 0.0, 1.5])
    assert primal_value(4.0, margins, 3.0) == 0.5 * 4.0 + 3.0 * 1.5
    assert dual_value(np.array([1.0, 0.5]), 4.0) == 1.5 - 0.5 * 4.0
    # Without a bias unless one is given.
    assert BUDGET.intercept == LinearModel(np.ones(3)).intercept == 0.0
    assert FourierExpansion(np.eye(3), np.ones(6)).intercept == LINEAR.n_support == 0.0


@pytest.mark.parametrize("model", EVERY_KIND, ids=lambda model: model.kind)
def test_a_saved_model_is_read_as_what_it_is_and_scores_the_same_to_the_bit(tmp_path, model):
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert type(loaded) is type(model)
    Z = np.random.default_rng(1).standard_normal((6, 3))
    scores = model.decision_function(Z)
    np.testing.assert_array_equal(loaded.decision_function(Z), scores)
    assert (scores.shape[0], scores.dtype) == (6, np.float64)
    assert loaded.n_support == model.n_support
    for field in dataclasses.fields(model):
        value, read = getattr(model, field.name), getattr(loaded, field.name)
        if isinstance(value, sparse.csr_matrix):
            value, read = value.toarray(), read.toarray()
        if not isinstance(value, Model | tuple):
            np.testing.assert_array_equal(read, value)
    for other in {type(known) for known in EVERY_KIND} - {type(model)}:
        with pytest.raises(ValueError, match=f"a model of kind {model.kind!r}, not a"):
            other.load(tmp_path / "model")
