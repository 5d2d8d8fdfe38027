"""Mirror prox for columns and cones: bounds, costs, and optima between proven bounds."""

import math
import time
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from marginbench.data_loaders import lap, ldfp
from marginbench.solvers import (
    MPCFP,
    MPKFP,
    MPLFP,
    SPCT,
    FeasibilityProblem,
    Orthant,
    PositiveSemidefinite,
    SecondOrder,
    check_certificate,
)

#: Columns that an epsilon-solution, 0 in the hull, is found for.
INSEPARABLE = lap(6, 80, seed=3).A


@pytest.mark.parametrize("method", [MPLFP, SPCT])
@pytest.mark.parametrize("shape", [(9, 701), (130, 300)])
def test_the_storage_of_A_does_not_matter(shape, method):
    A = ldfp(*shape, seed=4).A
    A[:, ::3] *= -1
    method = method(max_iter=40, stop="gap", tol=0.0)
    expected = method.solve(A)
    for given in (np.asfortranarray(A), sparse.csr_matrix(A), np.repeat(A, 2, axis=0)[::2]):
        result = method.solve(given)
        np.testing.assert_allclose(result.x, expected.x, rtol=0, atol=1e-13)
        np.testing.assert_allclose(result.y, expected.y, rtol=0, atol=1e-12)
        assert result.counters == expected.counters


@pytest.mark.parametrize(
    "A",
    [
        *(ldfp(8, 60, seed=1).A, ldfp(8, 60, kappa=10, seed=2).A, ldfp(40, 7, seed=3).A),
        *(INSEPARABLE, lap(6, 50, seed=1, kappa=50).A, lap(1, 5, seed=0).A),
    ],
    ids=["separable", "wide", "more rows", "inseparable", "nearly separable", "one row"],
)
def test_the_bounds_hold_and_close_as_proven(A, hard_margin):
    n, rho = A.shape[1], hard_margin(A)
    result = MPLFP(max_iter=1000, tol=1e-3, stop="gap", history=1).solve(A)
    assert [point.iteration for point in result.history] == list(range(1, result.n_iter + 1))
    for point in result.history:
        assert point.phi_lo <= rho + 1e-12
        assert point.phi_up >= rho - 1e-12
        assert point.residual * point.iteration <= math.sqrt(2 * math.log(n)) * (1 + 1e-12)
        assert point.residual == point.phi_up - point.phi_lo
        assert point.matvecs == 4 * point.iteration
    assert np.linalg.norm(result.y) <= 1 + 1e-12
    assert result.x.min() >= 0
    assert result.x.sum() == pytest.approx(1, abs=1e-14)
    # Unless it is asked for more, a run ends with the first certificate of either kind.
    ends = [point.iteration for point in result.history if point.phi_lo > 0]
    ends += [point.iteration for point in result.history if point.residual <= 1e-2]
    assert MPLFP(max_iter=1000, tol=1e-2).solve(A).n_iter == min(ends, default=1000)


def test_a_history_has_iterations_that_grow_by_its_ratio_and_times_of_the_run():
    before, cpu_before = time.perf_counter(), time.process_time()
    result = MPLFP(max_iter=10, tol=0.0, stop="gap", history=1.5).solve(INSEPARABLE)
    seconds, cpu_seconds = time.perf_counter() - before, time.process_time() - cpu_before
    assert [point.iteration for point in result.history] == [1, 2, 3, 5, 8, 10]
    times = [0.0, *(point.seconds for point in result.history), seconds]
    assert times == sorted(times)
    assert 0 < result.seconds <= seconds
    assert 0 <= result.cpu_seconds <= cpu_seconds


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


