"""The feasibility problem: signed columns of unit length, a Gram matrix, or a map and a cone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse

from ..numeric.matrices import Matrix
from .cones import Cone, Orthant, Product

# Gram matrices are looked at in blocks of so many rows; what float32 entries may be off by.
_ROWS = 512
_TOO_LONG = 1e-5


@dataclass(frozen=True)
class FeasibilityProblem:
    """Find y with ``A'y > 0``, or x >= 0 with ``1'x = 1`` and ``A x = 0`` (MPFP14 eq. 1 and 2).

    Exactly one of the two systems has a solution. Together they are the saddle point problem
    ``max_{||y|| <= 1} min_x y'A x`` over the simplex (MPFP14 eq. 5), whose value is
    ``max(rho, 0)`` with the margin ``rho = max_{||u|| = 1} min_j A_j'u``.

    Build one with :meth:`linear`, :meth:`from_points`, :meth:`gram` or :meth:`conic`.

    Attributes
    ----------
    kind : {"linear", "gram", "conic"}
    data : ndarray or sparse matrix
        "linear": A, shape (m, n), columns of unit length; "gram": the Gram matrix as it was given,
        shape (n, n); "conic": A, shape (m, N).
    scale : ndarray of float64, shape (n,), or None
        The lengths that the columns had, 1 for those of zeros; None if they were 1.
    cones : tuple of Cone
        "conic": the factors of the cone, in the order of A's columns.
    zero : int or None
        The first column of zeros (point of length 0), which no y separates; None if there is none.

    Notes
    -----
    The problem is the one in ``data``. Scaling rounds entries, so it has the answer of the columns
    as they were given if their margin exceeds some 1e-16, or 1e-7 of those in float32.
    """

    kind: Literal["linear", "gram", "conic"]
    data: Matrix
    scale: np.ndarray | None = None
    cones: tuple[Cone, ...] = ()
    zero: int | None = None

    @classmethod
    def linear(cls, A: Any) -> Self:
        """The problem of these columns, scaled to unit length.

        Parameters
        ----------
        A : array-like or sparse matrix, shape (m, n)
            One column for each point, times its label. An array of unit columns in float32 or
            float64, in C or Fortran order, is used as it is, without a copy. float32 halves the
            memory, and products are then summed in float32 within a block. A column of zeros stays
            one: it proves that nothing separates.

        Raises
        ------
        ValueError
            If A is not a matrix, or holds NaN or infinity.
        """
        A = _columns(A)
        lengths = _lengths(A)
        zero = _first(lengths == 0)
        lengths[lengths == 0] = 1.0
        # Of rounded entries, and of the sum of their squares.
        tolerance = 16 * np.finfo(A.dtype).eps + A.shape[0] * np.finfo(np.float64).eps
        if np.abs(lengths - 1).max() <= tolerance:
            return cls("linear", A, zero=zero)
        if sparse.issparse(A):
            A = A.copy()
            A.data = (A.data / np.repeat(lengths, np.diff(A.indptr))).astype(A.dtype)
        else:
            # Computed in float64, buffer by buffer, into one array of A's type and order.
            A = np.divide(A, lengths, out=np.empty_like(A), casting="same_kind")
        return cls("linear", A, lengths, zero=zero)

    @classmethod
    def from_points(cls, X: Any, y: Any) -> Self:
        """The problem of separating two classes by a hyperplane through the origin.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, m)
            Points.
        y : array-like, shape (n,)
            Labels, -1 or +1.

        Raises
        ------
        ValueError
            For other labels, or for what :meth:`linear` refuses.
        """
        X = X if sparse.issparse(X) else np.asarray(X)
        signs = np.asarray(y, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix, got shape {X.shape}")
        if signs.shape != (X.shape[0],) or not np.isin(signs, (-1.0, 1.0)).all():
            raise ValueError(f"y must hold a label -1 or +1 for each of the {X.shape[0]} points")
        if sparse.issparse(X):
            return cls.linear(sparse.csr_matrix(X).multiply(signs[:, None]).T)
        return cls.linear((X * signs.astype(_float_type(X))[:, None]).T)

    @classmethod
    def gram(cls, G: Any) -> Self:
        """The problem in feature space, from inner products.

        Parameters
        ----------
        G : array-like, shape (n, n)
            ``y_i y_j k(x_i, x_j)``, symmetric and positive semidefinite. It is used as it is: where
            the diagonal is not 1, entries count as divided by the lengths of both points. A point
            of length 0 proves that nothing separates.

        Raises
        ------
        ValueError
            If G is not a finite symmetric matrix, has a negative entry on the diagonal, or one
            beside it that is larger than the lengths of both points allow.
        """
        G = np.asarray(G)
        G = np.ascontiguousarray(G, dtype=_float_type(G))
        if G.ndim != 2 or G.shape[0] != G.shape[1] or G.size == 0:
            raise ValueError(f"a Gram matrix must be square, got shape {G.shape}")
        diag = np.diagonal(G).astype(np.float64)
        if not np.isfinite(G.sum(dtype=np.float64)):
            raise ValueError("the Gram matrix holds NaN or infinity, or overflows when summed")
        odd = _first((diag < 0) | ((diag == 0) & G.any(axis=1)))
        if odd is not None:
            raise ValueError(
                "the Gram matrix is not positive semidefinite: "
                f"entry {odd} of its diagonal is {float(diag[odd])!r}; leave that point out"
            )
        zero = _first(diag == 0)
        lengths = np.sqrt(np.where(diag == 0, 1.0, diag))
        _check_entries(G, lengths)
        return cls("gram", G, None if (lengths == 1).all() else lengths, zero=zero)

    @classmethod
    def conic(cls, A: Any, cones: Sequence[Cone]) -> Self:
        """A cone for the orthant: A'y in its interior, or x in its base (MPFP14 eq. 6 and 7).

        Parameters
        ----------
        A : array-like or sparse matrix, shape (m, N)
            The map; its columns are split among the cones. A row of a positive semidefinite
            piece is a matrix, row by row, and counts by its symmetric part. Columns are not scaled.
        cones : sequence of Cone
            Factors of a product, all with e as :class:`Orthant`, :class:`SecondOrder` and
            :class:`PositiveSemidefinite` state it; ``<e, x> = 1`` holds for the whole x.

        Raises
        ------
        ValueError
            If sizes do not fit, or A holds NaN or infinity.
        """
        cones = tuple(cones)
        if not cones or not all(isinstance(cone, Cone) for cone in cones):
            raise ValueError(f"cones must be a sequence of cones, got {cones!r}")
        A = A if sparse.issparse(A) else np.asarray(A)
        _float_type(A)
        if sparse.issparse(A):
            A = sparse.csr_matrix(A, dtype=np.float64)
        else:
            A = np.ascontiguousarray(A, dtype=np.float64)
        size = Product(cones).size
        if A.ndim != 2 or A.shape[0] == 0 or A.shape[1] != size:
            raise ValueError(f"A must have shape (m, {size}) for these cones, got {A.shape}")
        if not np.isfinite(A.data if sparse.issparse(A) else A).all():
            raise ValueError("A contains NaN or infinity")
        return cls("conic", A, None, cones)

    @cached_property
    def cone(self) -> Cone:
        """The cone that x belongs to."""
        return Product(self.cones) if self.cones else Orthant(self.n)

    @property
    def lengths(self) -> np.ndarray | float:
        """The lengths that the columns had, as they are divided by."""
        return 1.0 if self.scale is None else self.scale

    @property
    def n(self) -> int:
        """Entries of x."""
        return int(self.data.shape[1])

    @property
    def m(self) -> int:
        """Entries of y; for a Gram matrix, y is given by n coefficients."""
        return int(self.data.shape[0])


def as_problem(A: Any, kind: Literal["linear", "gram", "conic"], method: str) -> FeasibilityProblem:
    """A problem of this kind, from a problem or a matrix."""
    if not isinstance(A, FeasibilityProblem):
        if kind == "linear":
            return FeasibilityProblem.linear(A)
        if kind == "gram":
            return FeasibilityProblem.gram(A)
        if len(np.shape(A)) != 2:
            raise ValueError(f"A must be a matrix with rows and columns, got shape {np.shape(A)}")
        return FeasibilityProblem.conic(A, [Orthant(np.shape(A)[1])])
    if A.kind != kind:
        raise ValueError(f"{method} takes {kind} problems, got a {A.kind} one")
    return A


def _columns(A: Any) -> Matrix:
    """A float matrix with a contiguous axis: C order, Fortran order or CSC."""
    if sparse.issparse(A):
        A = sparse.csc_matrix(A, dtype=_float_type(A))
        A = A if A.has_canonical_format else A.copy()
        A.sum_duplicates()
    else:
        A = np.asarray(A)
        A = np.asarray(A, dtype=_float_type(A))
        if not (A.flags.c_contiguous or A.flags.f_contiguous):
            A = np.ascontiguousarray(A)
    if A.ndim != 2 or 0 in A.shape:
        raise ValueError(f"A must be a matrix with rows and columns, got shape {A.shape}")
    return A


def _float_type(A: Any) -> Any:
    if A.dtype.kind == "c":
        raise ValueError("A holds complex numbers; it must be real")
    return A.dtype if A.dtype in (np.float32, np.float64) else np.float64


def _lengths(A: Matrix) -> np.ndarray:
    """Column norms in float64, shape (n,); ValueError unless all are finite."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if sparse.issparse(A):
            squares = np.add.reduceat(
                np.append(np.square(A.data, dtype=np.float64), 0.0), A.indptr[:-1]
            )
            squares[np.diff(A.indptr) == 0] = 0.0
        else:
            squares = np.einsum("ij,ij->j", A, A, dtype=np.float64)
        lengths = np.sqrt(squares)
    # Squares out of range: the largest entry of the column is taken out first.
    for j in np.flatnonzero(~((squares > 1e-280) & (squares < 1e280))):
        column = (A[:, [j]].toarray() if sparse.issparse(A) else A[:, j]).astype(np.float64)
        top = float(np.abs(column).max())
        if not math.isfinite(top):
            raise ValueError(f"A contains NaN or infinity in column {j}; remove it")
        lengths[j] = top * math.sqrt(np.square(column / top).sum()) if top > 0 else 0.0
        if not math.isfinite(lengths[j]):
            raise ValueError(f"column {j} of A is too long for float64; scale it down")
    return lengths


def _first(chosen: np.ndarray) -> int | None:
    """The first position that is true, if any."""
    return int(chosen.argmax()) if chosen.any() else None


def _check_entries(G: np.ndarray, lengths: np.ndarray) -> None:
    """ValueError unless G = G' and no entry exceeds the product of both lengths, up to rounding."""
    tolerance = 64 * np.finfo(G.dtype).eps * float(np.abs(np.diagonal(G)).max())
    for lo in range(0, len(G), _ROWS):
        block, hi = G[lo : lo + _ROWS, lo:], lo + _ROWS
        if np.abs(block - G[lo:, lo:hi].T).max() > tolerance:
            raise ValueError("the Gram matrix is not symmetric; use (G + G') / 2 if it is rounding")
        most = np.multiply.outer((1 + _TOO_LONG) * lengths[lo:hi], lengths[lo:]) + tolerance
        odd = _first((np.abs(block) > most).any(axis=1))
        if odd is not None:
            raise ValueError(
                f"the Gram matrix is not positive semidefinite: row {lo + odd} has an entry larger "
                "than the lengths of both points allow"
            )
