"""Feasibility problems with a known answer: a separating vector, or a convex combination of 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .parameters import integer, real

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FeasibilityInstance:
    """Columns of unit length, with the solution that they were built around.

    Attributes
    ----------
    A : ndarray of float64, shape (m, n)
        Columns of unit length, in C order.
    y : ndarray of float64, shape (m,), or None
        A unit vector with ``A'y > 0``.
    x : ndarray of float64, shape (n,), or None
        A point of the simplex with ``A x = 0`` up to rounding.
    """

    A: Floats
    y: Floats | None = None
    x: Floats | None = None


def ldfp(m: int, n: int, kappa: float = 1.0, seed: int = 0) -> FeasibilityInstance:
    """A problem that a hyperplane through the origin separates.

    Normal columns on one side of a random hyperplane; their components along its normal are
    multiplied by ``kappa``, then columns are scaled to unit length. MPFP14 uses a ``kappa`` of this
    sense (larger is easier) but its appendix with the generator is not at hand: this is a
    proposal, under which the numbers of iterations are consistent with its Table 2.

    Parameters
    ----------
    m, n : int >= 1
        Dimension and number of columns.
    kappa : float > 0, default=1.0
        1 leaves the columns normal; the margin grows with it.
    seed : int >= 0, default=0

    Returns
    -------
    FeasibilityInstance
        With ``y``; its margin ``min_j A_j'y`` is positive and at most the best one.

    Raises
    ------
    DataError
        If a parameter is out of range.
    """
    m, n, seed, factor = _checked("ldfp", m, n, seed, kappa)
    generator = np.random.default_rng(seed)
    y = generator.standard_normal(m)
    y /= math.sqrt(float(np.square(y).sum()))
    A = generator.standard_normal((m, n))
    along = _product(y, A)
    A *= np.where(along < 0, -1.0, 1.0)
    # Row by row: no second matrix of this size.
    for row, part in zip(A, (factor - 1) * y, strict=True):
        row += part * np.abs(along)
    _scale_columns(A)
    if not (_product(y, A) > 0).all():
        raise _out_of_range("ldfp", factor)
    return FeasibilityInstance(A, y=y)


def lap(m: int, n: int, seed: int = 0, kappa: float = 1.0) -> FeasibilityInstance:
    """A problem that nothing separates: 0 is a convex combination of the columns.

    Normal columns are moved so that their mean under random weights, uniform on the simplex, is 0,
    then scaled to unit length. A proposal, as :func:`ldfp`.

    Parameters
    ----------
    m, n : int >= 1, n >= 2
        Dimension and number of columns.
    seed : int >= 0, default=0
    kappa : float > 0, default=1.0
        The columns' components along a random direction are divided by this: larger values bring
        the problem closer to a separable one.

    Returns
    -------
    FeasibilityInstance
        With ``x``.

    Raises
    ------
    DataError
        If a parameter is out of range.
    """
    m, n, seed, factor = _checked("lap", m, n, seed, kappa, least=2)
    generator = np.random.default_rng(seed)
    x = generator.dirichlet(np.ones(n))
    direction = generator.standard_normal(m)
    direction /= math.sqrt(float(np.square(direction).sum()))
    A = generator.standard_normal((m, n))
    along = _product(direction, A)
    for row, part in zip(A, (1 / factor - 1) * direction, strict=True):
        row += part * along
    A -= _product(A, x)[:, None]
    lengths = _scale_columns(A)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise _out_of_range("lap", factor)
    x *= lengths
    x /= x.sum()
    return FeasibilityInstance(A, x=x)


def _scale_columns(A: Floats) -> Floats:
    """Bring the columns to unit length in place; the lengths that they had."""
    with np.errstate(all="ignore"):  # out of range: the callers look at what comes out
        lengths: Floats = np.sqrt(np.einsum("ij,ij->j", A, A))
        A /= lengths
    return lengths


def _out_of_range(name: str, kappa: float) -> DataError:
    return DataError(f"{name}: kappa={kappa:g} is beyond what float64 can hold; take one nearer 1")


def _product(a: Floats, b: Floats) -> Floats:
    # BLAS may raise floating-point flags in unused lanes of its registers.
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(a, b))


def _checked(
    name: str, m: object, n: object, seed: object, kappa: object, least: int = 1
) -> tuple[int, int, int, float]:
    return (
        integer(name, "m", m, 1),
        integer(name, "n", n, least),
        integer(name, "seed", seed, 0),
        real(name, "kappa", kappa, "a finite number > 0", lambda value: value > 0),
    )