def test_a_gram_matrix_counts_as_that_of_unit_columns():
    A = ldfp(6, 30, seed=7).A
    lengths = np.random.default_rng(0).uniform(0.1, 10, 30)
    scaled = A * lengths
    # As symmetric as the rounding of the longest columns leaves it.
    gram = scaled.T @ scaled
    gram += np.triu(np.full(gram.shape, np.spacing(gram.max())), 1)
    plain, other = (MPKFP(stop="gap", tol=0.0, max_iter=30).solve(G) for G in (A.T @ A, gram))
    np.testing.assert_allclose(other.y, plain.y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(other.x, plain.x, rtol=0, atol=1e-12)
    assert check_certificate(FeasibilityProblem.gram(gram), other).valid


CONES = {
    "orthant": [Orthant(12)],
    "second order": [SecondOrder(6)],
    "second order, plane": [SecondOrder(2)],
    "semidefinite": [PositiveSemidefinite(4)],
    # One base for all: a positive sum of the least values over separate ones proves nothing.
    "product": [Orthant(3), SecondOrder(4), PositiveSemidefinite(3), SecondOrder(3)],
}


def conic_data(cones, lift, m=5):
    """Random rows; the first one is moved into the cone by ``lift``.

    Those of matrices count by their symmetric parts, which the others here are far larger than.
    """
    rng = np.random.default_rng(11)
    blocks = []
    for cone in cones:
        if isinstance(cone, PositiveSemidefinite):
            block, skew = rng.standard_normal((2, m, cone.n, cone.n))
            block = (block + block.transpose(0, 2, 1)) / 2
            block[0] += lift * np.eye(cone.n)
            blocks.append((block + 100 * (skew - skew.transpose(0, 2, 1))).reshape(m, -1))
        else:
            block = rng.standard_normal((m, cone.size))
            block[0, slice(-1, None) if isinstance(cone, SecondOrder) else slice(None)] += lift
            blocks.append(block)
    return np.hstack(blocks)


def pieces(p, cones):
    """Each cone with its part of p."""
    return zip(cones, np.split(p, np.cumsum([cone.size for cone in cones])[:-1]), strict=True)


def symmetric(matrices):
    return (matrices + np.swapaxes(matrices, -1, -2)) / 2


def by_definition(p, cones):
    """The least of <x, p> over the base, and <e, p>."""
    least, total = [], 0.0
    for cone, part in pieces(p, cones):
        if isinstance(cone, Orthant):
            least, total = [*least, part.min()], total + part.sum()
        elif isinstance(cone, SecondOrder):
            least, total = [*least, part[-1] - np.linalg.norm(part[:-1])], total + part[-1]
        else:
            matrix = symmetric(part.reshape(cone.n, cone.n))
            least, total = [*least, np.linalg.eigvalsh(matrix)[0]], total + np.trace(matrix)
    return min(least), total


def conic_bound(A, cones):
    """Bound on t times the residual, from the definitions of the two geometries' constants."""
    if len(cones) == 1 and isinstance(cones[0], SecondOrder):
        return np.linalg.norm(A[:, :-1], 2)
    rank, norms = 0, []
    for cone, rows in pieces(A.T, cones):
        rank += 2 if isinstance(cone, SecondOrder) else cone.n
        if isinstance(cone, Orthant):
            norms.append(np.linalg.norm(rows, axis=1).max())
        elif isinstance(cone, SecondOrder):
            norms.append(np.linalg.norm(rows[:-1], 2) + np.linalg.norm(rows[-1]))
        else:
            squares = sum(M @ M for M in symmetric(rows.T.reshape(-1, cone.n, cone.n)))
            norms.append(math.sqrt(np.linalg.eigvalsh(squares)[-1]))
    return math.sqrt(2 * math.log(rank)) * max(norms)


@pytest.mark.parametrize("lift", [0.0, 3.0])
@pytest.mark.parametrize("cones", CONES.values(), ids=CONES)
def test_cones_have_the_value_that_weak_duality_brackets(cones, lift):
    A, bound = conic_data(cones, lift), conic_bound(conic_data(cones, lift), cones)
    problem = FeasibilityProblem.conic(A, cones)
    result = MPCFP(max_iter=400, tol=0.0, stop="gap", history=1).solve(problem)
    low, up = by_definition(A.T @ result.y, cones)[0], np.linalg.norm(A @ result.x)
    least, total = by_definition(result.x, cones)
    assert least >= -1e-12
    assert total == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(result.y) <= 1 + 1e-12
    assert (result.phi_lo, result.phi_up) == pytest.approx((low, up), abs=1e-12)
    for point in result.history:
        assert point.phi_lo <= up + 1e-12
        assert point.phi_up >= low - 1e-12
        assert point.residual * point.iteration <= bound * (1 + 1e-12)
    assert result.counters.matvecs == 1600
    verdict = check_certificate(problem, result)
    assert verdict.valid, verdict.reasons
    certified = MPCFP(tol=0.05).solve(problem)
    none = "inseparable" if cones == [Orthant(12)] else "margin_at_most_tol"
    assert certified.status == ("separable" if low > 0 else none)
    assert check_certificate(problem, certified).valid
