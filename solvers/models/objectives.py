"""Objectives of the soft-margin SVM, in one place and with named units.

Two scales are in use. "C units" are those of ``1/2 ||w||^2 + C sum_i hinge_i``; "lambda units"
those of ``lambda/2 ||w||^2 + (1/n) sum_i hinge_i`` with ``lambda = 1 / (n C)``. A value in C units
times lambda is the value in lambda units. Every function here says which it returns.
"""

from __future__ import annotations

import numpy as np


def hinge(margins: np.ndarray) -> np.ndarray:
    """max(0, 1 - margin), elementwise; a margin is y_i f(x_i)."""
    return np.maximum(0.0, 1.0 - margins)


def primal_value(squared_norm: float, margins: np.ndarray, C: float) -> float:
    """1/2 ||w||^2 + C sum_i hinge_i, in C units; margins are y_i f(x_i), the bias included."""
    return 0.5 * squared_norm + C * float(hinge(margins).sum(dtype=np.float64))


def dual_value(alpha: np.ndarray, squared_norm: float) -> float:
    """sum_i alpha_i - 1/2 ||w(alpha)||^2, in C units; a lower bound of the optimum if feasible."""
    return float(alpha.sum(dtype=np.float64)) - 0.5 * squared_norm
