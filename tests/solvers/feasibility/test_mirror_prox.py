"""Mirror prox for columns, Gram matrices and cones: bounds, certificates, costs."""

import math
import tracemalloc

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from marginbench.data_loaders import lap, ldfp
from marginbench.solvers import (
    MPCFP,
    MPKFP,
    MPLFP,
    SMO,
    FeasibilityProblem,
    Orthant,
    PositiveSemidefinite,
    SecondOrder,
    check_certificate,
)

PROBLEMS = {
    "separable": lambda: ldfp(8, 60, seed=1).A,
    "wide margin": lambda: ldfp(8, 60, kappa=10, seed=2).A,
    "inseparable": lambda: lap(5, 60, seed=2).A,
    "nearly separable": lambda: lap(6, 50, seed=1, kappa=50).A,
    "more rows than columns": lambda: ldfp(40, 7, seed=3).A,
    "one row": lambda: lap(1, 5, seed=0).A,
}


@pytest.fixture(params=sorted(PROBLEMS))
def A(request):
    return PROBLEMS[request.param]()


def margin(A):
    """rho for a separable problem, by the hard-margin SVM; 0 for the others."""
    G = A.T @ A
    signs = np.where(np.random.default_rng(0).random(len(G)) < 0.5, 1.0, -1.0)
    signs[:2] = [1.0, -1.0]
    smo = SMO("precomputed", C=1e12, tol=1e-10, dtype="float64", max_iter=20_000 * len(G))
    smo.fit(G * np.outer(signs, signs), signs)
    if smo.status_ != "converged":
        return 0.0
    alpha = np.zeros(len(G))
    alpha[smo.support_] = smo.dual_coef_[0] * signs[smo.support_]
    return 1 / math.sqrt(alpha @ G @ alpha)


def gap_bound(n):
    return math.sqrt(2 * math.log(n))


