"""The checker of certificates: recomputes everything from the problem, in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from ..numeric.matrices import matmul, squared_norms
from .problem import FeasibilityProblem
from .proofs import product, proves_inseparable, transposed_product
from .result import FeasibilityResult, FeasibilityStatus

_EPS = float(np.finfo(np.float64).eps)
# Reported bounds come from running sums; float32 sums of a block are good to about 1e-6.
_REPORTED = {"float64": 1e-8, "float32": 1e-4}
# However large its coefficients, y may not beat the upper bound by more than this part.
_MOST_BEYOND = 1e-3
# Points of the ball and of the base are far smaller than this.
_LARGEST = 1e140


@dataclass(frozen=True)
class Verdict:
    """What the checker found.

    Attributes
    ----------
    valid : bool
        The status is proven by the certificate, and the reported bounds are those of y and x.
    reasons : tuple of str
        Why not.
    phi_lo, phi_up : float
        The bounds, recomputed; NaN if y or x is not a finite vector of the right length.
    """

    valid: bool
    reasons: tuple[str, ...]
    phi_lo: float
    phi_up: float


def check_certificate(problem: FeasibilityProblem, result: FeasibilityResult) -> Verdict:
    """Check a result against its problem, from scratch.

    "separable" needs ``A'y > 0`` by more than the rounding of the check itself;
    "margin_at_most_tol" needs x in the base and ``||A x|| <= tol``; "inseparable" needs an x from
    which it follows that some point of the base has the image 0 exactly
    (:func:`.proofs.proves_inseparable`). Both points must be where they belong in any case, and
    phi_lo at most phi_up. What has another status, or points that are not finite vectors of the
    right length, is invalid too. Where the coefficients of a Gram matrix cancel, the norm of y is
    known up to rounding only, and so is phi_lo; whether y separates does not depend on it.

    Parameters
    ----------
    problem : FeasibilityProblem
    result : FeasibilityResult

    Returns
    -------
    Verdict
    """
    unknown = []
    statuses = get_args(FeasibilityStatus)
    if not isinstance(result.status, str) or result.status not in statuses:
        unknown = [f"the status {result.status!r} is none of {', '.join(statuses)}"]
    wrong = [
        *_not_a_vector("y", result.y, problem.n if problem.kind == "gram" else problem.m),
        *_not_a_vector("x", result.x, problem.n),
    ]
    if wrong:
        return Verdict(False, (*unknown, *wrong), math.nan, math.nan)
    # What overflows compares as false below, which is a reason.
    with np.errstate(over="ignore", invalid="ignore"):
        reasons, low, up = _examine(problem, result)
    reasons = [*unknown, *reasons]
    return Verdict(not reasons, tuple(reasons), low, up)


def _not_a_vector(name: str, value: Any, size: int) -> list[str]:
    try:
        vector = np.asarray(value)
    except (TypeError, ValueError):
        return [f"{name} is not an array of numbers"]
    if vector.dtype.kind not in "biuf":
        return [f"{name} is not an array of real numbers"]
    if vector.shape != (size,):
        return [f"{name} has shape {vector.shape}, not {(size,)}"]
    if not np.isfinite(vector).all():
        return [f"{name} contains NaN or infinity"]
    if not np.abs(vector.astype(np.float64)).max() <= _LARGEST:
        return [f"{name} has entries above {_LARGEST!r}, whose squares overflow"]
    return []


def _examine(
    problem: FeasibilityProblem, result: FeasibilityResult
) -> tuple[list[str], float, float]:
    """The reasons against finite points of the right shapes, and their bounds."""
    y, x = np.asarray(result.y, np.float64), np.asarray(result.x, np.float64)
    low, up = lower_bound(problem, y), upper_bound(problem, x)
    outside = _outside_base(problem, x)
    reasons = [*outside]
    norm, allowance = _norm(problem, y), _rounding_of_squared_norm(problem, y)
    if not norm <= math.sqrt(1 + 1e-9 + allowance):
        reasons.append(f"y has norm {norm!r}, outside the unit ball")
    # Rounding of x, summed over its entries.
    slack = _EPS * math.sqrt(problem.n) * max(1.0, up)
    if result.status == "separable" and not low > rounding_of_lower_bound(problem, y):
        reasons.append(f"y does not separate: its least response is {low!r}")
    most = math.sqrt(up * up + _rounding_of_squared_norm(problem, x))
    if result.status == "margin_at_most_tol" and not most <= result.tol + slack:
        reasons.append(f"||A x|| is {up!r}, above tol={result.tol!r}")
    if result.status == "inseparable" and (outside or not proves_inseparable(problem, x)):
        reasons.append("x does not prove that nothing separates")
    near = _REPORTED[problem.data.dtype.name]
    # Coefficients of a y that is almost 0 are noise, divided by a tiny norm.
    noise = rounding_of_lower_bound(problem, y)
    for name, reported, recomputed, rounding in (
        ("phi_lo", result.phi_lo, low, noise),
        ("phi_up", result.phi_up, up, 0.0),
    ):
        if not abs(reported - recomputed) <= near * max(1.0, abs(recomputed)) + rounding:
            reasons.append(f"{name} is {recomputed!r}, reported as {reported!r}")
    # No least response of a y in the unit ball is above a norm over the base. The entries of a
    # float32 Gram matrix are themselves rounded, which counts most where the norm is almost 0.
    stored = 8 * float(np.finfo(problem.data.dtype).eps) if problem.kind == "gram" else 0.0
    most = math.sqrt(most * most + stored)
    if not low <= most * math.sqrt(1 + 1e-9 + min(allowance, _MOST_BEYOND)) + noise + near:
        reasons.append(f"phi_lo {low!r} is above phi_up {up!r}")
    return reasons, low, up


def lower_bound(problem: FeasibilityProblem, y: np.ndarray) -> float:
    """phi_lo(y): the least of ``x'A'y`` over the base, in float64."""
    if problem.kind == "gram":
        scale = _gram_scale(problem)
        return float((product(problem.data, y / scale) / scale).min())
    return problem.cone.least(transposed_product(problem.data, y))


def upper_bound(problem: FeasibilityProblem, x: np.ndarray) -> float:
    """phi_up(x) = ||A x||, in float64."""
    if problem.kind == "gram":
        return _norm(problem, x)
    image = product(problem.data, x)
    return math.sqrt(float(matmul(image, image)))


def rounding_of_lower_bound(problem: FeasibilityProblem, y: np.ndarray) -> float:
    """A bound on the rounding error of :func:`lower_bound`."""
    terms = problem.m + 8
    if problem.kind == "linear":
        return terms * _EPS * math.sqrt(float(matmul(y, y)))
    if problem.kind == "gram":
        # No entry of the Gram matrix of unit columns exceeds 1.
        return terms * _EPS * float(np.abs(y).sum())
    rows = np.sqrt(squared_norms(problem.data))
    return (terms + problem.n) * _EPS * float(matmul(np.abs(y), rows))


def _outside_base(problem: FeasibilityProblem, x: np.ndarray) -> list[str]:
    slack = 8 * _EPS * max(16.0, math.sqrt(problem.n))
    least, total = problem.cone.least(x), problem.cone.unit(x)
    reasons = []
    if not least >= -slack:
        reasons.append(f"x is outside the cone by {-least!r}")
    if not abs(total - 1) <= slack:
        reasons.append(f"<e, x> is {total!r}, not 1")
    return reasons


def _norm(problem: FeasibilityProblem, y: np.ndarray) -> float:
    if problem.kind != "gram":
        return math.sqrt(float(matmul(y, y)))
    scaled = y / _gram_scale(problem)
    return math.sqrt(max(float(matmul(scaled, product(problem.data, scaled))), 0.0))


def _rounding_of_squared_norm(problem: FeasibilityProblem, y: np.ndarray) -> float:
    """Coefficients that cancel leave a norm known to few digits only."""
    if problem.kind != "gram":
        return 0.0
    total = float(np.abs(y).sum())
    return (problem.n + 8) * _EPS * total * total


def _gram_scale(problem: FeasibilityProblem) -> np.ndarray:
    return np.ones(problem.n) if problem.scale is None else problem.scale
