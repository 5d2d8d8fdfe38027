"""Stating a feasibility problem, and checking what claims to solve it."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from marginbench.data_loaders import lap, ldfp
from marginbench.solvers import (
    ISPVN,
    MPCFP,
    MPKFP,
    MPLFP,
    PCT,
    FeasibilityProblem,
    Orthant,
    SecondOrder,
    check_certificate,
)


def as_dense(A):
    return A.toarray() if sparse.issparse(A) else A


def test_unit_columns_are_used_without_a_copy():
    for dtype, order in (("float64", "C"), ("float64", "F"), ("float32", "C")):
        A = np.asarray(ldfp(20, 30).A, dtype=dtype, order=order)
        problem = FeasibilityProblem.linear(A)
        assert problem.data is A
        assert problem.scale is None
        assert (problem.m, problem.n) == (20, 30)


@pytest.mark.parametrize(
    "stored",
    [
        np.asarray,
        np.asfortranarray,
        sparse.csr_matrix,
        np.float32,
        np.int64,
        lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    ],
    ids=["C", "F", "sparse", "float32", "int", "strided"],
)
def test_other_columns_are_scaled_to_unit_length(stored):
    A = np.random.default_rng(0).integers(1, 9, (5, 12)).astype(float)
    given = stored(A)
    before = given.copy()
    problem = FeasibilityProblem.linear(given)
    lengths = np.linalg.norm(A, axis=0)
    rtol = 1e-6 if stored is np.float32 else 1e-15
    np.testing.assert_allclose(as_dense(problem.data), A / lengths, rtol=rtol)
    np.testing.assert_allclose(problem.scale, lengths, rtol=1e-15)
    assert abs(given - before).max() == 0


def test_lengths_are_right_with_many_rows_and_where_squares_are_out_of_range():
    columns = np.array([[0.9, 1.1], [0.9, -1.1]], np.float32)
    A = sparse.csc_matrix((columns.T.ravel(), [0, 1, 0, 1], [0, 2, 4]), shape=(2**20, 2))
    # Many rows of float32 are no reason to leave columns as they are.
    problem = FeasibilityProblem.linear(A)
    np.testing.assert_allclose(problem.scale, np.linalg.norm(columns, axis=0), rtol=1e-6)
    problem = FeasibilityProblem.linear(np.array([[3e200, 3e-200], [4e200, 4e-200]]))
    np.testing.assert_allclose(problem.data, [[0.6, 0.6], [0.8, 0.8]], rtol=1e-15)
    np.testing.assert_allclose(problem.scale, [5e200, 5e-200], rtol=1e-15)


def test_points_and_labels_make_signed_columns():
    X = [[3.0, 4.0], [0.0, 2.0], [-1.0, 0.0]]
    for points in (X, np.array(X), sparse.csr_matrix(X)):
        A = as_dense(FeasibilityProblem.from_points(points, [1, -1, -1]).data)
        np.testing.assert_allclose(A, [[0.6, 0.0, 1.0], [0.8, -1.0, 0.0]], rtol=1e-15, atol=0)


SIGNED = [[1.0, 2.0], [-1.0, 0.0]], [1, -1]
LINEAR, GRAM, CONIC = MPLFP().solve, MPKFP().solve, FeasibilityProblem.conic
REFUSED = [
    (partial(LINEAR, [[1.0, np.nan]]), "A contains NaN or infinity in column 1; remove it"),
    (partial(LINEAR, np.ones(3)), r"A must be a matrix with rows and columns, got shape \(3,\)"),
    (partial(LINEAR, np.full((3, 2), 1.2e308)), "column 0 of A is too long for float64"),
    (partial(LINEAR, [[1j, 1], [1, 2]]), "A holds complex numbers"),
    (partial(FeasibilityProblem.from_points, [1.0, 2.0], [1, -1]), "X must be a matrix"),
    (partial(FeasibilityProblem.from_points, np.eye(2), [1, 2]), "a label -1 or \\+1 for each of"),
    (partial(FeasibilityProblem.from_points, np.eye(2), [1]), "for each of the 2 points"),
    (partial(GRAM, np.ones((2, 3))), r"a Gram matrix must be square, got shape \(2, 3\)"),
    (partial(GRAM, [[1.0, 0.5], [0.4, 1.0]]), "the Gram matrix is not symmetric"),
    (partial(GRAM, [[1.0, 0.5], [0.5, 0.0]]), "entry 1 of its diagonal is 0.0; leave that point"),
    (partial(GRAM, [[1.0, 0.0], [0.0, -1.0]]), "entry 1 of its diagonal is -1.0"),
    (partial(GRAM, np.zeros((0, 0))), r"a Gram matrix must be square, got shape \(0, 0\)"),
    (partial(GRAM, [[1.0, np.nan], [np.nan, 1.0]]), "holds NaN or infinity"),
    (partial(GRAM, [[1.0, 1.5], [1.5, 1.0]]), "row 0 has an entry larger than the lengths"),
    (partial(CONIC, np.ones((2, 3)), [Orthant(3), 3]), "cones must be a sequence of cones"),
    (partial(CONIC, np.ones((2, 3)), [Orthant(2)]), r"A must have shape \(m, 2\) for these cones"),
    (partial(CONIC, np.ones((2, 3)), []), "cones must be a sequence of cones"),
    (partial(CONIC, np.ones((0, 2)), [Orthant(2)]), r"A must have shape \(m, 2\) for these cones"),
    (partial(CONIC, [[1.0, 2.0, np.inf]], [Orthant(3)]), "A contains NaN or infinity"),
    (lambda: Orthant(0), "n must be a whole number >= 1, got 0"),
    (lambda: SecondOrder(1), "n must be a whole number >= 2, got 1"),
    (
        partial(GRAM, FeasibilityProblem.linear(np.eye(3))),
        "MPKFP takes gram problems, got a linear",
    ),
    (partial(MPKFP(lambda A, B: 0 * A @ B.T).fit, *SIGNED), "with itself is between 0.0"),
    (
        partial(MPKFP(lambda A, B: -A @ B.T).fit, *SIGNED),
        "kernel of a point with itself is between -",
    ),
    (partial(ISPVN(factor=1.0).solve, np.eye(2)), "factor must be a number > 1, got"),
    (partial(PCT().solve, np.eye(2), max_seconds=0), "max_seconds must be a number > 0, got 0"),
]


@pytest.mark.parametrize(("state", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_data_that_state_no_problem_are_refused(state, message):
    with pytest.raises(ValueError, match=message) as failure:
        state()
    assert "\n" not in str(failure.value)


@pytest.fixture(scope="module", params=["float32", "sparse", "gram", "conic"])
def problems(request):
    """A separable and an inseparable problem, with their results."""
    solved = []
    for A in (ldfp(5, 40).A, lap(5, 40).A):
        if request.param == "gram":
            problem, method = FeasibilityProblem.gram(A.T @ A), MPKFP(tol=1e-2)
        elif request.param == "conic":
            problem, method = FeasibilityProblem.conic(A, [Orthant(40)]), MPCFP(tol=1e-2)
        else:
            wrap = np.float32 if request.param == "float32" else sparse.csc_matrix
            problem, method = FeasibilityProblem.linear(wrap(A)), MPLFP(tol=1e-2)
        solved.append((problem, method.solve(problem)))
    return solved


NO_VECTOR = [
    lambda v: v[:-1],
    lambda v: v[:, None],
    lambda v: [[1.0], [1.0, 2.0]],
    lambda v: v.astype(str),
    lambda v: v + 0j,
    lambda v: np.append(v[1:], -np.inf),
]


def test_the_checker_finds_every_lie(problems):
    (problem, separable), (other, inseparable) = problems

    def reasons(result, of=problem):
        verdict = check_certificate(of, result)
        assert not verdict.valid
        return " ".join(verdict.reasons)

    for lie, words in (
        ({"y": -separable.y}, "does not separate"),
        ({"y": 0 * separable.y}, "does not separate"),
        ({"y": separable.y * 1e3}, "outside the unit ball"),
        ({"phi_lo": separable.phi_lo + 0.1}, "phi_lo is"),
        ({"phi_up": separable.phi_up - 0.1}, "phi_up is"),
        ({"x": separable.x * 1.01}, "<e, x> is"),
        ({"x": np.append(separable.x[:-1], -1.0)}, "x is outside the cone"),
        ({"status": "inseparable", "tol": 1e9}, "does not prove"),
        ({"status": ["separable"]}, "the status ['separable'] is none of separable, inseparable"),
    ):
        assert words in reasons(replace(separable, **lie))
    small = replace(inseparable, status="margin_at_most_tol")
    assert check_certificate(other, small).valid
    vertex = np.eye(40)[0]
    for lie, words in (
        ({"tol": small.phi_up / 2}, "above tol"),
        ({"x": vertex}, "above tol"),
        ({"status": "inseparable", "x": vertex}, "does not prove"),
        ({"status": "separable"}, "does not separate"),
    ):
        assert words in reasons(replace(small, **lie), other)
    for name in ("y", "x"):
        vector = getattr(separable, name)
        for spoil in NO_VECTOR:
            verdict = check_certificate(problem, replace(separable, **{name: spoil(vector)}))
            (found,) = verdict.reasons
            assert found.startswith(f"{name} is no vector of {len(vector)} real numbers")
            assert math.isnan(verdict.phi_lo)
            assert math.isnan(verdict.phi_up)


def test_a_response_lost_in_rounding_separates_nothing():
    # The second column is orthogonal to y, up to the last digits.
    A = np.array([[1.0, 1e-17], [0.0, 1.0]])
    problem = FeasibilityProblem.linear(A)
    result = replace(
        MPLFP().solve(problem), y=np.array([1.0, 0.0]), status="separable", phi_lo=1e-17
    )
    assert check_certificate(problem, result).phi_lo > 0
    assert not check_certificate(problem, result).valid


def test_coefficients_that_cancel_do_not_carry_y_beyond_the_upper_bound():
    A = ldfp(5, 9).A
    A[:, 8] = A[:, 0]
    G = A.T @ A
    G[8], G[:, 8] = G[0], G[:, 0]
    G[8, 8] = G[0, 8] = G[8, 0] = G[0, 0]
    problem = FeasibilityProblem.gram(G)
    result = MPKFP(tol=1e-3).solve(problem)
    assert check_certificate(problem, result).valid
    y = 1000 * result.y
    y[[0, 8]] += [1e8, -1e8]
    verdict = check_certificate(problem, replace(result, y=y, phi_lo=1000 * result.phi_lo))
    assert f"phi_lo {verdict.phi_lo!r} is above phi_up {verdict.phi_up!r}" in verdict.reasons
