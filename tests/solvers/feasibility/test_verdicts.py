"""What a run may say of separability: never a wrong word, however small the margin is."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from marginbench.data_loaders import lap, ldfp
from marginbench.solvers import (
    ISNKPVN,
    ISPVN,
    KPCT,
    KVN,
    MPKFP,
    MPLFP,
    PCT,
    SNKP,
    SPCT,
    SPVN,
    VN,
    FeasibilityProblem,
    Orthant,
    SecondOrder,
    check_certificate,
)
from marginbench.solvers.feasibility.certificates import opposite_columns, proves_inseparable

COLUMNS = [MPLFP, SPCT, PCT, VN, ISPVN, SPVN]
KERNEL = [MPKFP, KPCT, KVN, SNKP, ISNKPVN]
each_method = pytest.mark.parametrize("method", [*COLUMNS, *KERNEL])

#: Its first row separates, with a margin of 9.6e-6: below the default tolerance of all methods.
THIN = np.array([[1e-5, 1e-5, 1e-5], [1.0, -0.9, 0.3], [0.2, 0.5, -1.0]])


def as_problem(method, A):
    A = FeasibilityProblem.linear(A).data
    if method in COLUMNS:
        return FeasibilityProblem.linear(A)
    return FeasibilityProblem.gram(A.T @ A)


def exactly_separable(A):
    """Whether some y has A'y > 0, for columns in 2 or 3 dimensions of which no m are dependent.

    Then one is on the edge of them all: orthogonal to m - 1, with the others on one side.
    """
    columns = np.vectorize(Fraction, otypes=[object])(A.T)
    for edge in combinations(columns, len(A) - 1):
        normal = np.cross(*edge) if len(edge) == 2 else edge[0][::-1] * [1, -1]
        if len({response > 0 for response in columns @ normal if response}) == 1:
            return True
    return False


def thin_instance(seed):
    """Columns, whether they are separable, and the size of the margin, or of what is missing.

    Columns ``margin y + v_j`` with 0 in the hull of the v_j, which are orthogonal to y, have this
    margin; with the column -y besides they are inseparable.
    """
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 5)) if seed % 2 else int(rng.integers(5, 30))
    n = int(rng.integers(m + 1, 9)) if m < 5 else int(rng.integers(2 * m, 6 * m))
    margin = 10 ** rng.uniform(-11, -4)
    across = lap(m - 1, n, seed=seed).A
    A = np.vstack((np.full(n, margin), across))
    separable = seed % 4 < 2
    if not separable:
        A = np.column_stack((A, -np.eye(m)[0]))
    rotation = np.linalg.qr(rng.standard_normal((m, m)))[0]
    A = FeasibilityProblem.linear((rotation @ A)[:, rng.permutation(A.shape[1])]).data
    return A, separable, margin / math.hypot(1, margin)


def test_no_word_is_wrong_on_thin_problems():
    words = set()
    for seed in range(8):
        A, separable, margin = thin_instance(seed)
        if A.shape[0] < 4:
            assert exactly_separable(A) == separable
        # Above the margin, and far below it.
        tol = 1e-4 if seed < 4 else margin / 10
        for method in (*COLUMNS, *KERNEL):
            where = f"{method.__name__}, seed {seed}"
            problem = as_problem(method, A)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                result = method(tol=tol, max_iter=500).solve(problem)
            words.add(result.status)
            assert result.status != ("inseparable" if separable else "separable"), where
            verdict = check_certificate(problem, result)
            assert verdict.valid, (where, verdict.reasons)
            low, up = result.margin_bounds
            # A squared length from a Gram matrix is known to 1e-16 or so.
            slack = 1e-13 if method in COLUMNS else 1e-7
            assert low - slack <= (margin if separable else 0.0) <= up + slack, where
            # Neither the method's x nor the centre is a proof.
            for x in (result.x, np.full(problem.n, 1 / problem.n)) if separable else ():
                forged = replace(result, status="inseparable", x=x)
                assert not check_certificate(problem, forged).valid, where
    assert {"inseparable", "margin_at_most_tol", "budget"} <= words


@each_method
def test_a_margin_below_the_tolerance_is_not_called_inseparable(method):
    problem = as_problem(method, THIN)
    result = method(tol=1e-4, max_iter=100_000).solve(problem)
    assert result.status == "margin_at_most_tol"
    assert result.converged
    assert result.margin_bounds == (0.0, result.phi_up)
    assert 9e-6 < result.phi_up <= 1e-4
    assert f"the margin is at most {result.phi_up:.3g} (tol=0.0001)" in str(result)
    assert check_certificate(problem, result).valid


@each_method
def test_a_column_of_zeros_is_itself_a_certificate(method):
    A = np.array([[1.0, 0.0, 2.0], [1.0, 0.0, 0.0]])
    for wrap in (np.asarray, sparse.csc_matrix) if method in COLUMNS else (None,):
        linear = method in COLUMNS
        problem = FeasibilityProblem.linear(wrap(A)) if linear else FeasibilityProblem.gram(A.T @ A)
        result = method().solve(problem)
        assert (result.status, result.n_iter, result.phi_up) == ("inseparable", 0, 0.0)
        np.testing.assert_array_equal(result.x, [0.0, 1.0, 0.0])
        assert result.message == "column 1 is zero, which no y separates"
        assert result.margin_bounds == (0.0, 0.0)
        assert check_certificate(problem, result).valid


@pytest.mark.parametrize(
    ("method", "wrap"),
    [
        *((method, np.asarray) for method in (*COLUMNS, *KERNEL)),
        *((MPLFP, wrap) for wrap in (np.float32, np.asfortranarray, sparse.csc_matrix)),
        (KVN, np.float32),
    ],
)
def test_opposite_columns_are_found_wherever_they_are(method, wrap):
    # But for these two there is a separator, and they are orthogonal to it: 0 is on the boundary
    # of the hull, where no correction leads.
    found = ldfp(6, 40, kappa=2, seed=3)
    A = found.A
    A[:, 17] -= (found.y @ A[:, 17]) * found.y
    A = FeasibilityProblem.linear(np.column_stack((A, -A[:, 17]))).data
    if method in KERNEL:
        G = A[:, :-1].T @ A[:, :-1]
        G = np.block([[G, -G[:, [17]]], [-G[[17]], G[17:18, 17:18]]])
        problem = FeasibilityProblem.gram(wrap(G))
    else:
        problem = FeasibilityProblem.linear(wrap(A))
    result = method(tol=1e-2, max_iter=10_000).solve(problem)
    assert result.status == "inseparable"
    # Where x has its weight on few columns it is itself the proof.
    assert result.x[[17, 40]].sum() > 0.9
    assert check_certificate(problem, result).valid
    pair = opposite_columns(problem)
    assert set(np.flatnonzero(pair)) == {17, 40}
    verdict = check_certificate(problem, replace(result, x=pair, phi_up=0.0))
    assert (verdict.valid, verdict.phi_up) == (True, 0.0)
    assert not check_certificate(problem, replace(result, x=np.eye(41)[17])).valid


def test_a_gram_matrix_that_rounding_made_singular_proves_nothing():
    # Two points with both labels at the distance 1e-9: the Gaussian kernel rounds to 1.
    X, y = np.array([[0.0], [1e-9], [1.0]]), np.array([1.0, -1.0, 1.0])
    G = np.outer(y, y) * np.exp(-np.square(X - X.T))
    assert G[0, 1] == -1.0
    problem = FeasibilityProblem.gram(G)
    for method in KERNEL:
        assert method().solve(problem).status == "margin_at_most_tol"


def conic(A, *cones):
    return FeasibilityProblem.conic(np.array(A), cones or [Orthant(len(A[0]))])


#: 0 is on the boundary of the hull: the last column is above the plane of the first three.
FLAT = np.array([[1.0, -0.5, -0.5, 0.3], [0.0, 0.75, -0.75, 0.1], [0.0, 0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("problem", "x", "proven"),
    [
        (conic(FLAT), [1.0, 1.0, 1.0, 0.0], True),
        (conic(FLAT + [[0.0], [0.0], [2**-60]]), [1.0, 1.0, 1.0, 0.0], False),
        # Columns that are almost opposite.
        (conic([[0.6, -0.6, 1.0], [0.8, -0.8, 0.0]]), [0.5, 0.5, 0.0], True),
        (conic([[0.6, -0.6, 1.0], [0.8, -0.8 * (1 + 2**-50), 0.0]]), [0.5, 0.5, 0.0], False),
        (conic([[0.6, -0.6, 1.0], [0.8, -0.8 * (1 - 2**-52), 0.0]]), [0.5, 0.5, 0.0], False),
        # e is in the kernel: the row is 0 on it, and the cone is not the orthant.
        (conic([[1.0, 0.0]], SecondOrder(2)), [0.0, 1.0], False),
        # Points that are none.
        *((conic(FLAT), x, False) for x in ([math.nan] * 4, [math.inf, 0, 0, 0], [0] * 4, [1])),
        (conic(FLAT), [-1.0, 1.0, 1.0, 0.0], False),
    ],
)
def test_only_an_exact_combination_of_zero_proves_it(problem, x, proven):
    assert proves_inseparable(problem, np.array(x, dtype=float)) == proven
    if not proven:
        assert opposite_columns(problem) is None


def test_a_correction_is_never_accepted_where_exact_arithmetic_says_no():
    # 0 is within some 1e-16 to 1e-9 of the boundary of the hull, on either side.
    for seed in range(12):
        rng = np.random.default_rng(seed)
        m, n = (2, 6) if seed % 2 else (3, 7)
        A = np.vstack((10 ** rng.uniform(-17, -9, n), lap(m - 1, n, seed=seed).A))
        last = 1.0 if seed % 3 == 0 else -1.0
        A = np.column_stack((A, np.append(last, 0.1 * rng.standard_normal(m - 1))))
        A = np.linalg.qr(rng.standard_normal((m, m)))[0] @ A
        problem = FeasibilityProblem.linear(A)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            weights = [method(max_iter=300).solve(problem).x for method in (VN, SPCT, MPLFP)]
        weights += [rng.dirichlet(np.ones(n + 1)) for _ in range(20)]
        if exactly_separable(problem.data):
            assert not any(proves_inseparable(problem, x) for x in weights), seed


def test_a_proof_holds_for_the_columns_before_they_were_rounded():
    # y separates the columns A, but not as float32 stores them: all responses but one are < 0.
    m, unit, rng = 14, float(np.finfo(np.float32).eps), np.random.default_rng(0)
    y = np.full(m, m**-0.5)
    across = rng.permuted(np.tile(np.repeat([1.0, -1.0], m // 2), (400, 1)), axis=1)
    across += 1e-3 * rng.standard_normal(across.shape)
    across -= across.mean(axis=1, keepdims=True)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    pair = np.stack([sign * across - 0.42 * unit * y for sign in (1, -1)]).astype(np.float32)
    pair = pair[:, ((pair.astype(float) @ y) > -0.45 * unit).all(axis=0)][:, :55]
    stored = np.column_stack((*pair.transpose(0, 2, 1), y)).astype(np.float32)
    A = stored + 0.49 * np.spacing(np.abs(stored)).astype(float)
    np.testing.assert_array_equal(A.astype(np.float32), stored)
    assert (y @ A).min() > 0.05 * unit
    responses = y @ stored.astype(float)
    assert responses[:-1].max() < -0.2 * unit
    x = np.append(np.ones(110), -responses[:-1].sum())
    x /= x.sum()
    exact = FeasibilityProblem.conic(stored.astype(float), [Orthant(111)])
    assert proves_inseparable(exact, x)
    assert not proves_inseparable(FeasibilityProblem.linear(stored), x)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csc_matrix])
@pytest.mark.parametrize("shape", [(3, 30), (20, 60)])
def test_generated_problems_that_nothing_separates_are_proven_to_be(shape, wrap):
    A = lap(*shape, seed=7).A
    for method in (MPLFP, SPCT, VN, ISPVN):
        # Rows of zeros keep no proof away.
        problem = FeasibilityProblem.linear(wrap(np.insert(A, [0, 1, 1], 0.0, axis=0)))
        result = method(tol=1e-3).solve(problem)
        assert result.status == "inseparable", method.__name__
        assert check_certificate(problem, result).valid
        # The proof is about the problem: a column more, and all columns to one side.
        other = FeasibilityProblem.linear(wrap(ldfp(*shape, seed=7).A))
        assert not proves_inseparable(other, result.x)


@pytest.mark.parametrize("method", KERNEL)
def test_contradicting_points_have_a_status_of_their_own(method):
    points = np.random.default_rng(0).standard_normal((30, 3))
    points, y = np.vstack((points, points[:20])), np.repeat([1, -1], [30, 20])
    K = np.exp(-0.5 * np.square(points[:, None] - points).sum(axis=2))
    for kernel, X in (("rbf", points), ("linear", sparse.csr_matrix(points)), ("precomputed", K)):
        solver = method(kernel, gamma=0.5, dtype="float64", max_iter=5000).fit(X, y)
        assert (solver.status_, solver.result_.status) == ("no_separator", "inseparable")
        assert solver.result_.phi_up == 0.0
        i, j = np.flatnonzero(solver.result_.x)
        np.testing.assert_array_equal(points[i], points[j])
        assert y[i] != y[j]


def test_the_same_points_with_labels_that_agree_contradict_nothing():
    X = np.repeat(np.random.default_rng(1).standard_normal((20, 3)), 2, axis=0)
    y = np.repeat(np.where(np.arange(20) % 2, 1, -1), 2)
    solver = MPKFP(gamma=20.0, max_iter=5000, dtype="float64")
    assert solver.fit(X, y).result_.status == "separable"
    # 0.0 and -0.0 are one number.
    X[:2] = [[0.0, 1.0, 2.0], [-0.0, 1.0, 2.0]]
    y[:2] = [1, -1]
    assert solver.fit(X, y).result_.status == "inseparable"


@pytest.mark.parametrize(("method", "seed"), [(KVN, 10), (ISNKPVN, 24)])
def test_what_only_the_rounding_of_kernel_entries_separates_is_not_separable(method, seed):
    A = lap(2, 4, seed=seed).A
    assert not exactly_separable(A)
    y = np.array([1, -1, 1, -1])
    solver = method("linear", dtype="float32", tol=0.0, max_iter=200, history=1)
    with pytest.warns(ConvergenceWarning):
        solver.fit((A * y).T, y)
    assert max(point.phi_lo for point in solver.result_.history) > 0
    assert solver.result_.status == "budget"
