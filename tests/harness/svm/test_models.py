"""The evaluator against sums written out by hand: of two classes and of several, of every model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from marginbench.data_loaders import Dataset
from marginbench.harness.errors import EvaluationError
from marginbench.harness.evaluation import models as scoring
from marginbench.harness.evaluation.models import Evaluator
from marginbench.solvers import (
    BSCA,
    RBF,
    SMO,
    BudgetExpansion,
    FourierExpansion,
    KernelExpansion,
    Linear,
    LinearModel,
    LinearSDCA,
    Model,
    OneVsRestModel,
    Perceptron,
    Polynomial,
    RandomFourierFeatures,
    VotedExpansion,
)
from marginbench.solvers.kernels import Precomputed

N_TRAIN, N_TEST, C = 60, 35, 2.0
KERNELS = (RBF(0.7), Linear(), Polynomial(degree=2, gamma=0.5, coef0=1.0))
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(N_TRAIN + N_TEST, 3))
LABELS = np.where(POINTS[:, 0] + 0.3 * RNG.normal(size=len(POINTS)) > 0, 1, -1).astype(np.int8)
X, y, Z, z = POINTS[:N_TRAIN], LABELS[:N_TRAIN], POINTS[N_TRAIN:], LABELS[N_TRAIN:]


def build(kernel=KERNELS[0], data=(X, y, Z, z), **options):
    settings = {"C": C, "fit_intercept": False, "certificate": True, **options}
    return Evaluator(kernel, Dataset("", {}, *data, "", "", ""), **settings)


def expansion(kernel, coef, b=0.0):
    support = np.flatnonzero(coef)
    return KernelExpansion(kernel, X[support], coef[support], b, support, len(X))


def gram(kernel, A, B):
    """Kernel entries, from their definition."""
    products = np.array([[a @ b for b in B] for a in A])
    if isinstance(kernel, RBF):
        return np.exp([[-kernel.gamma * np.sum((a - b) ** 2) for b in B] for a in A])
    if isinstance(kernel, Polynomial):
        return (kernel.gamma * products + kernel.coef0) ** kernel.degree
    return products


def score(kernel, model, points):
    """The scores of a model, from their definitions."""
    match model:
        case LinearModel():
            return points @ model.weights + model.intercept
        case FourierExpansion():
            angles = points @ model.frequencies.T
            features = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(angles.shape[1])
            return features @ model.weights + model.intercept
    return gram(kernel, points, model.points) @ model.coef + model.intercept


ALPHA = RNG.uniform(0, C, N_TRAIN) * (np.arange(N_TRAIN) % 3 > 0)
OWN, OWN_COEF = RNG.normal(size=(9, 3)), RNG.normal(size=9)
FREQUENCIES, WEIGHTS = RNG.normal(size=(8, 3)), RNG.normal(size=16)


@pytest.mark.parametrize(
    ("kernel", "model"),
    [
        *((kernel, expansion(kernel, ALPHA * y, 0.25)) for kernel in KERNELS),
        # The kernel that the model claims is not looked at, nor are its copies of points.
        (KERNELS[0], replace(expansion(RBF(5.0), ALPHA * y), points=np.zeros((40, 3)))),
        *((kernel, BudgetExpansion(RBF(9.0), OWN, OWN_COEF, 0.25)) for kernel in KERNELS),
        (Linear(), LinearModel(np.array([1.0, -0.5, 0.2]), 0.1)),
        (KERNELS[0], FourierExpansion(FREQUENCIES, WEIGHTS, 0.1)),
    ],
)
@pytest.mark.parametrize(
    ("storage", "labels"),
    # Of two numbers the larger one is positive.
    [(np.asarray, (-1, 1)), (np.asarray, (0, 1)), (sparse.csr_matrix, (-7, -3))],
)
def test_errors_and_objectives_are_those_of_the_scores(kernel, model, storage, labels):
    given = (np.where(signs > 0, *labels[::-1]) for signs in (y, z))
    data = (storage(X), next(given), storage(Z), next(given))
    evaluator = build(kernel, data)
    found = evaluator.evaluate(model)
    if isinstance(model, KernelExpansion):
        model = replace(model, points=X[model.support])
    if isinstance(model, LinearModel | FourierExpansion):
        norm2, n_support = model.weights @ model.weights, 0
        assert evaluator.score_noise(model) == 0
    else:
        norm2 = model.coef @ gram(kernel, model.points, model.points) @ model.coef
        n_support = len(model.coef)
        quick = build(kernel, data).evaluate(model, "float32")
        assert found.primal != quick.primal == pytest.approx(found.primal, rel=1e-5)
    scores, test_scores = (score(kernel, model, points) for points in (X, Z))
    hinge = np.maximum(0, 1 - y * scores)
    assert found.squared_norm == pytest.approx(norm2, rel=1e-11)
    assert found.primal == pytest.approx(0.5 * norm2 + C * hinge.sum(), rel=1e-12)
    assert found.mean_hinge == pytest.approx(hinge.mean(), rel=1e-12)
    assert found.train_error == np.mean((scores > 0) != (y > 0))
    assert found.test_error == np.mean((test_scores > 0) != (z > 0))
    assert found.n_support == n_support
    dual = gap = None
    if isinstance(model, KernelExpansion):
        dual = pytest.approx(ALPHA.sum() - 0.5 * norm2, rel=1e-12)
        gap = found.primal - found.dual
    assert (found.dual, found.gap) == (dual, gap)
    given = evaluator.test_scores(model, np.array([3, 1]))
    np.testing.assert_allclose(given, test_scores[[3, 1]])


@pytest.mark.parametrize(("excess", "feasible"), [(0.9e-6, True), (1.1e-6, False)])
def test_a_gap_needs_a_feasible_dual_point_to_a_millionth(excess, feasible):
    for wrong in (C * (1 + excess), -C * excess):
        alpha = np.full(N_TRAIN, 0.5 * C)
        alpha[7] = wrong
        found = build().evaluate(expansion(KERNELS[0], alpha * y))
        assert (found.dual is not None) == (found.gap is not None) == feasible
    # With a bias the classes must balance: relative to the sum of alpha, or to C if that is more.
    for scale in (0.01, 1.0):
        alpha = np.zeros(N_TRAIN)
        for label in (1, -1):
            alpha[np.flatnonzero(y == label)[:5]] = scale * 0.5 * C
        alpha[np.flatnonzero(y == 1)[0]] += excess * max(C, alpha.sum())
        found = build(fit_intercept=True).evaluate(expansion(KERNELS[0], alpha * y))
        assert (found.gap is not None) == feasible
    without = build(certificate=False)
    assert without.evaluate(expansion(KERNELS[0], 0.5 * y)).dual is None


@each_kernel
@pytest.mark.parametrize("scale", [0.1, 5.0])
def test_the_noise_bound_covers_float32(kernel, scale):
    rows = np.arange(N_TEST)
    evaluator = build(kernel, (scale * X, y, scale * Z, z))
    own = KernelExpansion(kernel, scale * X, 0.5 * y, 0.0, np.arange(N_TRAIN), N_TRAIN)
    error = np.abs(own.decision_function(scale * Z) - evaluator.test_scores(own, rows))
    assert own.dtype == "float32"
    assert error.max() <= evaluator.score_noise(own)
    # ... without being so wide that nothing could be told apart.
    most = max(1.0, gram(kernel, scale * X[:1], scale * X[:1])[0, 0])
    assert evaluator.score_noise(own) < 1e-2 * 0.5 * N_TRAIN * most
    # Points of its own may lie farther out.
    far = BudgetExpansion(kernel, 30 * X[:9], 0.5 * y[:9].astype(float))
    low, high = evaluator.score_bounds(far, rows)
    claimed = far.decision_function(scale * Z)
    assert ((low <= claimed) & (claimed <= high)).all()
    assert evaluator.score_noise(far) == pytest.approx((high - low).max() / 2)


def test_weights_have_the_gap_of_the_dual_point_that_comes_with_them():
    evaluator = build(Linear())
    model = LinearSDCA(C=C, tol=1e-9, max_epochs=20_000, random_state=0).fit(X, y).model_
    found = evaluator.evaluate(model)
    assert -1e-12 <= found.gap / found.primal < 1e-7
    # Other weights with the same dual point: the gap is theirs.
    worse = evaluator.evaluate(replace(model, weights=2 * model.weights))
    assert worse.dual == pytest.approx(found.dual, rel=1e-12)
    assert worse.gap == pytest.approx(worse.primal - found.dual)
    assert evaluator.evaluate(replace(model, dual_coef=2 * model.dual_coef)).gap is None
    assert build(Linear(), certificate=False).evaluate(model).gap is None


def test_a_vote_has_errors_but_no_objective_and_may_differ_by_those_whom_rounding_decides():
    def scores_of(model, kernel, points, X):
        """The scores of every predictor of the run, a column each."""
        of = model.last.support[model.mistakes]
        return np.cumsum(y[of] * gram(kernel, points, X[of]), axis=1)

    rows, kernel = np.arange(N_TEST), RBF(0.7)
    model = Perceptron(kernel, output="voted", dtype="float64", random_state=0).fit(X, y).model_
    found = build().evaluate(model)
    votes, on_train = (
        np.sign(scores_of(model, kernel, points, X)) @ model.survivals for points in (Z, X)
    )
    np.testing.assert_array_equal(build().test_scores(model, rows), votes)
    assert found.train_error == np.mean((on_train > 0) != (y > 0))
    assert found.test_error == np.mean((votes > 0) != (z > 0))
    assert found.n_support == model.n_support > 0
    assert (found.primal, found.squared_norm, found.gap, found.finite) == (None, None, None, True)
    # On a grid many scores are exactly zero, so that float32 and float64 votes differ.
    A, B = np.round(X), np.round(Z)
    fit = Perceptron("linear", output="voted", max_epochs=20, random_state=0).fit(A, y)
    low, high = build(Linear(), (A, y, B, z)).score_bounds(fit.model_, rows)
    scores = scores_of(fit.model_, Linear(), B, A)
    sure, unsure = (each @ fit.model_.survivals for each in (np.sign(scores), scores == 0))
    np.testing.assert_array_equal((low, high), (sure - unsure, sure + unsure))
    claimed = fit.decision_function(B)
    assert ((low <= claimed) & (claimed <= high)).all()
    assert 0 < np.sum(low < high) < N_TEST


# What is refused

KERNEL = KernelExpansion(RBF(0.7), X[:2], np.ones(2), 0.0, np.array([0, 1]), N_TRAIN)
BUDGET = BudgetExpansion(RBF(0.7), np.ones((2, 3)), np.ones(2))
FOURIER = FourierExpansion(np.ones((2, 3)), np.ones(4))
LINEAR = LinearModel(np.ones(3))
VOTED = VotedExpansion(
    replace(KERNEL, coef=np.array([2.0, -1.0])),
    mistakes=np.array([0, 1, 0]),
    survivals=np.array([1, 2, 3]),
)


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (KERNEL, {"support": np.array([0, N_TRAIN])}, "there are 60 training points"),
        (KERNEL, {"support": np.array([-1, 3])}, "reaches from -1 to 3"),
        (KERNEL, {"support": np.array([0.0, 1.0])}, "support are no whole numbers"),
        (KERNEL, {"coef": np.ones(3)}, "coefficients have shape"),
        (BUDGET, {"coef": np.ones(3)}, r"points have shape \(2, 3\), not \(3, 3\)"),
        (BUDGET, {"points": np.ones((2, 4))}, r"points have shape \(2, 4\), not \(2, 3\)"),
        (BUDGET, {"points": np.ones((2, 3)) * 1j}, "points have type complex128, not real"),
        (BUDGET, {"points": np.full((2, 3), np.nan)}, "points that are not finite"),
        (BUDGET, {"points": np.full((2, 3), 1e200)}, "the rbf kernel of these points overflows"),
        (BUDGET, {"coef": np.ones((2, 1))}, r"coefficients have shape \(2, 1\), not \(any,\)"),
        (LINEAR, {"weights": np.ones(4)}, r"shape \(4,\), not \(3,\)"),
        (LINEAR, {"weights": np.ones(3) * 1j}, "weights have type complex128"),
        (LINEAR, {"dual_coef": np.ones(4)}, r"shape \(4,\), not \(60,\)"),
        (FOURIER, {"frequencies": np.ones((2, 4))}, r"shape \(2, 4\), not \(any, 3\)"),
        (FOURIER, {"weights": np.ones(2)}, r"weights have shape \(2,\), not \(4,\)"),
        (VOTED, {"mistakes": np.array([0, 1, 1])}, "do not add up to its last predictor"),
        (VOTED, {"mistakes": np.array([0, 1, 2])}, "do not add up to its last predictor"),
        (VOTED, {"mistakes": np.array([0.0, 1, 0])}, "mistakes are no whole numbers"),
        (VOTED, {"survivals": np.array([1, 2])}, r"survivals have shape \(2,\), not \(3,\)"),
    ],
)
def test_malformed_models_are_refused(model, change, message):
    evaluator = build(Linear() if model is LINEAR else RBF(0.7))
    assert evaluator.evaluate(model).finite
    with pytest.raises(EvaluationError, match=message):
        evaluator.evaluate(replace(model, **change))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_model_of_nan_is_not_finite_and_raises_no_warning(bad):
    assert not build().evaluate(replace(KERNEL, coef=np.array([bad, 1.0]))).finite
    assert not build(Linear()).evaluate(LinearModel(np.array([1.0, bad, 1.0]))).finite
    assert not build().evaluate(replace(BUDGET, coef=np.array([bad, 1.0]))).finite
    assert not build().evaluate(replace(FOURIER, frequencies=np.full((2, 3), bad))).finite


def test_a_class_derived_from_a_known_one_has_its_arrays_and_those_count():
    class OwnModel(LinearModel, Model):
        pass

    assert build(Linear()).evaluate(OwnModel(np.ones(3))) == build(Linear()).evaluate(LINEAR)


# Entries that are kept between the states of a run


def states(kernel):
    """Support vectors come and go; the first state has none, and the last repeats."""
    rng = np.random.default_rng(5)
    found = [
        expansion(kernel, y * rng.uniform(0, C, N_TRAIN) * (rng.random(N_TRAIN) < share))
        for share in (0.0, 0.1, 0.4, 0.2, 0.9)
    ]
    return [*found, found[-1]]


@pytest.mark.parametrize(
    ("kernel", "storage"),
    [(RBF(0.7), np.asarray), (Linear(), sparse.csr_matrix), (Precomputed(), np.asarray)],
)
def test_kept_entries_are_those_of_each_state(kernel, storage):
    own = Linear() if isinstance(kernel, Precomputed) else kernel
    data = (storage(X), y, storage(Z), z) if own is kernel else (X @ X.T, y, Z @ X.T, z)
    kept = build(kernel, data)
    for model in states(own):
        found, exact = kept.evaluate(model, "float32"), build(own).evaluate(model)
        assert found.primal == pytest.approx(exact.primal, rel=1e-4)
        assert found.squared_norm == pytest.approx(exact.squared_norm, rel=1e-4, abs=1e-6)
        for role, n in (("train_error", N_TRAIN), ("test_error", N_TEST)):
            assert getattr(found, role) == pytest.approx(getattr(exact, role), abs=1.1 / n)


@pytest.mark.parametrize("keeps", ["all at once", "as needed", "none"])
def test_each_entry_is_computed_once_where_all_of_them_fit(keeps, monkeypatch):
    class Counted(RBF):
        def block(self, A, B, out=None):
            computed.append(len(A) * len(B))
            return super().block(A, B, out)

        def weighted_sums(self, A, B, coef, sums):
            computed.append(len(A) * len(B))
            super().weighted_sums(A, B, coef, sums)

    computed, size = [], N_TRAIN * (N_TRAIN + N_TEST)
    monkeypatch.setattr(scoring, "KEPT_BYTES", 4 * size - (keeps == "none"))
    monkeypatch.setattr(scoring, "_BLOCK_ENTRIES", size if keeps == "all at once" else 500)
    judge, models = build(Counted(0.7)), states(RBF(0.7))[:4]
    for model in models:
        judge.evaluate(model, "float32")
    ever = len(set().union(*(set(model.support) for model in models)))
    each = sum(len(model.support) for model in models)
    rows = {"all at once": N_TRAIN, "as needed": ever, "none": each}
    assert ever < N_TRAIN
    assert sum(computed) == (N_TRAIN + N_TEST) * rows[keeps]


# Several classes, each against the rest

IRIS, CLASSES = load_iris(return_X_y=True)
TRAIN, TEST = np.arange(150) % 3 != 2, np.arange(150) % 3 == 2


def of_iris(kernel, of=lambda labels: labels, certificate=True):
    data = (IRIS[TRAIN], of(CLASSES[TRAIN]), IRIS[TEST], of(CLASSES[TEST]))
    return build(kernel, data, certificate=certificate)


@pytest.mark.parametrize(
    ("solver", "kernel"),
    [
        (SMO(gamma=0.5, C=C, tol=1e-8, dtype="float64"), RBF(0.5)),
        (BSCA(gamma=0.5, C=C, budget=20, random_state=0), RBF(0.5)),
        (LinearSDCA(C=C, random_state=0), Linear()),
        (RandomFourierFeatures(gamma=0.5, C=C, random_state=0), RBF(0.5)),
        (Perceptron(gamma=0.5, output="voted", random_state=0), RBF(0.5)),
    ],
)
def test_errors_are_counted_and_objectives_are_added_up(solver, kernel):
    solver.fit(IRIS[TRAIN], CLASSES[TRAIN])
    certificate = solver.certificate == "dual"
    found = of_iris(kernel, certificate=certificate).evaluate(solver.model_)
    assert found.train_error == np.mean(solver.predict(IRIS[TRAIN]) != CLASSES[TRAIN])
    assert found.test_error == np.mean(solver.predict(IRIS[TEST]) != CLASSES[TEST])
    each = [
        of_iris(kernel, lambda labels, label=label: np.where(labels == label, 1, -1), False)
        .evaluate(one.model_)
        .primal
        for label, one in enumerate(solver.estimators_)
    ]
    assert found.primal == (None if None in each else pytest.approx(sum(each), rel=1e-12))
    if certificate:
        assert 0 <= found.gap < 1e-2 * found.primal
    assert found.n_support == solver.model_.n_support


def test_classes_that_were_not_reached_or_have_not_changed(monkeypatch):
    calls = []
    dual = Evaluator._dual
    monkeypatch.setattr(Evaluator, "_dual", lambda *given: calls.append(1) or dual(*given))
    parts = SMO(gamma=0.5, C=C).fit(IRIS[TRAIN], CLASSES[TRAIN]).model_.parts
    evaluator = of_iris(RBF(0.5))
    first = evaluator.evaluate(OneVsRestModel((parts[0], None, None)), "float32")
    # Each missing class costs C for every point, its dual point is 0.
    assert first.gap == pytest.approx(2 * C * 100, rel=0.01)
    # Only the first class can be told from the rest.
    assert first.test_error == pytest.approx(1 / 3, abs=0.05)
    second = evaluator.evaluate(OneVsRestModel((parts[0], parts[1], None)), "float32")
    assert len(calls) == 3 + 1
    assert second.test_error < first.test_error
    evaluator.evaluate(OneVsRestModel(parts))
    assert len(calls) == 3 + 1 + 3
    mixed = OneVsRestModel((replace(BUDGET, points=np.ones((2, 4))), None, None))
    assert evaluator.evaluate(mixed).n_support == 2


class Unknown(Model):
    kind, n_support = "unknown", 0
    decision_function = squared_norm = attributes = _stored = _restored = None


def test_models_that_cannot_be_those_of_the_task_are_refused():
    two, three = (SMO(gamma=0.5).fit(IRIS, of).model_ for of in (CLASSES == 1, CLASSES))
    several, pair = of_iris(RBF(0.5)), of_iris(RBF(0.5), lambda labels: labels == 1)
    for evaluator, model, message in (
        (several, two, "3 classes, but the model is one of two classes"),
        (several, OneVsRestModel((*three.parts, None)), "but the model is one of 4 classes"),
        (several, OneVsRestModel((three, *three.parts[1:])), "is itself one of several classes"),
        (pair, three, "two classes, but the model is one of several"),
        (pair, object(), r"model_ is a object, no marginbench\.Model"),
        (pair, Unknown(), "model_ is a Unknown, a model of another kind"),
        (pair, LINEAR, "no solution of a task with the rbf kernel"),
    ):
        with pytest.raises(EvaluationError, match=message):
            evaluator.evaluate(model)
