"""Cutting planes in terms of kernel entries, and their scores at training points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from solvers.cuts.structure import Violations
from solvers.oracle import KernelOracle
from solvers.threads import in_parts

# Blocks of entries are about this large: they stay in a cache of the processor between the steps
# of their computation.
_BLOCK_BYTES = 4 * 2**20
_FEWEST_ROWS = 64
# Points that stand in several cuts are evaluated once if there are this many times fewer of them.
_WORTH_SHARING = 1.5


@dataclass(frozen=True)
class Cut:
    """The lower bound ``offset + <w, g>`` of the risk at w.

    Attributes
    ----------
    offset : float
    points : ndarray of int64, shape (m,)
        Distinct training points.
    coef : ndarray of float64, shape (m, n_channels)
        ``g = sum_p coef_p phi(x_p)`` in each channel.
    explicit : ndarray of float64, shape (n_explicit,)
        The part of g outside of the kernel's space.
    n_drawn : int
        How many points were drawn for it, those drawn twice and those without effect included.
    scores : ndarray, shape (n_points, n_channels), or None
        ``<g, phi(x_p)>`` in each channel for every training point; None if they are not kept.
    """

    offset: float
    points: np.ndarray
    coef: np.ndarray
    explicit: np.ndarray
    n_drawn: int
    scores: np.ndarray | None = None


def average(
    violations: Violations,
    factors: np.ndarray,
    points: np.ndarray | None,
    sizes: np.ndarray,
    n_drawn: int,
    offset: float | None = None,
) -> Cut:
    """The sum of some examples' bounds of their own losses, each times a factor.

    Parameters
    ----------
    violations : Violations
    factors : ndarray of float64, shape (k,)
        0 for examples that take no part.
    points : ndarray of int64 or None
        The points of the examples one after another; None if these are all points there are.
    sizes : ndarray of int64, shape (k,)
        Numbers of points of the examples.
    n_drawn : int
        See :class:`Cut`.
    offset : float, optional
        By default the sum of the losses, each times its factor.
    """
    by_row = factors if len(factors) == len(violations.coef) else np.repeat(factors, sizes)
    rows = np.flatnonzero(by_row)
    coef = -by_row[rows, None] * violations.coef[rows]
    some = coef.any(axis=1)
    rows = rows[some]
    if offset is None:
        offset = float((factors * violations.losses).sum())
    return Cut(
        offset=offset,
        points=rows if points is None else points[rows],
        coef=coef[some],
        explicit=-(factors[:, None] * violations.explicit).sum(axis=0),
        n_drawn=n_drawn,
    )


def cut_scores(
    oracle: KernelOracle, rows: np.ndarray | None, cuts: Sequence[Cut], n_channels: int
) -> np.ndarray:
    """``<g_k, phi(x_p)>`` in each channel for some cuts k and points p.

    Parameters
    ----------
    oracle : KernelOracle
        Asked for an entry for each of the points and each different point of the cuts, or for
        each point of each cut where few are shared.
    rows : ndarray of int64, shape (n_rows,), or None
        None: all points.
    cuts : sequence of Cut
    n_channels : int

    Returns
    -------
    ndarray of float64, shape (len(cuts), n_rows, n_channels)
    """
    rows = np.arange(oracle.n) if rows is None else rows
    scores = np.zeros((len(cuts), len(rows), n_channels))
    bounds = np.concatenate(([0], np.cumsum([len(cut.points) for cut in cuts]))).astype(np.int64)
    if bounds[-1] == 0 or len(rows) == 0:
        return scores
    columns = np.concatenate([cut.points for cut in cuts])
    coef = np.ascontiguousarray(np.concatenate([cut.coef for cut in cuts]).T)
    distinct, place = np.unique(columns, return_inverse=True)
    shared = len(columns) >= _WORTH_SHARING * len(distinct)
    if shared:
        columns = distinct
    step = max(_FEWEST_ROWS, _BLOCK_BYTES // (len(place) * oracle.dtype.itemsize))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        block = oracle.fresh_block(rows[part], columns)
        if shared:
            block = block.take(place, axis=1)
        in_parts(_weighted_sums, len(block), block, coef, bounds, scores[:, part])
    return scores


def squared_norm(oracle: KernelOracle, cut: Cut, allowance: int) -> float:
    """``||g||^2``, without the explicit part, for at most ``allowance`` entries if possible.

    Half of the entries would do, for they are symmetric; a block of all is faster. The allowance
    must be no less than ``m (m + 1) / 2`` for a cut of m points.
    """
    points, coef = cut.points, cut.coef
    if len(points) <= 1 or len(points) ** 2 <= allowance:
        block = oracle.fresh_block(points, points)
        return float((coef * _products(block, coef)).sum())
    middle = len(points) // 2
    block = oracle.fresh_block(points[:middle], points[middle:])
    total = 2.0 * float((coef[:middle] * _products(block, coef[middle:])).sum())
    for half in (slice(None, middle), slice(middle, None)):
        m = len(points[half])
        part = Cut(0.0, points[half], coef[half], cut.explicit, 0)
        total += squared_norm(oracle, part, m * (m + 1) // 2)
    return total


def _products(block: np.ndarray, coef: np.ndarray) -> np.ndarray:
    sums = np.zeros((1, len(block), coef.shape[1]))
    bounds = np.array([0, block.shape[1]])
    _weighted_sums(block, np.ascontiguousarray(coef.T), bounds, sums, 0, len(block))
    return sums[0]


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"}, nogil=True)
def _weighted_sums(block, coef, bounds, sums, start, stop):
    """sums_kis = sum_j coef_sj block_ij over the columns j of cut k, for rows start to stop."""
    for i in range(start, stop):
        row = block[i]
        for k in range(len(bounds) - 1):
            for s in range(len(coef)):
                factors, total = coef[s], 0.0
                for j in range(bounds[k], bounds[k + 1]):
                    total += factors[j] * row[j]
                sums[k, i, s] = total
