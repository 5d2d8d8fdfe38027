"""Certificates: bounds, proofs that nothing separates, and the checker, from the problem alone.

Of a run, ``A'y > 0`` is the certificate of MPFP14 Theorem 2 (a) and ``||A x|| <= tol`` that of (b),
which alone says that the margin is at most ``tol``. That nothing separates, so that some x' of the
cone other than 0 has ``A x' = 0`` exactly (MPFP14 eq. 2), is proven here in one of two ways:

- x has its weight on few columns, and these have an exact combination of 0 with positive
  weights, in rational arithmetic. Columns of zeros and opposite columns are of this sort.
- x can be corrected: the part of A x that is not 0 is made up for by columns that span the space,
  by less than their weights in x.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any, get_args

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from ..numeric.matrices import Matrix, as_dense, matmul, squared_norms
from .cones import Orthant
from .problem import FeasibilityProblem
from .result import FeasibilityResult, FeasibilityStatus

_EPS = float(np.finfo(np.float64).eps)
# Rational arithmetic is for a few columns; weights below this share of the largest one are none.
_FEW_COLUMNS = 8
_FEW_NUMBERS = 20_000
_SHARE = 1e-6
# Corrections solve with a matrix of this order at most, made by so many multiply-adds at most.
_MOST_ROWS = 2000
_MOST_WORK = 1e10
_MOST_SPARSE_WORK = 2e9
# The correction uses the heaviest columns, so many for each row: enough where LAP's n is 50 m.
_COLUMNS_PER_ROW = 8
_LEAST_COLUMNS = 64
# A correction may take this share of a weight; the rest is for what rounding leaves of A x.
_TAKEN = 0.75
# Pairs of columns that are compared in full; columns whose projections agree by accident are rare.
_MOST_PAIRS = 64
# So many projections at a time are looked up.
_CHUNK = 2**14
# float32 data are widened in blocks of about this many bytes.
_BLOCK_BYTES = 16 * 2**20
# Reported bounds come from running sums; float32 sums of a block are good to about 1e-6.
_REPORTED = {"float64": 1e-8, "float32": 1e-4}
# However large its coefficients, y may not beat the upper bound by more than this part.
_MOST_BEYOND = 1e-3
# Points of the ball and of the base are far smaller than this.
_LARGEST = 1e140


@dataclass(frozen=True)
class Verdict:
    """What the checker found.

    Attributes
    ----------
    valid : bool
        The status is proven by the certificate, and the reported bounds are those of y and x.
    reasons : tuple of str
        Why not.
    phi_lo, phi_up : float
        The bounds, recomputed; NaN if y or x is not a finite vector of the right length.
    """

    valid: bool
    reasons: tuple[str, ...]
    phi_lo: float
    phi_up: float


def check_certificate(problem: FeasibilityProblem, result: FeasibilityResult) -> Verdict:
    """Check a result against its problem, from scratch.

    "separable" needs ``A'y > 0`` by more than the rounding of the check itself;
    "margin_at_most_tol" needs x in the base and ``||A x|| <= tol``; "inseparable" needs an x from
    which it follows that some point of the base has the image 0 exactly
    (:func:`proves_inseparable`). Both points must be where they belong in any case, and
    phi_lo at most phi_up. What has another status, or points that are not finite vectors of the
    right length, is invalid too. Where the coefficients of a Gram matrix cancel, the norm of y is
    known up to rounding only, and so is phi_lo; whether y separates does not depend on it.

    Parameters
    ----------
    problem : FeasibilityProblem
    result : FeasibilityResult

    Returns
    -------
    Verdict
    """
    statuses, low, up = get_args(FeasibilityStatus), math.nan, math.nan
    reasons = [
        *_not_a_vector("y", result.y, problem.n if problem.kind == "gram" else problem.m),
        *_not_a_vector("x", result.x, problem.n),
    ]
    if not reasons:
        # What overflows compares as false below, which is a reason.
        with np.errstate(over="ignore", invalid="ignore"):
            reasons, low, up = _examine(problem, result)
    if not isinstance(result.status, str) or result.status not in statuses:
        reasons.insert(0, f"the status {result.status!r} is none of {', '.join(statuses)}")
    return Verdict(not reasons, tuple(reasons), low, up)


def _not_a_vector(name: str, value: Any, size: int) -> list[str]:
    try:
        vector = np.asarray(value)
        fits = vector.shape == (size,) and vector.dtype.kind in "biuf"
        # Not true for NaN either.
        if fits and np.abs(vector.astype(np.float64)).max() <= _LARGEST:
            return []
    except (TypeError, ValueError):
        pass
    return [f"{name} is no vector of {size} real numbers, each at most {_LARGEST!r}"]


def _examine(
    problem: FeasibilityProblem, result: FeasibilityResult
) -> tuple[list[str], float, float]:
    """The reasons against finite points of the right shapes, and their bounds."""
    y, x = np.asarray(result.y, np.float64), np.asarray(result.x, np.float64)
    low, up, reasons = lower_bound(problem, y), upper_bound(problem, x), []
    slack = 8 * _EPS * max(16.0, math.sqrt(problem.n))
    least, total = problem.cone.least(x), problem.cone.unit(x)
    if not least >= -slack:
        reasons.append(f"x is outside the cone by {-least!r}")
    if not abs(total - 1) <= slack:
        reasons.append(f"<e, x> is {total!r}, not 1")
    outside = bool(reasons)
    norm, allowance = _norm(problem, y), _rounding_of_squared_norm(problem, y)
    if not norm <= math.sqrt(1 + 1e-9 + allowance):
        reasons.append(f"y has norm {norm!r}, outside the unit ball")
    # Coefficients of a y that is almost 0 are noise, divided by a tiny norm.
    noise = rounding_of_lower_bound(problem, y)
    if result.status == "separable" and not low > noise:
        reasons.append(f"y does not separate: its least response is {low!r}")
    most = math.sqrt(up * up + _rounding_of_squared_norm(problem, x))
    # Rounding of x, summed over its entries.
    slack = _EPS * math.sqrt(problem.n) * max(1.0, up)
    if result.status == "margin_at_most_tol" and not most <= result.tol + slack:
        reasons.append(f"||A x|| is {up!r}, above tol={result.tol!r}")
    if result.status == "inseparable" and (outside or not proves_inseparable(problem, x)):
        reasons.append("x does not prove that nothing separates")
    near = _REPORTED[problem.data.dtype.name]
    if not abs(result.phi_lo - low) <= near * max(1.0, abs(low)) + noise:
        reasons.append(f"phi_lo is {low!r}, reported as {result.phi_lo!r}")
    if not abs(result.phi_up - up) <= near * max(1.0, up):
        reasons.append(f"phi_up is {up!r}, reported as {result.phi_up!r}")
    # No least response of a y in the unit ball is above a norm over the base. The entries of a
    # float32 Gram matrix are themselves rounded, which counts most where the norm is almost 0.
    stored = 8 * float(np.finfo(problem.data.dtype).eps) if problem.kind == "gram" else 0.0
    most = math.sqrt(most * most + stored)
    if not low <= most * math.sqrt(1 + 1e-9 + min(allowance, _MOST_BEYOND)) + noise + near:
        reasons.append(f"phi_lo {low!r} is above phi_up {up!r}")
    return reasons, low, up


def lower_bound(problem: FeasibilityProblem, y: np.ndarray) -> float:
    """phi_lo(y): the least of ``x'A'y`` over the base, in float64."""
    if problem.kind == "gram":
        return float((product(problem.data, y / problem.lengths) / problem.lengths).min())
    return problem.cone.least(transposed_product(problem.data, y))


def upper_bound(problem: FeasibilityProblem, x: np.ndarray) -> float:
    """phi_up(x) = ||A x||, in float64."""
    if problem.kind == "gram":
        return _norm(problem, x)
    image = product(problem.data, x)
    return math.sqrt(float(matmul(image, image)))


def rounding_of_lower_bound(problem: FeasibilityProblem, y: np.ndarray) -> float:
    """A bound on the rounding error of :func:`lower_bound`."""
    terms = problem.m + 8
    if problem.kind == "linear":
        return terms * _EPS * math.sqrt(float(matmul(y, y)))
    if problem.kind == "gram":
        # No entry of the Gram matrix of unit columns exceeds 1.
        return terms * _EPS * float(np.abs(y).sum())
    rows = np.sqrt(squared_norms(problem.data))
    return (terms + problem.n) * _EPS * float(matmul(np.abs(y), rows))


def _norm(problem: FeasibilityProblem, y: np.ndarray) -> float:
    if problem.kind != "gram":
        return math.sqrt(float(matmul(y, y)))
    scaled = y / problem.lengths
    return math.sqrt(max(float(matmul(scaled, product(problem.data, scaled))), 0.0))


def _rounding_of_squared_norm(problem: FeasibilityProblem, y: np.ndarray) -> float:
    """Coefficients that cancel leave a norm known to few digits only."""
    if problem.kind != "gram":
        return 0.0
    total = float(np.abs(y).sum())
    return (problem.n + 8) * _EPS * total * total


def proves_inseparable(problem: FeasibilityProblem, x: np.ndarray) -> bool:
    """Whether it follows from x that no y separates, rounding included.

    The problem is that of ``problem.data`` as stored. A correction holds as well for all matrices
    whose entries differ from the stored ones by one rounding, such as the columns before they were
    scaled. Cones other than the orthant have no proof here.
    """
    if not _is_orthant(problem) or x.shape != (problem.n,) or not np.isfinite(x).all():
        return False
    x = np.maximum(x, 0.0)
    if _combines_to_zero(_exact_columns(problem), x):
        return True
    # Points in a feature space of more dimensions than points have a Gram matrix of full rank.
    # That of others is singular, but rounded entries do not tell.
    return problem.kind != "gram" and _can_be_corrected(problem, x)


def opposite_columns(problem: FeasibilityProblem) -> np.ndarray | None:
    """The point of the base on two columns that are exactly opposite, if there are such columns."""
    if not _is_orthant(problem):
        return None
    columns = _exact_columns(problem)
    direction = np.random.default_rng(0).standard_normal(problem.m)
    along = transposed_product(columns, direction)
    if problem.kind == "gram":
        along /= problem.lengths
    near = 1e3 * _EPS * math.sqrt(float(matmul(direction, direction)))
    for i, j in islice(_opposite_numbers(along, near), _MOST_PAIRS):
        x = np.zeros(problem.n)
        x[[i, j]] = 0.5
        if _combines_to_zero(columns, x):
            return x
    return None


def contradicting_points(X: Matrix, signs: np.ndarray) -> tuple[int, int] | None:
    """Two points that are the same and have different labels, if there are such points."""
    if sparse.issparse(X):
        X = X.sorted_indices()
        X.eliminate_zeros()
        ends = pairwise(X.indptr)
        rows = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends)
    else:
        rows = ((row + 0).tobytes() for row in X)  # 0 has no sign
    seen: dict[bytes, int] = {}
    for i, row in enumerate(rows):
        first = seen.setdefault(hashlib.sha256(row).digest(), i)
        if signs[first] != signs[i]:
            return first, i
    return None


def _is_orthant(problem: FeasibilityProblem) -> bool:
    return all(isinstance(cone, Orthant) for cone in problem.cones)


def _exact_columns(problem: FeasibilityProblem) -> Matrix:
    """Columns whose combination z >= 0 is 0 only if nothing separates.

    For a Gram matrix its rows: ``z'G = 0`` makes some response ``(G g)_i`` with z_i > 0 no more
    than 0, whatever the coefficients g. Lengths of columns do not matter.
    """
    return problem.data.T if problem.kind == "gram" else problem.data


def _opposite_numbers(values: np.ndarray, near: float) -> Iterator[tuple[int, int]]:
    """Pairs whose sum is almost 0: for each value below 0 its neighbours on the other side."""
    order = np.argsort(values)
    ascending = values[order]
    split = int(np.searchsorted(ascending, 0.0))
    others = ascending[split:]
    for lo in range(0, split if len(others) else 0, _CHUNK):
        wanted = -ascending[lo : min(lo + _CHUNK, split)]
        after = np.searchsorted(others, wanted)
        for neighbour in (after - 1, after):
            np.clip(neighbour, 0, len(others) - 1, out=neighbour)
            for k in np.flatnonzero(np.abs(others[neighbour] - wanted) <= near):
                yield int(order[lo + k]), int(order[split + neighbour[k]])


def _combines_to_zero(A: Matrix, x: np.ndarray) -> bool:
    """Whether the columns that carry x have an exact combination of 0, weights of one sign."""
    support = np.flatnonzero(x > _SHARE * x.max(initial=0.0))
    if not 0 < len(support) <= _FEW_COLUMNS:
        return False
    columns = as_dense(A[:, support]).astype(np.float64)
    columns = columns[columns.any(axis=1)]
    if len(support) == 2 and not (columns[:, 0] + columns[:, 1]).any():
        return True
    return columns.size <= _FEW_NUMBERS and _positive_null_vector(columns)


def _positive_null_vector(columns: np.ndarray) -> bool:
    """Whether a matrix maps a vector with entries >= 0, not all 0, to 0.

    Only vectors with one free entry are tried: where the null space is a line, this decides.
    """
    n = columns.shape[1]
    basis: dict[int, list[Fraction]] = {}  # rows in reduced form, by their leading columns
    for entries in columns:
        row = [Fraction(float(value)) for value in entries]
        for lead, other in basis.items():
            row = _without(row, other, lead)
        lead = next((k for k, value in enumerate(row) if value), -1)
        if lead < 0:
            continue
        row = [value / row[lead] for value in row]
        basis = {k: _without(other, row, lead) for k, other in basis.items()} | {lead: row}
        if len(basis) == n:
            return False
    # One free entry is 1, the other free ones 0; the rest follow from their rows.
    free = [k for k in range(n) if k not in basis]
    return any(all(row[k] <= 0 for row in basis.values()) for k in free)


def _without(row: list[Fraction], other: list[Fraction], lead: int) -> list[Fraction]:
    """The row less a multiple of another, whose entry at ``lead`` is 1, so that it is 0 there."""
    factor = row[lead]
    return [a - factor * b for a, b in zip(row, other, strict=True)] if factor else row


def _can_be_corrected(problem: FeasibilityProblem, x: np.ndarray) -> bool:
    """Whether a point x' >= 0 near x has A x' = 0 exactly.

    With B = A_K diag(w), w = x_K > 0, every z on the columns K with ``||z / w||_2 <= 1`` keeps
    x + z >= 0. If s is the least singular value of B, the least z with ``A (x + z) = 0`` has
    ``||z / w||_2 <= ||A x|| / s``. Before that, x is moved to where A x is rounding.
    """
    A = sparse.csc_matrix(problem.data) if sparse.issparse(problem.data) else problem.data
    columns, rows = _movable(A, x)
    if not len(rows):
        return False
    w = x[columns]
    B: Matrix = A[:, columns][rows].astype(np.float64)
    B = B.multiply(w).tocsr() if sparse.issparse(B) else B * w
    M = as_dense(B @ B.T) if sparse.issparse(B) else matmul(B, B.T)
    moved = x.copy()
    try:
        factor = cho_factor(M, lower=True)
    except np.linalg.LinAlgError:
        return False
    for _ in range(2):
        step = cho_solve(factor, product(A, moved)[rows], check_finite=False)
        moved[columns] -= w * (B.T @ step if sparse.issparse(B) else matmul(step, B))
    # Not true for NaN either.
    if not (np.abs(moved[columns] - w) / w).max() <= _TAKEN * (1 - 1e-9):
        return False
    # ||A moved||, with the rounding of the product and of the entries of A.
    unit = float(np.finfo(A.dtype).eps)
    lengths = 1.0 if problem.kind == "linear" else np.sqrt(squared_norms(problem.data.T))
    rounding = ((problem.n + 8) * _EPS + unit) * float((moved * lengths).sum())
    bound = (upper_bound(problem, moved) + rounding) * (1 + 1e-6)
    return _singular_values_exceed(bound / (1 - _TAKEN), M, len(columns), unit)


def _movable(A: Matrix, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns whose weights may change, and the rows that are not 0 on the support of x.

    No rows if the columns cannot span them, or if it takes long beside a run of a method. Of a
    dense matrix the columns are the heaviest ones.
    """
    m, n = A.shape
    if sparse.issparse(A):
        columns = np.flatnonzero(x > 1e-12 * x.max())
        carried = A[:, np.flatnonzero(x)]
        here = np.bincount(carried.indices[carried.data != 0], minlength=m) > 0
        work = np.square(np.diff(A.indptr)[columns], dtype=np.float64).sum()
    else:
        affordable = min(_COLUMNS_PER_ROW * m, int(_MOST_WORK / m**2))
        wanted = min(n, max(_LEAST_COLUMNS, affordable))
        heaviest = np.argpartition(x, n - wanted)[n - wanted :]
        columns = np.sort(heaviest[x[heaviest] > 1e-12 * x.max()])
        here = A[:, columns].any(axis=1)
        blank = np.flatnonzero(~here)
        here[blank] = A[blank][:, x != 0].any(axis=1)
        work = 0.0
    rows = np.flatnonzero(here)
    possible = len(rows) <= min(_MOST_ROWS, len(columns)) and work <= _MOST_SPARSE_WORK
    return columns, rows if possible else rows[:0]


