"""BSCA and BSGD against literal twins, the unbudgeted methods, and their own invariants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import SDCA, SMO, Monitor, Pegasos
from marginbench.solvers.budget import BSCA, BSGD, STRATEGIES, Merging, Projection, Removal

METHODS = [BSCA, BSGD]
# Each strategy, and the other pairings for what merges.
MAINTAINED = [
    *((name, "sign") for name in sorted(STRATEGIES)),
    ("merge", "label"),
    ("merge", "any"),
]
GOLDEN = (math.sqrt(5) - 1) / 2


def draws_of_epoch(rng, n, order):
    return rng.permutation(n) if order == "permutation" else rng.integers(n, size=n)


class Twin:
    """The methods as the papers write them, in float64, with lists and no cleverness.

    ``w = scale * sum_j beta_j phi(z_j)``; ``margin`` and ``search`` count kernel evaluations. Of
    equal choices merging takes the last one, removal and projection the first; a hole in the list
    is filled with the last entry.
    """

    def __init__(self, gamma, budget, strategy, pairing):
        self.gamma, self.budget, self.strategy = gamma, budget, strategy
        self.pairing = pairing
        self.Z, self.beta, self.labels = [], [], []
        self.margin = self.search = self.events = 0
        self.lost, self.scale = 0.0, 1.0

    def k(self, a, b):
        return math.exp(-self.gamma * float(np.square(a - b).sum()))

    def score(self, x):
        self.margin += len(self.Z)
        total = sum(b * self.k(z, x) for z, b in zip(self.Z, self.beta, strict=True))
        return self.scale * total

    def add(self, x, coefficient, label):
        for j, z in enumerate(self.Z):
            if self.gamma * np.square(z - x).sum() <= 5e-9:
                self.beta[j] += coefficient
                self.lose(2 * coefficient**2 * (1 - self.k(z, x)))
                return
        self.Z.append(x)
        self.beta.append(coefficient)
        self.labels.append(label)
        if len(self.Z) > self.budget:
            self.maintain()

    def maintain(self):
        weights = np.abs(self.beta)
        i = int(np.argmin(weights))
        if self.beta[i] != 0:
            self.events += 1
            if isinstance(self.strategy, Merging):
                self.merge(int(np.flatnonzero(weights == weights.min())[-1]))
                return
            if isinstance(self.strategy, Projection):
                self.project(i)
                return
        self.lose(self.beta[i] ** 2)
        self.remove(i)

    def lose(self, squared):
        self.lost += self.scale**2 * squared

    def remove(self, i):
        for values in (self.Z, self.beta, self.labels):
            values[i] = values[-1]
            del values[-1]

    def project(self, i):
        K = np.array([[self.k(a, b) for b in self.Z] for a in self.Z])
        rest = [j for j in range(len(self.Z)) if j != i]
        ridged = K[np.ix_(rest, rest)] + 1e-10 * np.eye(len(rest))
        delta = np.linalg.solve(ridged, K[rest, i] * self.beta[i])
        change = np.zeros(len(self.Z))
        change[rest], change[i] = delta, -self.beta[i]
        self.lose(change @ K @ change)
        for j, d in zip(rest, delta, strict=True):
            self.beta[j] += d
        self.remove(i)

    def merge(self, i):
        partners = self.partners(i)
        if not partners:
            # Alone of its kind: the lightest of the others.
            others = [j for j in range(len(self.Z)) if j != i]
            i = min(reversed(others), key=lambda j: abs(self.beta[j]))
            partners = self.partners(i)
        best = min(reversed(partners), key=lambda j: self.pair(i, j)[0])
        lost, h, coefficient = self.pair(i, best)
        self.lose(lost)
        place = min(i, best)
        self.Z[place], self.beta[place] = h * self.Z[i] + (1 - h) * self.Z[best], coefficient
        self.remove(max(i, best))

    def partners(self, i):
        self.search += len(self.Z) - 1
        others = [j for j in range(len(self.Z)) if j != i]
        if self.pairing == "any":
            return others
        kind = self.beta if self.pairing == "sign" else self.labels
        return [j for j in others if kind[i] * kind[j] > 0]

    def pair(self, i, j):
        """Loss, weight h of z_i and coefficient of merging z_i with z_j, the heavier one."""
        a, b = self.beta[i], self.beta[j]
        kappa = self.k(self.Z[i], self.Z[j])

        def merged(h):
            return a * kappa ** ((1 - h) ** 2) + b * kappa ** (h * h)

        h = golden_section(merged, a / b, self.strategy.tolerance)
        return a * a + b * b + 2 * a * b * kappa - merged(h) ** 2, h, merged(h)


def golden_section(merged, ratio, tolerance):
    low, high = (0.0, 1.0) if ratio > 0 else (-5.0, 0.0)
    while high - low >= tolerance:
        p, q = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if abs(merged(p)) > abs(merged(q)):
            high = q
        else:
            low = p
    return max(0.0, 0.5 * (low + high), key=lambda h: abs(merged(h)))


def run_twin(method, X, y, C, gamma, budget, strategy, pairing, order, epochs, seed):
    n, rng = len(y), np.random.default_rng(seed)
    twin, alpha, t = Twin(gamma, budget, strategy, pairing), np.zeros(n), 0
    for _ in range(epochs):
        for i in draws_of_epoch(rng, n, order):
            t += 1
            margin = y[i] * twin.score(X[i])
            before = twin.lost
            if method is BSCA:
                target = min(max(alpha[i] + 1 - margin, 0.0), C)
                if target != alpha[i]:
                    step, alpha[i] = target - alpha[i], target
                    twin.add(X[i], y[i] * step, y[i])
            else:
                # t w is what decays never touch; rounding them would decide between equals.
                twin.scale = 1 / t
                alpha *= 1 - 1 / t
                if margin < 1:
                    alpha[i] += n * C / t
                    twin.add(X[i], y[i] * n * C, y[i])
            assert len(twin.Z) <= budget
            assert twin.lost >= before - 1e-12
    return twin, alpha


@pytest.mark.parametrize("order", ["permutation", "iid"])
@pytest.mark.parametrize(
    ("method", "strategy", "pairing"),
    [
        *((method, Projection(), "sign") for method in METHODS),
        *((method, Removal(), "sign") for method in METHODS),
        *((BSCA, Merging("golden"), pairing) for pairing in ("any", "sign")),
        # The test of coincident points is a short form.
        pytest.param(BSCA, Merging("golden"), "label", marks=pytest.mark.slow),
        # Golden section between equal coefficients, BSGD's, goes where rounding sends it.
    ],
)
@pytest.mark.parametrize("budget", [2, 5, 30])
def test_steps_are_the_literal_ones(rbf_task, method, strategy, pairing, order, budget):
    # With C = 50 hardly any two coefficients of BSCA are equal, at C, but for rounding.
    X, y, C, gamma, seed = rbf_task.X, rbf_task.y, 50.0, 0.5, 3
    twin, alpha = run_twin(method, X, y, C, gamma, budget, strategy, pairing, order, 2, seed)
    solver = method(
        gamma=gamma, C=C, budget=budget, maintenance=strategy, pairing=pairing, order=order,
        max_epochs=2, dtype="float64", random_state=seed,
    ).fit(X, y)  # fmt: skip
    scale = np.abs(alpha).max()
    np.testing.assert_allclose(solver.alpha_, alpha, rtol=0, atol=1e-9 * scale)
    K = np.array([[twin.k(x, z) for z in twin.Z] for x in X])
    expected = twin.scale * K @ twin.beta
    tolerance = 1e-6 if isinstance(strategy, Projection) else 1e-9
    if pairing != "sign":
        # Extrapolation multiplies the rounding of the points that it starts from by up to 6.
        tolerance *= 6
    np.testing.assert_allclose(
        solver.decision_function(X), expected, rtol=0, atol=tolerance * np.abs(expected).max()
    )
    assert solver.model_.n_support == len(twin.Z)

    trace = solver.trace_
    assert [record.n_iter for record in trace] == [rbf_task.n, 2 * rbf_task.n]
    assert sum(record.margin_evals for record in trace) == twin.margin
    assert sum(record.search_evals for record in trace) == twin.search
    assert solver.counters_.kernel_evals == twin.margin + twin.search
    assert sum(record.maintenance for record in trace) == twin.events
    lost = sum(record.weight_degradation for record in trace)
    # The ridge of the projection is that of its own factor, to rounding.
    assert lost == pytest.approx(twin.lost, rel=1e-5 if isinstance(strategy, Projection) else 1e-9)


def test_coincident_points_of_two_labels_keep_the_label_of_the_first(rbf_task):
    X = np.vstack([rbf_task.X[:60]] * 2)
    y = np.concatenate([rbf_task.y[:60], -rbf_task.y[:60]])
    strategy, seed = Merging("golden"), 0
    twin, alpha = run_twin(
        BSCA, X, y, 50.0, 0.5, 10, strategy, "label", "permutation", epochs=2, seed=seed
    )
    solver = BSCA(
        gamma=0.5, C=50.0, budget=10, maintenance=strategy, pairing="label", max_epochs=2,
        dtype="float64", random_state=seed,
    ).fit(X, y)  # fmt: skip
    assert sum(record.coalesced for record in solver.trace_) > 0
    np.testing.assert_allclose(solver.alpha_, alpha, rtol=0, atol=1e-8 * alpha.max())
    np.testing.assert_allclose(solver.dual_coef_[0], twin.beta, rtol=1e-6)


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
@pytest.mark.parametrize("budget", [1, 2, 3, 17])
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
    assert record.maintenance > 0


def gram(A, B):
    return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
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


@pytest.mark.parametrize("order", ["permutation", "iid"])
@pytest.mark.parametrize("method", METHODS)
def test_sparse_points_give_the_same_model(rbf_task, method, order):
    X = np.maximum(rbf_task.X, 0)
    params = {"gamma": 0.5, "C": 5.0, "budget": 15, "order": order, "max_epochs": 2}
    dense = method(**params, random_state=0).fit(X, rbf_task.y)
    stored = method(**params, random_state=0).fit(sparse.csr_matrix(X), rbf_task.y)
    np.testing.assert_allclose(stored.dual_coef_, dense.dual_coef_, rtol=1e-6)
    np.testing.assert_allclose(stored.support_vectors_, dense.support_vectors_, rtol=1e-6)
    assert stored.counters_ == dense.counters_


@pytest.mark.parametrize("method", METHODS)
def test_training_points_in_the_model_are_those_of_the_data(rbf_task, method):
    solver = method(gamma=0.5, budget=20, maintenance="remove", random_state=0)
    solver.fit(rbf_task.X, rbf_task.y)
    known = set(map(tuple, rbf_task.X))
    assert all(tuple(point) in known for point in solver.support_vectors_)


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
    again = solver.objectives(X, y)
    assert again == found
    without = solver.objectives(X, y, exact_up_to=1)
    assert math.isnan(without.dual_exact)
    assert math.isnan(without.drift)
    assert without.primal == found.primal
    with pytest.raises(ValueError, match="takes the 150 training points, got 149 points"):
        solver.objectives(X[1:], y[1:])


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


def test_the_exact_dual_rises_and_the_drift_is_none_with_room_for_all(rbf_task):
    solver = BSCA(
        gamma=0.5, C=4.0, budget=150, max_epochs=6, record_objectives=True, dtype="float64"
    ).fit(rbf_task.X, rbf_task.y)
    values = [record.objectives for record in solver.trace_]
    assert (np.diff([value.dual_exact for value in values]) > 0).all()
    for value in values:
        assert value.drift < 1e-5
        assert value.dual_model == pytest.approx(value.dual_exact, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_generous_budget_comes_near_the_optimum(rbf_task, method):
    smo = SMO(gamma=0.5, C=1.0, tol=1e-6).fit(rbf_task.X, rbf_task.y)
    solver = method(gamma=0.5, C=1.0, budget=50, max_epochs=40, random_state=0)
    solver.fit(rbf_task.X, rbf_task.y)
    assert solver.score(rbf_task.X, rbf_task.y) >= smo.score(rbf_task.X, rbf_task.y) - 0.04


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
        assert 0 < record.seconds < 10
        assert math.isnan(record.maintenance_share) or 0 < record.maintenance_share < 1
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
