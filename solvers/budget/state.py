"""The state of a budget model: points, coefficients, scratch, and what was counted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .arithmetic import GAUSSIAN, aligned, padded, smallest
from .compiling import compiled

# Points whose exponent is at most this (their kernel entry at least 1 less this) are one point.
COINCIDENT = 5e-9

_COUNTED = (
    "n_points",  # of the model, now; all others since the start
    "changes",  # iterations that changed the model
    "coalesced",  # those of them that found their point in it
    "events",  # of maintenance
    "margin_evals",  # kernel evaluations as a textbook run asks for them
    "search_evals",
    "computed",  # kernel evaluations that were done
    "maintenance_ticks",  # of the processor
    "ticks",
)
#: What compiled code counts.
COUNTS = np.dtype([(name, np.int64) for name in _COUNTED])


class ModelState(NamedTuple):
    """``w = scale * sum_j coef_j phi(z_j)`` over j < counts.n_points; compiled code changes it."""

    budget: int  # The most points it may have after an iteration
    points: np.ndarray  # shape (n_features, capacity): z_j in column j, in the kernel's units
    coef: np.ndarray  # float64, shape (capacity,): Zero beyond the size
    roots: np.ndarray  # float64, shape (capacity,): sqrt(k(z_j, z_j))
    owner: np.ndarray  # int64, shape (capacity,): The training point that z_j is; -1 after a merge
    # shape (capacity,) or (0,): The label of the training points that z_j is made of, -1 or +1;
    # kept only where points of the same label are merged
    labels: np.ndarray
    # shape (capacity,): Exponents and kernel entries of the point that was evaluated last
    distances: np.ndarray
    entries: np.ndarray
    entry_bits: np.ndarray  # int32 or int64, shape (capacity,): The memory of ``entries``
    scratch: np.ndarray  # float64 and int64, shape (capacity,): One memory
    scratch_bits: np.ndarray
    partners: np.ndarray  # int64, shape (capacity,): Scratch of the partner search
    buffer: np.ndarray  # shape (n_features,): Holds a point
    # float64, shape (capacity, capacity) or (0, 0): Kernel entries between the points, for
    # projection
    gram: np.ndarray
    # float64, shape (capacity, capacity) or (0, 0): Upper triangular: ``factor' factor`` is the
    # ridged matrix of kernel entries, in the order of ``order``
    factor: np.ndarray
    # int64, shape (capacity,): The position of the point that each row of the factor belongs to
    order: np.ndarray
    carried: np.ndarray  # float64, shape (capacity,): Scratch of projection
    counts: np.void  # record of int64: The size of the model and the counters of :data:`COUNTS`
    # float64, shape (1,): Sum of the squared distances in feature space that w was moved by budget
    # maintenance
    degradation: np.ndarray


def empty_state(
    n_features: int, budget: int, dtype: str, *, gram: bool, labels: bool
) -> ModelState:
    """A model of no points, with room for ``budget`` and one more."""
    capacity = padded(budget + 1)
    side = capacity if gram else 0
    entries = aligned((capacity,), dtype)
    scratch = aligned((capacity,), "float64")
    return ModelState(
        budget=budget,
        points=aligned((n_features, capacity), dtype),
        coef=aligned((capacity,), "float64"),
        roots=aligned((capacity,), "float64"),
        owner=np.full(capacity, -1),
        labels=aligned((capacity if labels else 0,), dtype),
        distances=aligned((capacity,), dtype),
        entries=entries,
        entry_bits=entries.view(f"int{8 * entries.itemsize}"),
        scratch=scratch,
        scratch_bits=scratch.view(np.int64),
        partners=np.zeros(capacity, dtype=np.int64),
        buffer=np.zeros(n_features, dtype=dtype),
        gram=np.zeros((side, side)),
        factor=np.zeros((side, side)),
        order=np.zeros(capacity, dtype=np.int64),
        carried=aligned((capacity,), "float64"),
        counts=np.zeros(1, dtype=COUNTS)[0],
        degradation=np.zeros(1),
    )


@compiled()
def coincident(kind, distances, owner, size, i):
    """The position of the point just evaluated, training point i, in the model; or -1.

    For the Gaussian kernel it is known by its distance, for others by its index.
    """
    position = -1
    if kind == GAUSSIAN:
        for j in range(size):
            position = max(position, j if distances[j] <= COINCIDENT else -1)
    else:
        for j in range(size):
            position = max(position, j if owner[j] == i else -1)
    return position


@compiled()
def distance_left(kind, distance, coefficient):
    """||c phi(x) - c phi(z)||^2 of a point x taken for its coincident z."""
    if kind == GAUSSIAN:
        return -2.0 * coefficient * coefficient * math.expm1(-np.float64(distance))
    return 0.0


@compiled(forceinline=True)
def drop(model, j):
    """Take point j out; the last one moves to its place."""
    points, coef, roots, owner = model.points, model.coef, model.roots, model.owner
    labels = model.labels
    last = model.counts.n_points - 1
    if j != last:
        for f in range(len(points)):
            points[f, j] = points[f, last]
        coef[j] = coef[last]
        roots[j] = roots[last]
        owner[j] = owner[last]
        if len(labels) > 0:
            labels[j] = labels[last]
    coef[last] = 0.0
    owner[last] = -1
    model.counts.n_points = last


@compiled(forceinline=True)
def lightest(model):
    """The last position of the least |coef_j| sqrt(k(z_j, z_j)); ``scratch`` holds them all."""
    coef, roots, scratch, size = model.coef, model.roots, model.scratch, model.counts.n_points
    for j in range(size):
        scratch[j] = abs(coef[j]) * roots[j]
    return smallest(model.scratch_bits, size)
