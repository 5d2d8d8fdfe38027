"""BSCA and BSGD against the unbudgeted methods, the account of each step, and invariants."""

import math

import numpy as np
import pytest

from marginbench.solvers import SDCA, Monitor, Pegasos
from marginbench.solvers.budget import BSCA, BSGD
from marginbench.solvers.budget.epochs import budget_objectives
from marginbench.solvers.budget.maintenance import STRATEGIES
from marginbench.solvers.kernels import RBF

METHODS = [BSCA, BSGD]
# Each strategy, and the other pairings for what merges.
MAINTAINED = [
    *((name, "sign") for name in sorted(STRATEGIES)),
    ("merge", "label"),
    ("merge", "any"),
]


def gram(A, B):
    return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))


@pytest.mark.parametrize(
    ("kernel", "maintenance", "pairing"),
    [
        ("rbf", "merge", "sign"),
        # By label the model keeps labels, too.
        ("rbf", "merge", "label"),
        ("rbf", "project", "sign"),
        ("poly", "project", "sign"),
        ("poly", "remove", "sign"),
    ],
)
@pytest.mark.parametrize("order", ["permutation", "iid", "pegasos"])
def test_with_room_for_all_it_is_the_unlimited_method(
    rbf_task, order, kernel, maintenance, pairing, alpha_of
):
    # Points given more than once share a coefficient.
    X, y = np.repeat(rbf_task.X[:50], 3, axis=0), np.repeat(rbf_task.y[:50], 3)
    params = {"gamma": 0.5, "C": 2.0, "max_epochs": 4, "dtype": "float64", "random_state": 1}
    budget = 50 if kernel == "rbf" else 150
    if order == "pegasos":
        exact, method = Pegasos(kernel, **params), BSGD(kernel, order="iid", **params)
    else:
        exact = SDCA(kernel, order=order, tol=0.0, **params)
        method = BSCA(kernel, order=order, **params)
    expected = exact.fit(X, y).decision_function(X)
    method.set_params(budget=budget, maintenance=maintenance, pairing=pairing).fit(X, y)
    atol = 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(method.decision_function(X), expected, rtol=0, atol=atol)
    assert method.model_.n_support <= budget
    assert sum(record.maintenance for record in method.trace_) == 0
    assert sum(record.coalesced for record in method.trace_) > 0
    if order != "pegasos":
        np.testing.assert_allclose(method.alpha_, alpha_of(exact.model_, y), rtol=0, atol=1e-9)
    # Points that are not merged come out exactly as they are in the data.
    assert set(map(tuple, method.support_vectors_)) <= set(map(tuple, X))


@pytest.mark.parametrize(("name", "pairing"), MAINTAINED)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("budget", "gamma"), [(1, 0.5), (3, 0.5), (10, 1e9)])
def test_the_budget_holds_after_every_step(
    rbf_task, method, name, pairing, budget, gamma, recording_monitor
):
    monitor = recording_monitor()
    # With a huge gamma the points are strangers to each other.
    solver = method(gamma=gamma, C=10.0, budget=budget, maintenance=name, max_epochs=1)
    solver.set_params(pairing=pairing, random_state=2).fit(rbf_task.X, rbf_task.y, monitor=monitor)
    # The first iteration costs no evaluation, so nobody looks before the second.
    assert monitor.iterations == list(range(2, rbf_task.n + 1))
    sizes = np.array([model.n_support for model in monitor.snapshots])
    assert sizes.max() == budget
    assert (sizes >= 1).all()
    assert all(np.isfinite(model.coef).all() for model in monitor.snapshots)
    assert np.isfinite(solver.support_vectors_).all()
    assert solver.trace_[0].weight_degradation > 0
    if method is BSCA:
        assert ((solver.alpha_ >= 0) & (solver.alpha_ <= 10.0)).all()


@pytest.mark.parametrize(("name", "pairing"), MAINTAINED)
@pytest.mark.parametrize("method", METHODS)
def test_each_step_moves_w_by_what_the_account_says(
    rbf_task, method, name, pairing, recording_monitor
):
    X, y, C, n = rbf_task.X, rbf_task.y, 10.0, rbf_task.n
    monitor = recording_monitor()
    solver = method(
        gamma=0.5, C=C, budget=12, maintenance=name, pairing=pairing, max_epochs=1,
        dtype="float64", random_state=5,
    ).fit(X, y, monitor=monitor)  # fmt: skip
    draws = np.random.default_rng(5).permutation(n)
    first, alpha, total = draws[0], np.zeros(n), 0.0
    alpha[first] = 1.0
    points, coef = X[[first]], y[[first]] * (1.0 if method is BSCA else n * C)
    for t, (i, model) in enumerate(zip(draws[1:], monitor.snapshots, strict=True), 2):
        score = coef @ gram(points, X[i : i + 1])[:, 0]
        if method is BSCA:
            target = np.clip(alpha[i] + 1 - y[i] * score, 0, C)
            added, alpha[i] = y[i] * (target - alpha[i]), target
        else:
            coef = coef * (1 - 1 / t)
            added = y[i] * n * C / t if y[i] * score < 1 else 0.0
        wanted, wanted_coef = np.vstack([points, X[i]]), np.append(coef, added)
        everything = np.vstack([wanted, model.points])
        difference = np.concatenate([wanted_coef, -model.coef])
        total += difference @ gram(everything, everything) @ difference
        points, coef = model.points, model.coef
    assert total > 0
    (record,) = solver.trace_
    assert record.weight_degradation == pytest.approx(total, rel=1e-7)
    if method is BSCA:
        np.testing.assert_allclose(solver.alpha_, alpha, rtol=0, atol=1e-8)
    # Counted: the sizes before each iteration, and the other points of each event of merging.
    sizes = [1, *(model.n_support for model in monitor.snapshots[:-1])]
    assert record.margin_evals == sum(sizes)
    assert record.maintenance > 0
    merges = name.startswith("merge")
    assert record.search_evals >= 12 * record.maintenance * merges
    if pairing == "any" or not merges:
        assert record.search_evals == 12 * record.maintenance * merges
    assert solver.counters_.kernel_evals == record.margin_evals + record.search_evals
    assert record.objectives is None


