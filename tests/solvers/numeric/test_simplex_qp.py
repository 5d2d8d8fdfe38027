"""Quadratic programs over a simplex, against an interior-point solver and by their conditions."""

import numpy as np
import pytest
import qpsolvers
from scipy import sparse

from marginbench.solvers.numeric.simplex_qp import SimplexQP


def interior_point(Q, h, total):
    """The minimum of 1/2 b'Qb - h'b over the simplex, by Clarabel."""
    b = qpsolvers.solve_qp(
        sparse.csc_matrix(Q), -h, A=sparse.csc_matrix(np.ones((1, len(h)))), b=np.array([total]),
        lb=np.zeros(len(h)), solver="clarabel", tol_gap_abs=1e-12, tol_gap_rel=1e-12,
        tol_feas=1e-12,
    )  # fmt: skip
    return 0.5 * b @ Q @ b - h @ b


def random_qp(seed, size, rank, scale=1.0):
    rng = np.random.default_rng(seed)
    planes = rng.standard_normal((size, rank)) + rng.standard_normal(rank)
    Q = scale * planes @ planes.T
    return 0.5 * (Q + Q.T), rng.standard_normal(size)


def filled(Q, h, total):
    qp = SimplexQP(total)
    for k in range(len(h)):
        qp.add(Q[k, :k], Q[k, k], h[k])
    return qp


def check_feasible(qp):
    assert qp.b.min() >= 0
    assert qp.b.sum() == pytest.approx(qp.total, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
@pytest.mark.parametrize(
    ("size", "rank", "total"),
    [(1, 3, 1.0), (2, 1, 300.0), (30, 60, 0.01), (30, 4, 1.0), (80, 20, 300.0)],
)
def test_the_gap_bounds_the_distance_to_the_minimum_and_closes(size, rank, scale, total):
    Q, h = random_qp(size, size, rank, scale)
    qp, expected = filled(Q, h, total), interior_point(Q, h, total)
    unit = total * np.abs(h).max() + total**2 * Q.max()
    for tol in unit * np.geomspace(1, 1e-10, 6):
        gap = qp.solve(tol)
        check_feasible(qp)
        assert gap <= tol
        assert qp.gap == pytest.approx(gap, rel=1e-2, abs=1e-12 * unit)
        assert qp.value == pytest.approx(0.5 * qp.b @ Q @ qp.b - h @ qp.b, rel=1e-12)
        rounding = 5e-9 * unit
        assert expected - rounding <= qp.value <= expected + gap + rounding
    # Zero tolerance ends where rounding begins.
    assert qp.solve(0.0) <= 1e-12 * unit


def test_growing_and_shrinking_keep_the_state():
    Q, h = random_qp(5, 60, 15)
    qp = SimplexQP(3.0)
    present, value = [], np.inf
    for k in range(60):
        qp.add(Q[k, present], Q[k, k], h[k])
        present.append(k)
        assert qp.b[-1] == (3.0 if k == 0 else 0.0)
        qp.solve(1e-10)
        # One more variable cannot make the minimum larger; removing one at zero leaves it.
        assert qp.value <= value + 1e-9
        value = qp.value
        if k % 7 == 6:
            out = np.flatnonzero(qp.b == 0)[::2]
            before = np.delete(qp.b, out)
            qp.remove(out)
            present = np.delete(present, out).tolist()
            np.testing.assert_allclose(qp.b, before, rtol=1e-13, atol=0)
            assert qp.value == pytest.approx(value, rel=1e-12)
        np.testing.assert_array_equal(qp.Q, Q[np.ix_(present, present)])
        np.testing.assert_array_equal(qp.h, h[present])
        check_feasible(qp)
    # None goes, one that leaves its share to the others, and all that have one.
    for chosen in (lambda b: [], lambda b: [b.argmax()], np.flatnonzero):
        qp.remove(chosen(qp.b))
        check_feasible(qp)
        qp.solve(1e-10)
        expected = interior_point(qp.Q, qp.h, 3.0)
        assert qp.value == pytest.approx(expected, rel=1e-8)