@pytest.mark.parametrize("storage", ["columns", "sparse", "strided"])
@pytest.mark.parametrize("shape", [(9, 701), (130, 300)])
def test_the_storage_of_A_does_not_matter(storage, shape):
    A = ldfp(*shape, seed=4).A
    A[:, ::3] *= -1
    given = {
        "columns": np.asfortranarray,
        "sparse": sparse.csr_matrix,
        "strided": lambda A: np.repeat(A, 2, axis=0)[::2],
    }[storage](A)
    method = MPLFP(max_iter=40, stop="gap", tol=0.0)
    expected = method.solve(A)
    result = method.solve(given)
    np.testing.assert_allclose(result.x, expected.x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(result.y, expected.y, rtol=0, atol=1e-12)
    assert result.counters == expected.counters


def test_the_bounds_hold_and_close_as_proven(A):
    n = A.shape[1]
    rho = margin(A)
    result = MPLFP(max_iter=3000, tol=1e-3, stop="gap", history=1).solve(A)
    assert [point.iteration for point in result.history] == list(range(1, result.n_iter + 1))
    for point in result.history:
        assert point.phi_lo <= rho + 1e-12
        assert point.phi_up >= rho - 1e-12
        assert point.residual * point.iteration <= gap_bound(n) * (1 + 1e-12)
        assert point.residual == point.phi_up - point.phi_lo
        assert point.matvecs == 4 * point.iteration
    assert np.linalg.norm(result.y) <= 1 + 1e-12
    assert result.x.min() >= 0
    assert result.x.sum() == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_a_separator_comes_within_the_proven_number_of_iterations(seed):
    A = ldfp(10, 150, kappa=1 + seed, seed=seed).A
    result = MPLFP(tol=1e-9).solve(A)
    assert result.status == "separable"
    assert result.converged
    assert result.message == "a separating y was found"
    assert (result.certificate @ A).min() > 0
    assert result.n_iter <= gap_bound(150) / margin(A) + 1
    # It is the first: one iteration less has none.
    with pytest.warns(ConvergenceWarning, match=f"max_iter={result.n_iter - 1} before"):
        before = MPLFP(tol=1e-9, max_iter=result.n_iter - 1).solve(A)
    assert before.status == "budget"
    assert before.certificate is None
    assert not before.converged
    assert before.message == f"max_iter={result.n_iter - 1} iterations are done"


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
def test_an_epsilon_solution_comes_within_the_proven_number_of_iterations(tol):
    A = lap(6, 80, seed=3).A
    problem = FeasibilityProblem.linear(A)
    result = MPLFP(tol=tol).solve(problem)
    assert result.status == "inseparable"
    assert np.linalg.norm(A @ result.certificate) <= tol
    assert result.residual <= tol
    assert result.n_iter <= gap_bound(80) / tol + 1
    assert check_certificate(problem, result).valid
    before = MPLFP(tol=0.0, stop="gap", max_iter=result.n_iter - 1).solve(problem)
    assert before.residual > tol


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_is_a_few_vectors_beyond_A(order):
    m, n = 20, 100_000
    A = np.asarray(ldfp(m, n, seed=1).A, order=order)
    MPLFP(max_iter=2, tol=0.0, stop="gap").solve(A)
    tracemalloc.start()
    try:
        result = MPLFP(max_iter=5, tol=0.0, stop="gap", history=1).solve(A)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.n_iter == 5
    assert peak <= 10 * 8 * n


@pytest.mark.parametrize("iterations", [1, 40])
def test_with_a_linear_kernel_it_is_the_method_on_columns(A, iterations):
    params = {"max_iter": iterations, "tol": 0.0, "stop": "gap", "history": 1}
    linear = MPLFP(**params).solve(A)
    kernel = MPKFP(**params).solve(A.T @ A)
    np.testing.assert_allclose(kernel.x, linear.x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(A @ kernel.y, linear.y, rtol=0, atol=1e-10)
    for ours, theirs in zip(kernel.history, linear.history, strict=True):
        assert ours.phi_lo == pytest.approx(theirs.phi_lo, abs=1e-10)
        # A square root: where it is 0, rounding of 1e-16 becomes 1e-8.
        assert ours.phi_up == pytest.approx(theirs.phi_up, abs=1e-10 if theirs.phi_up > 0 else 1e-7)
    n = A.shape[1]
    assert kernel.counters.kernel_evals == n * n
    assert kernel.counters.kernel_evals_computed == 0
    assert kernel.counters.matvecs == 2 * iterations
    assert kernel.counters.matvec_entries == 2 * iterations * n * n


def test_a_gram_matrix_counts_as_that_of_unit_columns():
    A = ldfp(6, 30, seed=7).A
    lengths = np.random.default_rng(0).uniform(0.1, 10, 30)
    scaled = A * lengths
    plain, other = (MPKFP(stop="gap", tol=0.0, max_iter=30).solve(B.T @ B) for B in (A, scaled))
    np.testing.assert_allclose(other.y, plain.y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(other.x, plain.x, rtol=0, atol=1e-12)
    assert check_certificate(FeasibilityProblem.gram(scaled.T @ scaled), other).valid


CONES = {
    "orthant": [Orthant(12)],
    "second order": [SecondOrder(6)],
    "second order, plane": [SecondOrder(2)],
    "semidefinite": [PositiveSemidefinite(4)],
    "product": [Orthant(3), SecondOrder(4), PositiveSemidefinite(3), SecondOrder(3)],
}


def conic_data(cones, lift, m=5):
    """Random rows; the first one is moved into the cone by ``lift``."""
    rng = np.random.default_rng(11)
    blocks = []
    for cone in cones:
        if isinstance(cone, PositiveSemidefinite):
            block = rng.standard_normal((m, cone.n, cone.n))
            block = (block + block.transpose(0, 2, 1)) / 2
            block[0] += lift * np.eye(cone.n)
            blocks.append(block.reshape(m, -1))
        else:
            block = rng.standard_normal((m, cone.size))
            block[0, slice(-1, None) if isinstance(cone, SecondOrder) else slice(None)] += lift
            blocks.append(block)
    return np.hstack(blocks)


def clarabel_value(A, cones):
    """max t subject to A'y - t e in the cone and ||y|| <= 1, by an interior-point method."""
    m = A.shape[0]
    rows = [np.vstack((np.zeros(m + 1), np.eye(m, m + 1)))]
    offsets = [np.eye(1, m + 1)[0]]
    kinds = [clarabel.SecondOrderConeT(m + 1)]
    first = 0
    for cone in cones:
        part = A[:, first : first + cone.size].T
        first += cone.size
        if isinstance(cone, Orthant):
            e, kind = np.ones(cone.n), clarabel.NonnegativeConeT(cone.n)
        elif isinstance(cone, SecondOrder):
            # The bound of the norm comes first.
            part = np.roll(part, 1, axis=0)
            e, kind = np.eye(1, cone.n)[0], clarabel.SecondOrderConeT(cone.n)
        else:
            i, j = np.array([(i, j) for j in range(cone.n) for i in range(j + 1)]).T
            scale = np.where(i == j, 1.0, math.sqrt(2))
            part = part[i * cone.n + j] * scale[:, None]
            e, kind = np.where(i == j, 1.0, 0.0), clarabel.PSDTriangleConeT(cone.n)
        rows.append(np.column_stack((part, -e)))
        offsets.append(np.zeros(len(e)))
        kinds.append(kind)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((m + 1, m + 1)),
        -np.eye(1, m + 1, m)[0],
        sparse.csc_matrix(-np.vstack(rows)),
        np.concatenate(offsets),
        kinds,
        settings,
    ).solve()
    assert str(solution.status) == "Solved"
    return -solution.obj_val


def conic_bound(A, cones):
    """Bound on t times the residual, from the definitions of the two geometries' constants."""
    if len(cones) == 1 and isinstance(cones[0], SecondOrder):
        return np.linalg.norm(A[:, :-1], 2)
    rank, lipschitz, first = 0, 0.0, 0
    for cone in cones:
        part = A[:, first : first + cone.size]
        first += cone.size
        if isinstance(cone, Orthant):
            rank, norm = rank + cone.n, np.linalg.norm(part, axis=0).max()
        elif isinstance(cone, SecondOrder):
            rank, norm = rank + 2, np.linalg.norm(part[:, :-1], 2) + np.linalg.norm(part[:, -1])
        else:
            squares = sum(row.reshape(cone.n, cone.n) @ row.reshape(cone.n, cone.n) for row in part)
            rank, norm = rank + cone.n, math.sqrt(np.linalg.eigvalsh(squares)[-1])
        lipschitz = max(lipschitz, norm)
    return math.sqrt(2 * math.log(rank)) * lipschitz


@pytest.mark.parametrize("lift", [0.0, 3.0])
@pytest.mark.parametrize("cones", CONES.values(), ids=CONES)
def test_cones_have_the_value_that_an_interior_point_method_finds(cones, lift):
    A = conic_data(cones, lift)
    value, bound = clarabel_value(A, cones), conic_bound(A, cones)
    problem = FeasibilityProblem.conic(A, cones)
    result = MPCFP(max_iter=400, tol=0.0, stop="gap", history=1).solve(problem)
    for point in result.history:
        assert point.phi_lo <= value + 1e-7
        assert point.phi_up >= value - 1e-7
        assert point.residual * point.iteration <= bound * (1 + 1e-12)
    assert result.counters.matvecs == 1600
    verdict = check_certificate(problem, result)
    assert verdict.valid, verdict.reasons
    certified = MPCFP(tol=0.05).solve(problem)
    none = "inseparable" if cones == [Orthant(12)] else "margin_at_most_tol"
    assert certified.status == ("separable" if value > 1e-6 else none)
    assert check_certificate(problem, certified).valid


def test_one_positive_sum_over_two_bases_proves_nothing():
    # A'y has a positive and a negative entry for every y, and a positive sum for y > 0.
    cones = [Orthant(1), Orthant(1)]
    result = MPCFP(tol=1e-3).solve(FeasibilityProblem.conic(np.array([[1.0, -0.5]]), cones))
    assert result.status == "inseparable"
    np.testing.assert_allclose(result.x, [1 / 3, 2 / 3], atol=1e-3)
