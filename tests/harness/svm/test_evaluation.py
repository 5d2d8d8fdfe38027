"""The evaluator against sums written out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import marginbench.harness.evaluation.models
from marginbench.harness.errors import EvaluationError
from marginbench.harness.evaluation.models import Evaluator, TaskPoints
from marginbench.solvers import (
    RBF,
    SMO,
    BudgetExpansion,
    FourierExpansion,
    Kernel,
    KernelExpansion,
    Linear,
    LinearModel,
    LinearSDCA,
    Model,
    Perceptron,
    Polynomial,
    VotedExpansion,
)

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
    return Evaluator(TaskPoints(kernel, X, Z), y_train=y, y_test=z, **settings)


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
    monkeypatch.setattr(marginbench.harness.evaluation.models, "BLOCK_BYTES", 12 * N_TRAIN * 7)
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


@pytest.mark.parametrize(("excess", "feasible"), [(0.9e-6, True), (1.1e-6, False)])
@pytest.mark.parametrize("side", ["above C", "below 0"])
def test_alpha_may_leave_its_range_by_a_millionth_of_C(
    points: Any, side: str, excess: float, feasible: bool
) -> None:
    X, y, _, _ = points
    alpha = np.full(N_TRAIN, 0.5 * C)
    alpha[7] = C * (1 + excess) if side == "above C" else -C * excess
    found = build(points).evaluate(expansion(KERNELS[0], X, alpha * y))
    assert (found.dual is not None) == feasible
    assert (found.gap is not None) == feasible


@pytest.mark.parametrize(("excess", "feasible"), [(0.9e-6, True), (1.1e-6, False)])
@pytest.mark.parametrize("scale", [0.01, 1.0], ids=["of C", "of the sum"])
def test_with_a_bias_the_classes_may_differ_by_a_millionth(
    points: Any, scale: float, excess: float, feasible: bool
) -> None:
    X, y, _, _ = points
    alpha = np.zeros(N_TRAIN)
    for label in (1, -1):
        alpha[np.flatnonzero(y == label)[:5]] = scale * 0.5 * C
    # Relative to the sum of alpha, or to C where the sum is smaller.
    alpha[np.flatnonzero(y == 1)[0]] += excess * max(C, alpha.sum())
    evaluator = build(points, fit_intercept=True)
    found = evaluator.evaluate(expansion(KERNELS[0], X, alpha * y))
    assert (found.gap is not None) == feasible


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


def test_what_cannot_be_recomputed_is_refused(points: Any) -> None:
    class OwnModel(LinearModel, Model):
        pass

    class Unknown(Model):
        n_support = 0

        def decision_function(self, Z: Any) -> Any:
            return np.ones(len(Z))

        def squared_norm(self) -> float:
            return 0.0

        def attributes(self) -> dict[str, Any]:
            return {}

        def _stored(self) -> Any: ...

        @classmethod
        def _restored(cls, description: Any, arrays: Any) -> Any: ...

    with pytest.raises(EvaluationError, match=r"model_ is a object, no marginbench\.Model"):
        build(points).evaluate(object())  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match="model_ is a Unknown, a model of another kind"):
        build(points).evaluate(Unknown())
    # A class derived from a known one has its arrays, and those count.
    weights = np.ones(3)
    linear = build(points, Linear())
    assert linear.evaluate(OwnModel(weights)) == linear.evaluate(LinearModel(weights))


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


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_points_of_the_models_own(points: Any, kernel: Kernel, storage: Any) -> None:
    X, y, Z, z = points
    rng = np.random.default_rng(4)
    own, coef, b = rng.normal(size=(9, 3)), rng.normal(size=9), 0.25
    K = np.array([[entry(kernel, a, c) for c in own] for a in own])
    scores = np.array([[entry(kernel, a, c) for c in own] for a in X]) @ coef + b
    test_scores = np.array([[entry(kernel, a, c) for c in own] for a in Z]) @ coef + b
    evaluator = build((storage(X), y, storage(Z), z), kernel)
    # The kernel that the model claims is not looked at.
    found = evaluator.evaluate(BudgetExpansion(RBF(9.0), own, coef, b))
    assert found.squared_norm == pytest.approx(coef @ K @ coef, rel=1e-11)
    primal = 0.5 * coef @ K @ coef + C * np.maximum(0, 1 - y * scores).sum()
    assert found.primal == pytest.approx(primal, rel=1e-12)
    assert found.train_error == np.mean((scores > 0) != (y > 0))
    assert found.test_error == np.mean((test_scores > 0) != (z > 0))
    assert found.n_support == 9
    assert found.dual is None
    assert found.gap is None
    some = np.array([3, 1])
    np.testing.assert_allclose(
        evaluator.test_scores(BudgetExpansion(kernel, own, coef, b), some), test_scores[some]
    )


def test_the_noise_of_points_far_out_is_theirs(points: Any) -> None:
    X, y, Z, z = points
    for kernel in KERNELS:
        evaluator = build((X, y, Z, z), kernel)
        model = BudgetExpansion(kernel, 30 * X[:9], 0.5 * y[:9].astype(float))
        rows = np.arange(N_TEST)
        low, high = evaluator.score_bounds(model, rows)
        claimed = model.decision_function(Z)
        assert (low <= claimed).all()
        assert (claimed <= high).all()
        assert evaluator.score_noise(model) == pytest.approx((high - low).max() / 2)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_a_vector_of_weights(points: Any, storage: Any) -> None:
    X, y, Z, z = points
    w, b = np.array([1.0, -0.5, 0.2]), 0.1
    evaluator = build((storage(X), y, storage(Z), z), Linear())
    found = evaluator.evaluate(LinearModel(w, b))
    primal = 0.5 * w @ w + C * np.maximum(0, 1 - y * (X @ w + b)).sum()
    assert found.primal == pytest.approx(primal, rel=1e-12)
    assert found.squared_norm == pytest.approx(w @ w, rel=1e-12)
    assert found.test_error == np.mean((Z @ w + b > 0) != (z > 0))
    assert found.n_support == 0
    assert found.dual is None
    assert evaluator.score_noise(LinearModel(w, b)) == 0


def test_weights_have_the_gap_of_the_dual_point_that_comes_with_them(points: Any) -> None:
    X, y, _, _ = points
    evaluator = build(points, Linear())
    fit = LinearSDCA(C=C, tol=1e-9, max_epochs=20_000, random_state=0).fit(X, y)
    found = evaluator.evaluate(fit.model_)
    assert found.gap is not None
    assert found.primal is not None
    assert -1e-12 <= found.gap / found.primal < 1e-7
    # Other weights with the same dual point: the gap is theirs.
    worse = evaluator.evaluate(replace(fit.model_, weights=2 * fit.model_.weights))
    assert worse.dual == pytest.approx(found.dual, rel=1e-12)
    assert worse.primal is not None
    assert worse.gap == pytest.approx(worse.primal - found.dual)
    assert fit.model_.dual_coef is not None
    infeasible = replace(fit.model_, dual_coef=2 * fit.model_.dual_coef)
    assert evaluator.evaluate(infeasible).gap is None
    assert build(points, Linear(), dual_certificate=False).evaluate(fit.model_).gap is None


def test_weights_on_a_task_with_another_kernel_are_refused(points: Any) -> None:
    for kernel in KERNELS[::2]:
        with pytest.raises(EvaluationError, match=f"no solution of a task with the {kernel.name}"):
            build(points, kernel).evaluate(LinearModel(np.ones(3)))


def test_fourier_features(points: Any) -> None:
    X, y, Z, z = points
    rng = np.random.default_rng(5)
    V, w, b = rng.normal(size=(8, 3)), rng.normal(size=16), -0.2

    def scores(points: np.ndarray) -> np.ndarray:
        features = [
            [np.cos(v @ x) / np.sqrt(8) for v in V] + [np.sin(v @ x) / np.sqrt(8) for v in V]
            for x in points
        ]
        return np.array(features) @ w + b

    found = build(points).evaluate(FourierExpansion(V, w, b))
    primal = 0.5 * w @ w + C * np.maximum(0, 1 - y * scores(X)).sum()
    assert found.primal == pytest.approx(primal, rel=1e-12)
    assert found.train_error == np.mean((scores(X) > 0) != (y > 0))
    assert found.test_error == np.mean((scores(Z) > 0) != (z > 0))
    assert found.n_support == 0
    assert found.gap is None


def test_a_vote_has_errors_but_no_objective(points: Any) -> None:
    X, y, Z, z = points
    fit = Perceptron(RBF(0.7), output="voted", dtype="float64", random_state=0).fit(X, y)
    found = build(points).evaluate(fit.model_)
    assert found.train_error == np.mean(fit.predict(X) != y)
    assert found.test_error == np.mean(fit.predict(Z) != z)
    assert found.n_support == fit.model_.n_support > 0
    assert (found.primal, found.squared_norm, found.gap) == (None, None, None)
    assert found.finite


def test_a_vote_may_differ_by_those_whom_rounding_decides(points: Any) -> None:
    X, y, Z, z = points
    # On a grid many scores are exactly zero, so that float32 and float64 votes differ.
    X, Z = np.round(X), np.round(Z)
    evaluator = build((X, y, Z, z), Linear())
    fit = Perceptron("linear", output="voted", max_epochs=20, random_state=0).fit(X, y)
    rows = np.arange(N_TEST)
    low, high = evaluator.score_bounds(fit.model_, rows)
    claimed, exact = fit.decision_function(Z), evaluator.test_scores(fit.model_, rows)
    assert ((low <= claimed) & (claimed <= high)).all()
    assert ((low <= exact) & (exact <= high)).all()
    assert (low < high).any()
    assert (low == high).any()


BUDGET = BudgetExpansion(RBF(0.7), np.ones((2, 3)), np.ones(2))
FOURIER = FourierExpansion(np.ones((2, 3)), np.ones(4))
VOTED = VotedExpansion(
    KernelExpansion(RBF(0.7), np.ones((2, 3)), np.array([2.0, -1.0]), 0.0, np.array([0, 1]), 60),
    mistakes=np.array([0, 1, 0]),
    survivals=np.array([1, 2, 3]),
)


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (BUDGET, {"coef": np.ones(3)}, r"points of shape \(2, 3\) for 3 coefficients"),
        (BUDGET, {"points": np.ones((2, 4))}, "in 3 dimensions"),
        (BUDGET, {"points": np.ones((2, 3)) * 1j}, "points have type complex128, not real"),
        (BUDGET, {"points": np.full((2, 3), np.nan)}, "points that are not finite"),
        (BUDGET, {"points": np.full((2, 3), 1e200)}, "the rbf kernel of these points overflows"),
        (BUDGET, {"coef": np.ones((2, 1))}, r"coefficients have shape \(2, 1\), not a vector"),
        (LinearModel(np.ones(3)), {"weights": np.ones(4)}, r"shape \(4,\), not \(3,\)"),
        (LinearModel(np.ones(3)), {"weights": np.ones(3) * 1j}, "weights have type complex128"),
        (LinearModel(np.ones(3)), {"dual_coef": np.ones(4)}, r"shape \(4,\), not \(60,\)"),
        (FOURIER, {"frequencies": np.ones((2, 4))}, "the points have 3 features"),
        (FOURIER, {"weights": np.ones(2)}, r"weights have shape \(2,\), not \(4,\)"),
        (VOTED, {"mistakes": np.array([0, 1, 1])}, "do not add up to its last predictor"),
        (VOTED, {"mistakes": np.array([0, 1, 2])}, "do not add up to its last predictor"),
        (VOTED, {"mistakes": np.array([0.0, 1, 0])}, "mistakes are no sequence of whole numbers"),
        (VOTED, {"survivals": np.array([1, 2])}, "has 3 mistakes and 2 survivals"),
    ],
)
def test_malformed_models_of_the_other_kinds_are_refused(
    points: Any, model: Model, change: dict[str, Any], message: str
) -> None:
    evaluator = build(points, Linear() if isinstance(model, LinearModel) else RBF(0.7))
    assert evaluator.evaluate(model).finite
    with pytest.raises(EvaluationError, match=message):
        evaluator.evaluate(replace(model, **change))  # type: ignore[type-var]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_other_models_of_nan_are_not_finite(points: Any, bad: float) -> None:
    weights = np.array([1.0, bad, 1.0])
    assert not build(points, Linear()).evaluate(LinearModel(weights)).finite
    assert not build(points).evaluate(replace(BUDGET, coef=np.array([bad, 1.0]))).finite
    assert not build(points).evaluate(replace(FOURIER, weights=np.full(4, bad))).finite
    assert not build(points).evaluate(replace(FOURIER, frequencies=np.full((2, 3), bad))).finite
