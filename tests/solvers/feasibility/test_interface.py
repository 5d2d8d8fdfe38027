"""Methods as objects: no estimators without fit, and warnings where a limit ends a run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from marginbench.data_loaders import lap, ldfp
from marginbench.solvers import (
    ISNKPVN,
    ISPVN,
    KPCT,
    KVN,
    MPCFP,
    MPKFP,
    MPLFP,
    PCT,
    SNKP,
    SPCT,
    SPVN,
    VN,
)

COLUMNS = [MPLFP, SPCT, PCT, VN, ISPVN, SPVN]
KERNEL = [MPKFP, KPCT, KVN, SNKP, ISNKPVN]


@pytest.mark.parametrize(
    ("method", "limits", "limit"),
    [
        (MPLFP(max_iter=3), {}, "max_iter=3"),
        (PCT(), {"max_seconds": 1e-9}, "max_seconds=1e-09"),
        (ISPVN(max_inner=2), {}, "max_inner=2"),
        (SPVN(max_iter=3, stop="gap"), {}, "max_iter=3"),
    ],
)
def test_a_limit_without_an_answer_is_a_warning(method, limits, limit):
    with pytest.warns(ConvergenceWarning) as caught:
        result = method.solve(ldfp(30, 300, seed=0).A, **limits)
    (warning,) = caught
    low, up = result.margin_bounds
    assert str(warning.message) == (
        f"{type(method).__name__} ended at {limit} before it converged: "
        f"the margin is between {low:.3g} and {up:.3g}, tol=0.0001"
    )
    assert warning.filename == __file__
    assert f"no verdict: the margin is between 0 and {up:.3g}" in str(result)


@pytest.mark.parametrize("method", KERNEL)
def test_a_fit_at_its_limit_is_a_warning_too(method):
    A = ldfp(30, 300, seed=0).A
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


def test_an_answer_at_a_limit_is_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Proven, though ||A x|| is above tol; nothing but the limit ends the second.
        result = VN(max_iter=6, tol=1e-9).solve(lap(5, 60, seed=2).A)
        MPLFP(max_iter=3, tol=0.0, stop="gap").solve(lap(5, 60, seed=2).A)
    assert (result.status, result.converged, result.limit) == ("inseparable", False, "max_iter=6")


@pytest.mark.parametrize("cls", [*COLUMNS, MPCFP])
def test_methods_without_fit_have_parameters_as_estimators_have(cls):
    method = cls(tol=1e-3, history=2)
    assert isinstance(method, BaseEstimator)
    assert not hasattr(method, "fit")
    copy = clone(method)
    assert copy is not method
    assert copy.get_params() == method.get_params()
    assert copy.set_params(tol=0.5, max_iter=7) is copy
    assert (copy.tol, copy.max_iter, method.tol) == (0.5, 7, 1e-3)
    with pytest.raises(ValueError, match="Invalid parameter 'C'"):
        copy.set_params(C=1.0)
