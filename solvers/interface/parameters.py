"""Hyper-parameters that several estimators have in common, each declared and documented once.

An estimator inherits those that it takes and declares its own; see :func:`hyperparameters`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from ..kernels import Kernel
from .declaration import hyperparameters


@hyperparameters
class SeedParameters:
    """The seed of a randomised estimator.

    Parameters
    ----------
    random_state : int, Generator or None
        Seeds the draws.
    """

    random_state: Any = None


@hyperparameters
class SolverParameters(SeedParameters):
    """Parameters of every solver.

    Parameters
    ----------
    fit_intercept : bool
        Must be False: the method has no unregularised bias.
    verbose : bool
        Write a line about the progress to the error stream each second, unless ``fit`` is given a
        monitor.
    """

    fit_intercept: bool = False
    verbose: bool = False


@hyperparameters
class WarmStartParameters:
    """Continuing an earlier fit.

    Parameters
    ----------
    warm_start : bool
        Continue the last fit, with its points, labels and weights and its random numbers: two fits
        of 5 epochs are one of 10, if the first did not converge. ``n_iter_`` goes on, and
        ``counters_`` are those of the last fit.
    """

    warm_start: bool = False


@hyperparameters
class SoftMarginParameters:
    """The trade-off of the soft-margin SVM.

    Parameters
    ----------
    C : float > 0
        Weight of the summed hinge loss against ``1/2 ||w||^2``.
    """

    C: float = 1.0


@hyperparameters
class KernelParameters:
    """The kernel, and the precision of its entries.

    Parameters
    ----------
    kernel : str, Kernel or callable
        The name of a kernel: "rbf", "linear", "poly", "laplacian" or "precomputed". A callable
        takes two matrices of points and returns their kernel block.
    gamma : float > 0, "scale" or "auto"
        Width of "rbf" (``exp(-gamma ||x - z||^2)``) and "laplacian", and scale of "poly".
    degree : int >= 1
        Degree of "poly".
    coef0 : float
        Constant of "poly".
    dtype : {"float32", "float64"}
        Type of the kernel entries. Sums are float64.
    """

    kernel: str | Kernel | Callable[[Any, Any], Any] = field(default="rbf", kw_only=False)
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    dtype: str = "float32"


@hyperparameters
class CachedKernelParameters(KernelParameters):
    """A kernel with cached rows.

    Parameters
    ----------
    cache_size : float >= 0
        Bound on the cached kernel rows, MB; 0 for no cache.
    """

    cache_size: float = 200.0
