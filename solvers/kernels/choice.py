"""Kernels by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from ..numeric.matrices import Matrix
from ..registration import kernel_entries
from .base import Kernel
from .callable import CallableKernel
from .rbf import RBF


def kernel_names() -> list[str]:
    """The names of all kernels; nothing is imported."""
    return [*kernel_entries()]


def kernel_class(name: str) -> type[Kernel]:
    """The kernel of this name; ValueError, which suggests a near miss, if there is none."""
    entries = kernel_entries()
    if name not in entries:
        near = get_close_matches(name, entries, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(entries)}"
        raise ValueError(f"unknown kernel {name!r}; {hint}")
    kernel: type[Kernel] = getattr(import_module(entries[name].module), entries[name].class_name)
    return kernel


def make_kernel(
    kernel: str | Mapping[str, Any] | Kernel | Callable[[Any, Any], Any] = RBF.name,
    *,
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    X: Matrix | None = None,
    weights: np.ndarray | None = None,
) -> Kernel:
    """Build a kernel from the parameters of an estimator.

    Parameters
    ----------
    kernel : str, mapping, Kernel or callable
        A name; a mapping of "name" and of parameters that are the kernel's own, for those that are
        none of the following three; a kernel itself; or a function of two matrices of points.
    gamma : float > 0, "scale" or "auto"
        "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.
    degree : int >= 1
    coef0 : float
        These three are passed on to a kernel that has them.
    X : ndarray or csr_matrix, shape (n_points, n_features), optional
        The training points; needed by "scale" and "auto".
    weights : ndarray of float64, shape (n_points,), optional
        How often each of them counts in X.var(); once by default.

    Raises
    ------
    ValueError
        For an unknown name or parameter, or a parameter out of range.
    """
    if isinstance(kernel, Kernel):
        return kernel
    own: dict[str, Any] = {}
    if isinstance(kernel, Mapping):
        own = {**kernel}
        kernel = own.pop("name", None)
    if not isinstance(kernel, str):
        if callable(kernel):
            return CallableKernel(kernel)
        raise ValueError(f"kernel must be a name, a Kernel or a callable, got {kernel!r}")
    cls = kernel_class(kernel)
    shared = {"gamma": gamma, "degree": degree, "coef0": coef0}
    passed = {name: value for name, value in shared.items() if name in cls.parameters()}
    return cls.of({**passed, **own}, X, weights)


def kernel_of(description: Mapping[str, Any]) -> Kernel:
    """The kernel that :meth:`Kernel.describe` described; ValueError if it is none."""
    parameters = dict(description)
    return kernel_class(parameters.pop("name")).of(parameters)


def is_registered(kernel: Kernel) -> bool:
    """Whether a kernel can be made again from its description."""
    return kernel.name in kernel_entries() and type(kernel) is kernel_class(kernel.name)
