"""A part of the training set that is set aside, to see when the error on it stops falling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernels.oracle import KernelOracle


class Split:
    """Training points first, held-out points after them.

    Attributes
    ----------
    y : ndarray of float64, shape (n,)
        The labels in the order of the split.
    n_train : int
    order : ndarray of int64, shape (n,), or None
        Where the points of the split stand in the data; None if nothing is held out.
    """

    def __init__(self, y: np.ndarray, fraction: float, rng: np.random.Generator) -> None:
        self.order: np.ndarray | None = None
        self.y = y
        self.n_train = len(y)
        if fraction == 0:
            return
        held_out = []
        for label in (-1.0, 1.0):
            members = np.flatnonzero(y == label)
            size = round(fraction * len(members))
            if size == len(members):
                raise ValueError(
                    f"validation_fraction={fraction} holds out all {size} points of a class: "
                    "make it smaller"
                )
            held_out.append(rng.permutation(members)[:size])
        chosen = np.zeros(len(y), dtype=bool)
        chosen[np.concatenate(held_out)] = True
        if not chosen.any():
            raise ValueError(
                f"validation_fraction={fraction} holds out none of {len(y)} points: make it larger"
            )
        self.order = np.concatenate([np.flatnonzero(~chosen), np.flatnonzero(chosen)])
        self.y = y[self.order]
        self.n_train = len(y) - int(chosen.sum())

    def reorder(self, values: np.ndarray) -> np.ndarray:
        """Numbers of the points in the order of the data, put in the order of the split."""
        return values if self.order is None else values[self.order]

    def restore(self, values: np.ndarray) -> np.ndarray:
        """Numbers of the points in the order of the split, put in the order of the data."""
        if self.order is None:
            return values
        restored = np.empty_like(values)
        restored[self.order] = values
        return restored

    def positions(self, index: np.ndarray) -> np.ndarray:
        """Where points of the split stand in the data."""
        return index if self.order is None else self.order[index]

    def row(
        self, oracle: KernelOracle, i: int, upcoming: Callable[[int], np.ndarray]
    ) -> np.ndarray:
        """The kernel row of point i of the split, in its order; costs n evaluations."""
        order = self.order
        if order is None:
            return oracle.row_ahead(i, upcoming)
        row = oracle.row_ahead(int(order[i]), lambda count: order[upcoming(count)])
        return row.take(order)


class Stabilisation:
    """The errors on the held-out points, and whether they have stopped falling."""

    def __init__(self, patience: int) -> None:
        self.errors: list[float] = []
        self._patience = patience

    def add(self, error: float) -> bool:
        """Note the error of one more check; True if the errors have stabilised."""
        self.errors.append(error)
        return self._since_lowest() >= self._patience

    def shortfall(self) -> str:
        """Why the errors have not stabilised, in words."""
        checks = (
            f"{self._since_lowest()} of {len(self.errors)} checks" if self.errors else "0 checks"
        )
        return f"{checks} found no lower held-out error, patience={self._patience}"

    def _since_lowest(self) -> int:
        """Checks since the first one with the lowest error."""
        return len(self.errors) - 1 - int(np.argmin(self.errors))