def test_only_the_exact_dual_is_a_bound(rbf_task, optimum):
    best = optimum(rbf_task, 4.0).value
    mixed = []
    for seed in range(5):
        solver = BSCA(gamma=0.5, C=4.0, budget=4, max_epochs=10, record_objectives=True)
        solver.set_params(random_state=seed).fit(rbf_task.X, rbf_task.y)
        for record in solver.trace_:
            assert record.objectives.dual_exact <= best * (1 + 1e-9) <= record.objectives.primal
            mixed.append(record.objectives.dual_mixed)
    assert max(mixed) > best


@pytest.mark.parametrize("method", METHODS)
def test_records_of_epochs_are_those_of_the_definitions(rbf_task, method):
    X, y, C = rbf_task.X, rbf_task.y, 4.0
    solver = method(
        gamma=0.5, C=C, budget=15, max_epochs=3, record_objectives=True, random_state=0
    ).fit(X, y)
    found, alpha = solver.trace_[-1].objectives, solver.alpha_
    z, beta = solver.support_vectors_.astype(float), solver.dual_coef_[0]
    everything, w = np.vstack([X, z]), np.concatenate([alpha * y, np.zeros(len(z))])
    model = np.concatenate([np.zeros(len(y)), beta])
    K = gram(everything, everything)
    scores = (K @ model)[: len(y)]
    expected = {
        "primal": 0.5 * model @ K @ model + C * np.maximum(0, 1 - y * scores).sum(),
        "dual_exact": alpha.sum() - 0.5 * w @ K @ w,
        "dual_mixed": alpha.sum() - 0.5 * alpha @ (y * scores),
        "dual_model": alpha.sum() - 0.5 * model @ K @ model,
        "drift": math.sqrt((w - model) @ K @ (w - model)),
    }
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-6), name
    without = budget_objectives(solver.model_, X, y, alpha, C, 1)
    assert math.isnan(without.dual_exact)
    assert math.isnan(without.drift)
    assert without.primal == found.primal
    n = len(y)
    for number, record in enumerate(solver.trace_, 1):
        assert (record.epoch, record.n_iter, record.iterations) == (number, number * n, n)
        assert 0 <= record.coalesced <= record.changes <= n
        assert 0 < record.maintenance <= record.changes - record.coalesced
        assert record.maintenance_fraction == record.maintenance / n
        assert record.seconds > 0
        share = record.maintenance_seconds / record.seconds
        assert math.isnan(share) or 0 < share < 1


@pytest.mark.parametrize("method", METHODS)
def test_kernels_that_a_method_cannot_take_are_refused(rbf_task, method):
    class Twice(RBF):
        def block(self, A, B, out=None):
            return 2 * super().block(A, B, out)

    X, y, K = rbf_task.X, rbf_task.y, rbf_task.K
    negative = {"kernel": "poly", "coef0": -5.0, "budget": 5}
    for params, message in (
        ({"kernel": "linear", "budget": 10}, "merging needs the rbf kernel, got linear"),
        ({"kernel": "precomputed"}, "is not among rbf, linear and poly"),
        ({"kernel": Twice(0.5)}, "is not among rbf, linear and poly"),
        ({"kernel": lambda A, B: A @ B.T}, "does not take a callable kernel"),
        ({**negative, "maintenance": "project"}, "is not positive semidefinite"),
        ({**negative, "maintenance": "remove"}, "is not positive semidefinite"),
    ):
        with pytest.raises(ValueError, match=message):
            method(**params).fit(K if params["kernel"] == "precomputed" else X, y)
    for maintenance, kernel in (("project", "poly"), ("remove", "linear")):
        solver = method(kernel, gamma=0.5, coef0=1.0, budget=10, maintenance=maintenance)
        assert solver.fit(X, y).model_.n_support == 10
        assert np.isfinite(solver.dual_coef_).all()


@pytest.mark.parametrize(("stop_after", "epochs"), [(99, 4), (2, 2)])
@pytest.mark.parametrize("method", METHODS)
def test_a_monitor_hears_of_the_end_of_each_epoch_but_the_last(
    rbf_task, method, stop_after, epochs
):
    class Epochs(Monitor):
        def __init__(self):
            self.ends = []

        def epoch_ended(self, n_iter, snapshot):
            self.ends.append(n_iter)
            assert snapshot().n_support == 5
            return len(self.ends) == stop_after

    monitor = Epochs()
    solver = method(gamma=0.5, C=10.0, budget=5, max_epochs=4, random_state=0)
    solver.fit(rbf_task.X, rbf_task.y, monitor=monitor)
    assert monitor.ends == [rbf_task.n * k for k in (1, 2, 3)][:stop_after]
    assert solver.n_iter_ == epochs * rbf_task.n
    assert solver.status_ == ("stopped" if stop_after == 2 else "budget")
