"""The evaluator against sums written out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import harness.evaluation
from harness.errors import EvaluationError
from harness.evaluation import Evaluator
from solvers import RBF, SMO, Kernel, KernelExpansion, Linear, Polynomial

N_TRAIN, N_TEST, C = 60, 35, 2.0
KERNELS = (RBF(0.7), Linear(), Polynomial(degree=2, gamma=0.5, coef0=1.0))


@pytest.fixture
def points() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N_TRAIN + N_TEST, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=len(X)) > 0, 1, -1).astype(np.int8)
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


def build(points: Any, kernel: Kernel = KERNELS[0], **options: Any) -> Evaluator:
    X, y, Z, z = points
    settings = {"C": C, "fit_intercept": False, "dual_certificate": True, **options}
    return Evaluator(kernel=kernel, X_train=X, y_train=y, X_test=Z, y_test=z, **settings)


def expansion(kernel: Kernel, X: np.ndarray, coef: np.ndarray, b: float = 0.0) -> KernelExpansion:
    support = np.flatnonzero(coef)
    return KernelExpansion(kernel, X[support], coef[support], b, support, len(X))


def entry(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> float:
    """One kernel entry, from its definition."""
    if isinstance(kernel, RBF):
        return float(np.exp(-kernel.gamma * np.sum((a - b) ** 2)))
    if isinstance(kernel, Polynomial):
        return float((kernel.gamma * (a @ b) + kernel.coef0) ** kernel.degree)
    return float(a @ b)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_objectives_and_errors(points: Any, kernel: Kernel, storage: Any) -> None:
    X, y, Z, z = points
    alpha = np.random.default_rng(0).uniform(0, C, N_TRAIN) * (np.arange(N_TRAIN) % 3 > 0)
    coef, b = alpha * y, 0.25
    K = np.array([[entry(kernel, a, c) for c in X] for a in X])
    Kt = np.array([[entry(kernel, a, c) for c in X] for a in Z])
    scores, test_scores = K @ coef + b, Kt @ coef + b
    norm2 = coef @ K @ coef
    primal = 0.5 * norm2 + C * np.maximum(0, 1 - y * scores).sum()
    dual = alpha.sum() - 0.5 * norm2

    found = build((storage(X), y, storage(Z), z), kernel).evaluate(expansion(kernel, X, coef, b))

    assert found.primal == pytest.approx(primal, rel=1e-12)
    assert found.dual == pytest.approx(dual, rel=1e-12)
    assert found.gap == pytest.approx(primal - dual, rel=1e-12)
    assert found.squared_norm == pytest.approx(norm2, rel=1e-12)
    assert found.mean_hinge == pytest.approx(np.maximum(0, 1 - y * scores).mean(), rel=1e-12)
    assert found.n_support == np.count_nonzero(alpha)
    assert found.train_error == np.mean((scores > 0) != (y > 0))
    assert found.test_error == np.mean((test_scores > 0) != (z > 0))


def test_small_blocks_change_nothing(points: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _, _ = points
    model = expansion(KERNELS[0], X, 0.5 * y)
    whole = build(points).evaluate(model)
    monkeypatch.setattr(harness.evaluation, "BLOCK_BYTES", 12 * N_TRAIN * 7)
    assert build(points).evaluate(model).primal == pytest.approx(whole.primal, rel=1e-13)
    assert build(points).evaluate(model).test_error == whole.test_error


def test_float32_entries_are_close(points: Any) -> None:
    X, y, _, _ = points
    model = expansion(KERNELS[0], X, 0.5 * y)
    exact, quick = (build(points).evaluate(model, dtype) for dtype in ("float64", "float32"))
    assert quick.primal == pytest.approx(exact.primal, rel=1e-5)
    assert quick.primal != exact.primal  # float32 was really used


def test_a_gap_needs_a_feasible_dual_point(points: Any) -> None:
    X, y, _, _ = points
    inside = 0.5 * y.astype(float)
    too_large, negative = inside.copy(), inside.copy()
    too_large[0] *= 2 * C / 0.5
    negative[0] *= -1
    kernel = KERNELS[0]
    assert build(points).evaluate(expansion(kernel, X, inside)).gap is not None
    assert build(points).evaluate(expansion(kernel, X, too_large)).gap is None
    assert build(points).evaluate(expansion(kernel, X, negative)).gap is None
    without = build(points, dual_certificate=False)
    assert without.evaluate(expansion(kernel, X, inside)).dual is None


def test_with_a_bias_a_dual_point_must_balance_the_classes(points: Any) -> None:
    X, y, _, _ = points
    balanced = np.zeros(N_TRAIN)
    balanced[np.flatnonzero(y == 1)[:5]] = 1.0
    balanced[np.flatnonzero(y == -1)[:5]] = -1.0
    evaluator = build(points, fit_intercept=True)
    assert evaluator.evaluate(expansion(KERNELS[0], X, balanced, 0.1)).gap is not None
    balanced[np.flatnonzero(y == 1)[0]] = 0.5
    assert evaluator.evaluate(expansion(KERNELS[0], X, balanced, 0.1)).gap is None


def test_the_gap_of_an_optimum_is_tiny_and_never_negative(points: Any) -> None:
    X, y, _, _ = points
    for fit_intercept in (False, True):
        smo = SMO(gamma=0.7, C=C, tol=1e-10, dtype="float64", fit_intercept=fit_intercept).fit(X, y)
        found = build(points, fit_intercept=fit_intercept).evaluate(smo.model_)
        assert found.gap is not None
        assert -1e-12 <= found.gap / found.primal < 1e-8


def test_the_tasks_kernel_counts_and_not_the_models(points: Any) -> None:
    X, y, _, _ = points
    model = expansion(RBF(0.7), X, 0.5 * y)
    assert build(points).evaluate(model) == build(points).evaluate(
        replace(model, kernel=RBF(5.0), points=np.zeros_like(model.points))
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"support": np.array([0, N_TRAIN])}, "there are 60 training points"),
        ({"support": np.array([-1, 3])}, "reaches from -1 to 3"),
        ({"support": np.array([0.0, 1.0])}, "not integers"),
        ({"coef": np.ones(3)}, "coefficients for"),
    ],
)
def test_a_malformed_model_is_refused(points: Any, change: dict[str, Any], message: str) -> None:
    model = KernelExpansion(RBF(0.7), points[0][:2], np.ones(2), 0.0, np.array([0, 1]), N_TRAIN)
    with pytest.raises(EvaluationError, match=message):
        build(points).evaluate(replace(model, **change))
    with pytest.raises(EvaluationError, match=r"not a solvers\.KernelExpansion"):
        build(points).evaluate(object())  # type: ignore[arg-type]


def test_a_model_of_nan_is_not_finite_and_raises_no_warning(points: Any) -> None:
    X, y, _, _ = points
    coef = 0.5 * y.astype(float)
    for bad in (np.nan, np.inf):
        coef[3] = bad
        assert not build(points).evaluate(expansion(KERNELS[0], X, coef)).finite


def test_an_empty_model_predicts_its_intercept(points: Any) -> None:
    X, _, _, z = points
    found = build(points).evaluate(expansion(KERNELS[0], X, np.zeros(N_TRAIN)))
    assert found.primal == C * N_TRAIN
    assert found.test_error == np.mean(z > 0)
    assert found.n_support == 0


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_the_noise_bound_covers_float32(points: Any, kernel: Kernel, scale: float) -> None:
    X, y, Z, z = points
    X, Z = scale * X, scale * Z
    evaluator = build((X, y, Z, z), kernel)
    model = expansion(kernel, X, 0.5 * y)
    error = np.abs(model.decision_function(Z) - evaluator.test_scores(model, np.arange(N_TEST)))
    assert model.dtype == "float32"
    assert error.max() <= evaluator.score_noise(model)
    # ... without being so wide that nothing could be told apart.
    assert evaluator.score_noise(model) < 1e-2 * 0.5 * N_TRAIN * max(1.0, entry(kernel, X[0], X[0]))
