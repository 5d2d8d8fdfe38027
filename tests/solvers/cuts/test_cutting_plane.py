"""Cutting planes for two classes: against SMO, a plain twin, and what is known of every cut."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from marginbench.solvers import SMO, CuttingPlane
from marginbench.solvers.cuts import algorithms, cutting_plane
from marginbench.solvers.cuts.structure import Examples
from marginbench.solvers.numeric.simplex_qp import SimplexQP

ORACLES = ["exact", "linear", "constant"]
EXACT = {"dtype": "float64", "random_state": 0}


def primal(model, X, y, C):
    scores = model.decision_function(X)
    return 0.5 * model.model_.squared_norm() + C * np.maximum(0, 1 - y * scores).sum()


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(("tol", "stopping"), [(1e-2, "violation"), (1e-5, "relative")])
def test_exact_cuts_reach_the_optimum(task, C, tol, stopping, optimum):
    best = optimum(task, C).value
    solver = CuttingPlane(C=C, oracle="exact", tol=tol, stopping=stopping, **EXACT, **task.params)
    reached = primal(solver.fit(task.X, task.y), task.X, task.y, C)
    assert solver.status_ == "converged"
    allowed = tol * (reached if stopping == "relative" else C * task.n)
    assert -1e-8 * best <= reached - best <= allowed
    # The certificate covers what is missing.
    assert reached - best <= C * task.n * solver.violation_ * (1 + 1e-6) + 1e-8 * best
    assert C * task.n * solver.violation_ <= allowed * (1 + 1e-9)


@pytest.mark.parametrize("shift", [0, 30])
@pytest.mark.parametrize("oracle", ["exact", "linear"])
@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_rounded_entries_do_not_feign_convergence(oracle, shift, recwarn):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) + shift
    y = np.where(X[:, 0] > X[:, 1], 1.0, -1.0)
    found = {}
    for dtype in ("float64", "float32"):
        model = CuttingPlane("linear", C=100.0, oracle=oracle, dtype=dtype, random_state=0)
        w = X[model.fit(X, y).support_].T @ model.dual_coef_[0]
        found[dtype] = 0.5 * w @ w + 100 * np.maximum(0, 1 - y * (X @ w)).sum()
    assert model.status_ == ("converged" if shift == 0 else "budget")
    if shift:
        assert "ended at the rounding of its float32 kernel entries" in str(recwarn[-1].message)
    else:
        assert found["float32"] == pytest.approx(found["float64"], rel=2e-3)


def twin(task, C, oracle, r, seed, stopping, tol=1e-3, patience=4):
    """Algorithms 1 to 3 of CUTS08 on a Gram matrix, without removal of cuts; w and the counts."""
    K, y, n = task.K, task.y, task.n
    rng, C1 = np.random.default_rng(seed), C * n
    V, offsets, evals = np.zeros((0, n)), [], 0
    qp = SimplexQP(C1)
    qp.add([], 0.0, 0.0)
    while True:
        w = -qp.b[1:] @ V
        f = K @ w
        level = -qp.gradient.min() - qp.gap / C1
        for _ in range(patience if oracle == "constant" else 1):
            if oracle == "constant":
                drawn = rng.integers(n, size=r)
                evals += len(offsets) * r * r
            else:
                drawn = np.arange(n)
            hinge = np.maximum(0, 1 - y[drawn] * f[drawn])
            allowed = tol
            if stopping == "auto" and oracle != "constant":
                allowed *= hinge.mean() + 0.5 * w @ f / C1
            if hinge.mean() > level + allowed:
                break
        else:
            return w, len(offsets), evals
        drawn = drawn[hinge > 0]
        offset = len(drawn) / len(hinge)
        evals += r * (r + 1) // 2 if oracle == "constant" else 0
        v = np.zeros(n)
        if oracle == "linear" and len(drawn) > r:
            while True:
                sample = drawn[rng.integers(len(drawn), size=r)]
                v = -np.bincount(sample, minlength=n) * y * offset / r
                if offset + v @ f > level + allowed:
                    break
            evals += n * r
        else:
            np.add.at(v, drawn, -y[drawn] / len(hinge))
            evals += n * len(drawn) if oracle != "constant" else 0
        qp.add(np.concatenate(([0.0], V @ (K @ v))), v @ K @ v, offset)
        V, offsets = np.vstack([V, v]), [*offsets, offset]
        qp.solve(0.1 * C1 * allowed)


@pytest.mark.parametrize(("seed", "stopping"), [(0, "auto"), (1, "violation")])
@pytest.mark.parametrize("oracle", ORACLES)
def test_a_plain_twin_makes_the_same_cuts(rbf_task, oracle, seed, stopping):
    task = rbf_task
    coef, n_cuts, evals = twin(task, 1.0, oracle, 25, seed, stopping)
    solver = CuttingPlane(
        oracle=oracle, n_samples=25, max_idle=10**6, dtype="float64", random_state=seed,
        stopping=stopping, **task.params,
    ).fit(task.X, task.y)  # fmt: skip
    assert solver.n_iter_ == n_cuts
    assert solver.counters_.kernel_evals == evals
    found = np.zeros(task.n)
    found[solver.support_] = solver.dual_coef_[0]
    np.testing.assert_allclose(found, coef, rtol=0, atol=1e-7 * np.abs(coef).max())


@pytest.mark.parametrize(
    ("oracle", "module", "name", "value"),
    [
        ("exact", cutting_plane, "_FEWEST_ROWS", 2.0),
        ("linear", cutting_plane, "_FEWEST_ROWS", 2.0),
        ("exact", algorithms, "_SMALL_SCORES", 149),
        ("constant", algorithms, "_KEPT_BYTES", 0),
    ],
)
def test_what_is_kept_changes_what_is_computed_and_nothing_else(
    rbf_task, oracle, module, name, value, monkeypatch
):
    task, evaluated, fits = rbf_task, [], []

    def kernel(A, B):
        """Entries that do not depend on the block that they are computed in."""
        evaluated.append(len(A) * len(B))
        return np.exp(-0.5 * cdist(A, B, "sqeuclidean"))

    for _ in range(2):
        evaluated.clear()
        solver = CuttingPlane(kernel, oracle=oracle, n_samples=30, tol=1e-2, **EXACT)
        fits.append(solver.fit(task.X, task.y))
        assert solver.counters_.kernel_evals_computed == sum(evaluated)
        assert solver.counters_.kernel_evals >= sum(evaluated)
        monkeypatch.setattr(module, name, value)
    kept, fresh = (solver.counters_ for solver in fits)
    if name != "_SMALL_SCORES":
        assert fresh.kernel_evals_computed > 1.2 * kept.kernel_evals_computed
    if oracle != "constant":
        # Each row at most once.
        assert kept.kernel_evals_computed <= task.n**2
        assert fresh.kernel_evals == kept.kernel_evals
    scores = [solver.decision_function(task.X) for solver in fits]
    # Scores of many points are kept in float32.
    atol = 1e-2 if name == "_SMALL_SCORES" else 1e-6
    np.testing.assert_allclose(scores[1], scores[0], rtol=0, atol=atol)


def test_parameters_are_those_of_an_equivalent_problem(rbf_task):
    task = rbf_task
    weights = np.random.default_rng(2).integers(0, 4, size=task.n)
    params = {"oracle": "exact", "tol": 1e-6, **EXACT}

    def scores(points=task.X, y=task.y, weights=None, **options):
        solver = CuttingPlane(**params, **task.params, **options)
        return solver.fit(points, y, sample_weight=weights).decision_function(task.X)

    other = SMO("precomputed", dtype="float64").fit(task.K + 2.25, task.y)
    kept = np.repeat(np.arange(task.n), weights)
    for found, expected, atol in (
        # Weights count as repeated points.
        (scores(weights=weights), scores(task.X[kept], task.y[kept]), 1e-3),
        # Features of twice the length are a quarter of C.
        (2 * scores(C=0.25, psi_scale=1.0), scores(), 1e-9),
        # A constant feature is a kernel with a constant.
        (scores(constant_feature=1.5), other.decision_function(task.K + 2.25), 2e-2),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("among", [None, np.array([1, 2, 5, 6])])
def test_examples_are_drawn_in_proportion_to_their_weights(among):
    shares = np.array([0.0, 0.1, 0.2, 0.0, 0.0, 0.3, 0.4, 0.0])
    examples = Examples(np.ones(8), np.arange(9), shares)
    drawn = examples.draw(np.random.default_rng(0), 20_000, among)
    if among is not None:
        drawn = among[drawn]
    rates = np.bincount(drawn, minlength=8) / 20_000
    assert (rates[shares == 0] == 0).all()
    np.testing.assert_allclose(rates, shares, atol=5 * np.sqrt(0.25 / 20_000))
