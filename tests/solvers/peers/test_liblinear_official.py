"""LIBLINEAROfficial: its model is that of the package, and without it the rest goes on."""

from __future__ import annotations

import sys
from importlib import metadata

import numpy as np
import pytest
from scipy import sparse

from marginbench.solvers import LIBLINEAR, LIBLINEAROfficial, registry
from marginbench.solvers.registration import missing_package

needs_package = pytest.mark.skipif(
    bool(missing_package(LIBLINEAROfficial)), reason="liblinear-official is not installed"
)


def objective(task, w, C):
    return 0.5 * w @ w + C * np.maximum(0.0, 1.0 - task.y * (task.X @ w)).sum()


@needs_package
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_objective_is_that_of_scikit_learns_copy(linear_task, storage, sign):
    # With the other sign the other class comes first, and LIBLINEAR's w points to that.
    X, y = storage(linear_task.X), sign * linear_task.y
    ours = LIBLINEAROfficial(C=0.1, tol=1e-6, random_state=0).fit(X, y)
    theirs = LIBLINEAR(C=0.1, tol=1e-8, max_epochs=20_000, random_state=0).fit(X, y)
    assert ours.status_ == "converged"
    values = [objective(linear_task, sign * solver.coef_[0], 0.1) for solver in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert ours.counters_ is None


@needs_package
def test_the_seed_decides_the_order(linear_task):
    fits = [
        LIBLINEAROfficial(tol=1e-1, random_state=seed).fit(linear_task.X, linear_task.y).coef_
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()


@needs_package
def test_its_own_limit_ends_the_run_and_is_told(linear_task):
    with pytest.warns(UserWarning, match="LIBLINEAROfficial ended"):
        solver = LIBLINEAROfficial(C=1e4, tol=1e-12).fit(linear_task.X, linear_task.y)
    assert solver.status_ == "budget"
    assert solver.n_iter_ > 1


@needs_package
def test_it_prints_nothing(linear_task, capfd):
    LIBLINEAROfficial().fit(linear_task.X, linear_task.y)
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def absent(monkeypatch):
    """An environment without the package."""
    version = metadata.version

    def without(name):
        if name == LIBLINEAROfficial.requires:
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    monkeypatch.setitem(sys.modules, "liblinear", None)


def test_without_its_package_a_fit_says_what_to_install(absent, linear_task):
    with pytest.raises(ImportError, match=r"liblinear-official.*pip install .*\[peers\]") as told:
        LIBLINEAROfficial().fit(linear_task.X, linear_task.y)
    assert "\n" not in str(told.value)
    assert "LIBLINEAROfficial" not in registry()
    assert "LIBLINEAROfficial" in registry(missing=True)
