"""BSCA and BSGD against the unbudgeted methods, the account of each step, and invariants."""

import math

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import SDCA, Monitor, Pegasos
from marginbench.solvers.budget import BSCA, BSGD, STRATEGIES
from marginbench.solvers.budget.epochs import budget_objectives
from marginbench.solvers.kernels import RBF

METHODS = [BSCA, BSGD]
# Each strategy, and the other pairings for what merges.
MAINTAINED = [
    *((name, "sign") for name in sorted(STRATEGIES)),
    ("merge", "label"),
    ("merge", "any"),
]


def common_snapshots(first, second):
    """Pairs of models that two monitors recorded at the same iteration."""
    other = dict(zip(second.iterations, second.snapshots, strict=True))
    return [
        (model, other[t])
        for t, model in zip(first.iterations, first.snapshots, strict=True)
        if t in other
    ]


@pytest.mark.parametrize(
    ("maintenance", "pairing"),
    # By label the model keeps labels, too.
    [("merge", "any"), ("merge", "label"), ("project", "sign"), ("remove", "sign")],
)
@pytest.mark.parametrize("order", ["permutation", "iid"])
def test_bsca_with_room_for_all_is_sdca_step_by_step(
    task, maintenance, pairing, order, recording_monitor, alpha_of
):
    params = {**task.params, "C": 3.0, "order": order, "max_epochs": 3, "dtype": "float64"}
    unlimited, budgeted = recording_monitor(), recording_monitor()
    sdca = SDCA(**params, tol=0.0, random_state=1).fit(task.X, task.y, monitor=unlimited)
    bsca = BSCA(**params, budget=task.n, maintenance=maintenance, random_state=1)
    bsca.set_params(pairing=pairing).fit(task.X, task.y, monitor=budgeted)
    pairs = common_snapshots(unlimited, budgeted)
    # SDCA reports each change; BSCA each iteration but the first, which costs nothing.
    assert len(pairs) >= len(unlimited.snapshots) - 1 > task.n / 2
    for exact, model in pairs:
        expected = exact.decision_function(task.X)
        atol = 1e-10 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(model.decision_function(task.X), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(bsca.alpha_, alpha_of(sdca.model_, task.y), rtol=0, atol=1e-9)
    assert sum(record.maintenance for record in bsca.trace_) == 0


@pytest.mark.parametrize("maintenance", ["merge", "project", "remove"])
def test_bsgd_with_room_for_all_is_pegasos_step_by_step(task, maintenance, recording_monitor):
    params = {**task.params, "C": 3.0, "max_epochs": 3, "dtype": "float64"}
    unlimited, budgeted = recording_monitor(), recording_monitor()
    pegasos = Pegasos(**params, random_state=1).fit(task.X, task.y, monitor=unlimited)
    bsgd = BSGD(**params, budget=task.n, maintenance=maintenance, order="iid", random_state=1)
    bsgd.fit(task.X, task.y, monitor=budgeted)
    pairs = common_snapshots(unlimited, budgeted)
    assert len(pairs) >= len(unlimited.snapshots) - 1 > task.n / 4
    for exact, model in pairs:
        expected = exact.decision_function(task.X)
        atol = 1e-10 * np.abs(expected).max()
        np.testing.assert_allclose(model.decision_function(task.X), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(
        bsgd.decision_function(task.X), pegasos.decision_function(task.X), rtol=1e-9
    )


@pytest.mark.parametrize(("name", "pairing"), MAINTAINED)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [1, 3])
def test_the_budget_holds_after_every_step(
    rbf_task, method, name, pairing, budget, recording_monitor
):
    monitor = recording_monitor()
    solver = method(gamma=0.5, C=10.0, budget=budget, maintenance=name, max_epochs=1)
    solver.set_params(pairing=pairing, random_state=2).fit(rbf_task.X, rbf_task.y, monitor=monitor)
    # The first iteration costs no evaluation, so nobody looks before the second.
    assert monitor.iterations == list(range(2, rbf_task.n + 1))
    sizes = np.array([model.n_support for model in monitor.snapshots])
    assert sizes.max() == budget
    assert (sizes >= 1).all()
    assert all(np.isfinite(model.coef).all() for model in monitor.snapshots)
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


def gram(A, B):
    return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("method", METHODS)
def test_points_given_more_than_once_share_a_coefficient(rbf_task, method, kernel):
    X, y = np.repeat(rbf_task.X[:20], 3, axis=0), np.repeat(rbf_task.y[:20], 3)
    params = {"kernel": kernel, "gamma": 0.5, "C": 2.0, "max_epochs": 4, "dtype": "float64"}
    if method is BSCA:
        exact = SDCA(**params, tol=0.0, random_state=0).fit(X, y)
    else:
        exact = Pegasos(**params, random_state=0).fit(X, y)
    budget = 20 if kernel == "rbf" else 60
    order = "permutation" if method is BSCA else "iid"
    solver = method(**params, budget=budget, maintenance="remove", order=order, random_state=0)
    solver.fit(X, y)
    assert solver.model_.n_support <= budget
    assert sum(record.maintenance for record in solver.trace_) == 0
    assert sum(record.coalesced for record in solver.trace_) > 0
    expected = exact.decision_function(X)
    np.testing.assert_allclose(
        solver.decision_function(X), expected, rtol=0, atol=1e-10 * np.abs(expected).max()
    )


@pytest.mark.parametrize(("name", "pairing"), MAINTAINED)
@pytest.mark.parametrize("method", METHODS)
def test_points_that_are_strangers_to_each_other_do_no_harm(rbf_task, method, name, pairing):
    solver = method(gamma=1e9, C=1.0, budget=10, maintenance=name, max_epochs=2, random_state=0)
    solver.set_params(pairing=pairing).fit(rbf_task.X, rbf_task.y)
    assert np.isfinite(solver.dual_coef_).all()
    assert np.isfinite(solver.support_vectors_).all()
    assert solver.model_.n_support <= 10
    assert sum(record.weight_degradation for record in solver.trace_) > 0


@pytest.mark.parametrize("method", METHODS)
def test_sparse_points_give_the_same_model(rbf_task, method):
    X = np.maximum(rbf_task.X, 0)
    params = {"gamma": 0.5, "C": 5.0, "budget": 15, "max_epochs": 2}
    dense = method(**params, random_state=0).fit(X, rbf_task.y)
    stored = method(**params, random_state=0).fit(sparse.csr_matrix(X), rbf_task.y)
    np.testing.assert_allclose(stored.dual_coef_, dense.dual_coef_, rtol=1e-6)
    np.testing.assert_allclose(stored.support_vectors_, dense.support_vectors_, rtol=1e-6)
    assert stored.counters_ == dense.counters_
    # Points that are not merged come out exactly as they are in the data.
    kept = method(**params, maintenance="remove", random_state=0).fit(X, rbf_task.y)
    known = set(map(tuple, X))
    assert all(tuple(point) in known for point in kept.support_vectors_)


@pytest.mark.parametrize("method", METHODS)
def test_objectives_and_drift_are_those_of_the_definitions(rbf_task, method):
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
def test_a_record_of_each_epoch(rbf_task, method):
    solver = method(gamma=0.5, C=5.0, budget=20, max_epochs=3, random_state=0)
    solver.fit(rbf_task.X, rbf_task.y)
    n = rbf_task.n
    for number, record in enumerate(solver.trace_, 1):
        assert (record.epoch, record.n_iter, record.iterations) == (number, number * n, n)
        assert 0 <= record.coalesced <= record.changes <= n
        assert record.maintenance <= record.changes - record.coalesced
        assert record.maintenance_fraction == record.maintenance / n
        assert record.seconds > 0
        share = record.maintenance_seconds / record.seconds
        assert math.isnan(share) or 0 < share < 1
        assert record.objectives is None
    assert solver.trace_[-1].maintenance > 0


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("method", METHODS)
def test_merging_another_kernel_is_refused(rbf_task, method, kernel):
    with pytest.raises(ValueError, match=f"merging needs the rbf kernel, got {kernel}"):
        method(kernel=kernel, budget=10).fit(rbf_task.X, rbf_task.y)
    for maintenance in ("project", "remove"):
        solver = method(kernel=kernel, gamma=0.5, coef0=1.0, budget=10, maintenance=maintenance)
        solver.fit(rbf_task.X, rbf_task.y)
        assert solver.model_.n_support <= 10
        assert np.isfinite(solver.dual_coef_).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_kernel_without_compiled_form_is_refused(rbf_task, method):
    with pytest.raises(ValueError, match="is not among rbf, linear and poly"):
        method(kernel="precomputed").fit(rbf_task.K, rbf_task.y)
    with pytest.raises(ValueError, match="does not take a callable kernel"):
        method(kernel=lambda A, B: A @ B.T).fit(rbf_task.X, rbf_task.y)

    class Twice(RBF):
        def block(self, A, B, out=None):
            return 2 * super().block(A, B, out)

    with pytest.raises(ValueError, match="is not among rbf, linear and poly"):
        method(kernel=Twice(0.5)).fit(rbf_task.X, rbf_task.y)


@pytest.mark.parametrize("maintenance", ["project", "remove"])
@pytest.mark.parametrize("method", METHODS)
def test_a_kernel_with_a_negative_diagonal_is_refused(rbf_task, method, maintenance):
    with pytest.raises(ValueError, match="is not positive semidefinite"):
        method(kernel="poly", coef0=-5.0, budget=5, maintenance=maintenance).fit(
            rbf_task.X, rbf_task.y
        )


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
