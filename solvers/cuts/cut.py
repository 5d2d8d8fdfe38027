"""Cutting planes in terms of kernel entries, and their scores at training points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels.oracle import KernelOracle
from ..kernels.scoring import add_rows
from ..numeric.rows import weighted_sums as sums_of_entries
from ..numeric.threads import in_parts
from .structure import Violations

# Blocks of entries are about this large: they stay in a cache of the processor between the steps
# of their computation.
_BLOCK_BYTES = 4 * 2**20
_FEWEST_ROWS = 64


@dataclass(frozen=True)
class Cut:
    """The lower bound ``offset + <w, g>`` of the risk at w."""

    offset: float
    points: np.ndarray  # int64, shape (m,): Distinct training points
    # float64, shape (m, n_channels): ``g = sum_p coef_p phi(x_p)`` in each channel
    coef: np.ndarray
    # float64, shape (n_explicit,): The part of g outside of the kernel's space
    explicit: np.ndarray
    # How many points were drawn for it, those drawn twice and those without effect included
    n_drawn: int
    # shape (n_points, n_channels), or None: ``<g, phi(x_p)>`` in each channel for every training
    # point; None if they are not kept
    scores: np.ndarray | None = None


def cut_of(
    violations: Violations,
    factors: np.ndarray,
    points: np.ndarray | None,
    sizes: np.ndarray,
    n_drawn: int,
    offset: float | None = None,
) -> Cut:
    """The cut (c, g): the sum of some examples' bounds of their own losses, each times a factor."""
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


def combined(cuts: Sequence[Cut], factors: np.ndarray, n_channels: int) -> Cut:
    """The sum of some cuts, each times its factor, over their distinct points in order."""
    some = [(f, cut) for f, cut in zip(factors, cuts, strict=True) if f != 0]
    points = np.concatenate([cut.points for _, cut in some] + [np.empty(0, dtype=np.int64)])
    distinct, positions = np.unique(points, return_inverse=True)
    coef = np.zeros((len(distinct), n_channels))
    if some:
        np.add.at(coef, positions, np.concatenate([f * cut.coef for f, cut in some]))
    return Cut(0.0, distinct, coef, np.empty(0), 0)


def cut_scores(oracle: KernelOracle, rows: np.ndarray | None, cut: Cut) -> np.ndarray:
    """``<g, phi(x_p)>`` in each channel for some points p.

    Terms are added in the order of the cut's points, whether their kernel rows are cached or not.
    """
    coef = np.ascontiguousarray(cut.coef.T)
    sums = np.zeros((len(coef), oracle.n if rows is None else len(rows)))
    # A larger cut would displace its own rows before the next one asks for them.
    if rows is None and len(cut.points) <= oracle.cached_rows:
        for start in range(0, len(cut.points), oracle.chunk):
            part = slice(start, start + oracle.chunk)
            storage, slots = oracle.stored_rows(cut.points[part])
            add_rows(storage, slots, coef[:, part], sums)
    elif len(cut.points):
        rows = np.arange(oracle.n) if rows is None else rows
        slots = np.arange(len(cut.points))
        step = max(_FEWEST_ROWS, _BLOCK_BYTES // (len(slots) * oracle.dtype.itemsize))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            add_rows(oracle.fresh_block(cut.points, rows[part]), slots, coef, sums[:, part])
    return np.ascontiguousarray(sums.T)


def weighted_sums(block: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """block @ coef with float64 sums, whatever the block's type."""
    sums = np.empty((coef.shape[1], len(block)))
    factors = np.ascontiguousarray(coef.T)
    in_parts(sums_of_entries, len(block), block, factors, sums, smallest=256)
    return np.ascontiguousarray(sums.T)


def squared_norm(oracle: KernelOracle, cut: Cut, allowance: int) -> float:
    """``||g||^2``, without the explicit part, for at most ``allowance`` entries.

    Half of the entries would do, for they are symmetric; a block of all is faster. The allowance
    must be no less than ``m (m + 1) / 2`` for a cut of m points.
    """
    m, total = len(cut.points), 0.0
    # Strips of s rows, each from its diagonal on, have up to m (m + s) / 2 entries.
    step = max(1, 2 * allowance // max(1, m) - m)
    for start in range(0, m, step):
        strip, rest = slice(start, start + step), slice(start, None)
        factors = 2 * cut.coef[rest]
        factors[:step] = cut.coef[strip]
        block = oracle.fresh_block(cut.points[strip], cut.points[rest])
        total += float((cut.coef[strip] * weighted_sums(block, factors)).sum())
    return total
