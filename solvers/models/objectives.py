"""Objectives of the soft-margin SVM, in one place and with named units.

Two scales are in use. "C units" are those of ``1/2 ||w||^2 + C sum_i hinge_i``; "lambda units"
those of ``lambda/2 ||w||^2 + (1/n) sum_i hinge_i`` with ``lambda = 1 / (n C)``. A value in C units
times lambda is the value in lambda units. Every function here says which it returns.
"""

from __future__ import annotations

import numpy as np


def regularization(C: float, n: int) -> float:
    """lambda = 1 / (n C): multiplies a value in C units into lambda units."""
    return 1.0 / (n * C)


def hinge(margins: np.ndarray) -> np.ndarray:
    """max(0, 1 - margin), elementwise; a margin is y_i f(x_i)."""
    return np.maximum(0.0, 1.0 - margins)


def primal_value(squared_norm: float, margins: np.ndarray, C: float) -> float:
    """1/2 ||w||^2 + C sum_i hinge_i, in C units.

    Parameters
    ----------
    squared_norm : float
        ||w||^2.
    margins : ndarray, shape (n,)
        y_i f(x_i), the bias included.
    C : float
    """
    return 0.5 * squared_norm + C * float(hinge(margins).sum(dtype=np.float64))


def dual_value(alpha: np.ndarray, squared_norm: float) -> float:
    """sum_i alpha_i - 1/2 ||w(alpha)||^2, in C units; a lower bound of the optimum if feasible.

    Parameters
    ----------
    alpha : ndarray, shape (n,) or only its non-zeros
    squared_norm : float
        ||w(alpha)||^2 = sum_ij alpha_i alpha_j y_i y_j K_ij.
    """
    return float(alpha.sum(dtype=np.float64)) - 0.5 * squared_norm


def duality_gap(alpha: np.ndarray, squared_norm: float, margins: np.ndarray, C: float) -> float:
    """Primal minus dual at w(alpha), in C units; never negative for a feasible alpha."""
    return primal_value(squared_norm, margins, C) - dual_value(alpha, squared_norm)


def slack_rate(squared_norm: float, margins: np.ndarray) -> float:
    """nu = mean hinge loss / ||w||: the slack that makes SBP's problem that of C (SBP12 eq. 2.3).

    Raises
    ------
    ValueError
        If w is zero: the two problems have no common scale there.
    """
    if squared_norm <= 0:
        raise ValueError("w = 0 has no slack rate: the optimum separates nothing")
    return float(hinge(margins).mean(dtype=np.float64) / np.sqrt(squared_norm))


def kkt_violation(alpha: np.ndarray, margins: np.ndarray, C: float) -> float:
    """Largest violation of the optimality conditions without bias, a difference of margins.

    A point at 0 needs margin >= 1, one at C margin <= 1, one between margin = 1.
    """
    raise_by = np.where(alpha < C, 1.0 - margins, -np.inf)
    lower_by = np.where(alpha > 0, margins - 1.0, -np.inf)
    return float(max(0.0, raise_by.max(), lower_by.max()))
