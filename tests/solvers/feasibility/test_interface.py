"""Methods as objects: no estimators without fit, and warnings where a limit ends a run."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from marginbench.data_loaders import lap, ldfp
from marginbench.solvers import (
    ISNKPVN,
    ISPVN,
    KPCT,
    KVN,
    MPKFP,
    MPLFP,
    PCT,
    SNKP,
    SPVN,
    VN,
    FeasibilityProblem,
    check_certificate,
)

KERNEL = [MPKFP, KPCT, KVN, SNKP, ISNKPVN]


FAR = ldfp(30, 300, seed=0).A


@pytest.mark.parametrize(
    ("method", "A", "limits", "limit", "message"),
    [
        (MPLFP(max_iter=3), FAR, {}, "max_iter=3", "max_iter=3 iterations are done"),
        (PCT(), FAR, {"max_seconds": 1e-9}, "max_seconds=1e-09", "max_seconds=1e-09 are over"),
        (
            ISPVN(max_inner=2),
            FAR,
            {},
            "max_inner=2",
            "a round did not divide ||A x|| by 2.0 in max_inner=2 iterations",
        ),
        (ISPVN(max_rounds=1), lap(10, 15).A, {}, "max_rounds=1", "max_rounds=1 rounds are done"),
        (ISPVN(max_iter=4), FAR, {}, "max_iter=4", "max_iter=4 iterations are done"),
        (SPVN(max_iter=3, stop="gap"), FAR, {}, "max_iter=3", "max_iter=3 iterations are done"),
    ],
)
def test_a_limit_without_an_answer_is_a_warning(method, A, limits, limit, message):
    with pytest.warns(ConvergenceWarning) as caught:
        result = method.solve(A, **limits)
    (warning,) = caught
    low, up = result.margin_bounds
    assert str(warning.message) == (
        f"{type(method).__name__} ended at {limit} before it converged: "
        f"the margin is between {low:.3g} and {up:.3g}, tol=0.0001"
    )
    assert warning.filename == __file__
    assert (result.limit, result.message, result.converged) == (limit, message, False)
    assert f"no verdict: the margin is between {low:.3g} and {up:.3g}" in str(result)
    assert check_certificate(FeasibilityProblem.linear(A), result).valid


@pytest.mark.parametrize("method", KERNEL)
def test_a_fit_at_its_limit_is_a_warning_too(method):
    A = FAR
    y = np.where(np.arange(300) % 2, 1, -1)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 before it converged: the margin"):
        solver = method("linear", max_iter=2).fit((A * y).T, y)
    assert (solver.status_, solver.result_.limit) == ("budget", "max_iter=2")
    with pytest.warns(ConvergenceWarning, match="max_iter=2 before it converged: the margin") as w:
        method(max_iter=2).solve(A.T @ A)
    assert w[0].filename == __file__
    if method is ISNKPVN:
        with pytest.warns(ConvergenceWarning, match="ended at max_inner=1 before"):
            method("linear", max_inner=1).fit((A * y).T, y)


def test_a_limit_of_no_seconds_is_refused():
    with pytest.raises(ValueError, match="max_seconds must be a number > 0, got 0"):
        PCT().solve(FAR, max_seconds=0)


def test_an_answer_at_a_limit_is_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Proven, though ||A x|| is above tol; nothing but the limit ends the second.
        result = VN(max_iter=6, tol=1e-9).solve(lap(5, 60, seed=2).A)
        MPLFP(max_iter=3, tol=0.0, stop="gap").solve(lap(5, 60, seed=2).A)
    assert (result.status, result.converged, result.limit) == ("inseparable", False, "max_iter=6")