def _singular_values_exceed(bound: float, M: np.ndarray, n_columns: int, unit: float) -> bool:
    """Whether all singular values of B are larger, M being B B' as it was computed.

    If a Cholesky factorisation runs to its end, no eigenvalue is below minus its rounding error,
    a small multiple of the trace (Rump: Verification of positive definiteness, BIT 46, 2006).
    """
    trace = float(np.trace(M))
    rounding = 4 * (len(M) + n_columns + 16) * _EPS * trace
    shift = (bound + 2 * unit * math.sqrt(trace)) ** 2 * (1 + 1e-6) + rounding
    if not shift < trace:
        return False
    try:
        np.linalg.cholesky(M - shift * np.eye(len(M)))
    except np.linalg.LinAlgError:
        return False
    return True


def transposed_product(A: Matrix, y: np.ndarray) -> np.ndarray:
    """A'y in float64."""
    if sparse.issparse(A):
        return np.asarray(A.T @ y, dtype=np.float64)
    if A.dtype == np.float64:
        return matmul(y, A)
    return np.concatenate([matmul(y, block) for _, block in _widened(A)])


def product(A: Matrix, x: np.ndarray) -> np.ndarray:
    """A x in float64."""
    if sparse.issparse(A):
        return np.asarray(A @ x, dtype=np.float64)
    if A.dtype == np.float64:
        return matmul(A, x)
    return np.asarray(sum(matmul(block, x[part]) for part, block in _widened(A)))


def _widened(A: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of columns in float64."""
    step = max(1, _BLOCK_BYTES // (8 * A.shape[0]))
    for lo in range(0, A.shape[1], step):
        part = slice(lo, lo + step)
        yield part, A[:, part].astype(np.float64)
