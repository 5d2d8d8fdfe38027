"""What the peers with the parameters of scikit-learn's SVC share."""

from __future__ import annotations

from typing import Any

from ..kernels import RBF, Kernel, Linear, Polynomial


def svc_kernel(kernel: Kernel) -> dict[str, Any] | None:
    """Arguments of SVC for a kernel that all of its implementations have; None for others."""
    if isinstance(kernel, RBF):
        return {"kernel": "rbf", "gamma": kernel.gamma}
    if isinstance(kernel, Polynomial):
        return {
            "kernel": "poly",
            "degree": kernel.degree,
            "gamma": kernel.gamma,
            "coef0": kernel.coef0,
        }
    if isinstance(kernel, Linear):
        return {"kernel": "linear"}
    return None
