"""OneDAL: its model is that of scikit-learn-intelex, and without it the rest goes on."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from marginbench.harness.planning.solvers import listed_solvers
from marginbench.harness.planning.svm import KIND
from marginbench.solvers import SMO, OneDAL, registry
from marginbench.solvers.registration import missing_package


class StandIn(SVC):
    """What scikit-learn-intelex makes of scikit-learn's SVC, as far as the interface goes."""

    def __init__(self, n_jobs=None, **params):
        super().__init__(**params)
        self.n_jobs = n_jobs
        StandIn.made.append(self)

    def fit(self, X, y):
        self.given = X
        return super().fit(X, y)

    made = []  # noqa: RUF012


@pytest.fixture
def stand_in(monkeypatch):
    """scikit-learn's SVC in place of that of scikit-learn-intelex; those that were made."""
    package, module = ModuleType("sklearnex"), ModuleType("sklearnex.svm")
    module.SVC = StandIn
    package.svm = module
    monkeypatch.setitem(sys.modules, "sklearnex", package)
    monkeypatch.setitem(sys.modules, "sklearnex.svm", module)
    monkeypatch.setattr(StandIn, "made", [])
    return StandIn.made


@pytest.fixture
def absent(monkeypatch):
    """An environment without the package."""
    version = metadata.version

    def without(name):
        if name == OneDAL.requires:
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    for name in [*sys.modules]:
        # An earlier test may have imported it.
        if name.startswith("sklearnex."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "sklearnex", None)


KERNELS = [
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
]


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("params", KERNELS, ids=lambda params: params["kernel"])
def test_the_problem_is_handed_over_and_the_model_taken_back(stand_in, rbf_task, params, storage):
    X, y = storage(rbf_task.X), rbf_task.y
    solver = OneDAL(**params, C=2.0, tol=1e-4, dtype="float32").fit(X, y)
    [svc] = stand_in
    assert svc.given.dtype == np.float32
    assert {name: getattr(svc, name) for name in params} == params
    assert (svc.C, svc.tol, svc.n_jobs >= 1) == (2.0, 1e-4, True)
    order = np.argsort(svc.support_)
    np.testing.assert_array_equal(solver.support_, svc.support_[order])
    found = svc.dual_coef_.toarray() if sparse.issparse(svc.dual_coef_) else svc.dual_coef_
    np.testing.assert_array_equal(solver.dual_coef_[0], found[0][order])
    assert solver.intercept_[0] == svc.intercept_[0]
    assert solver.counters_ is None
    assert solver.status_ == "converged"


def test_other_kernels_are_refused(stand_in, rbf_task):
    for kernel in ("laplacian", "precomputed"):
        with pytest.raises(ValueError, match=f"OneDAL has no kernel '{kernel}'"):
            OneDAL(kernel).fit(rbf_task.K, rbf_task.y)


def test_without_its_package_a_fit_says_what_to_install(absent, rbf_task):
    with pytest.raises(ImportError, match=r"scikit-learn-intelex.*pip install .*\[peers\]") as told:
        OneDAL().fit(rbf_task.X, rbf_task.y)
    assert "\n" not in str(told.value)


def test_without_its_package_the_lists_go_on(absent):
    assert missing_package(OneDAL) == "scikit-learn-intelex"
    assert "OneDAL" not in registry()
    assert "OneDAL" in registry(missing=True)
    [listed] = [item for item in listed_solvers()[0] if item.name == "OneDAL"]
    assert listed.summary.endswith("Needs scikit-learn-intelex, which is not installed.")
    assert "pip install" in KIND.traits(OneDAL, "OneDAL")["missing"]


def test_the_version_of_its_package_is_a_trait(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: f"1 of {name}")
    assert "OneDAL" in registry()
    traits = KIND.traits(OneDAL, "OneDAL")
    assert traits["packages"] == {"scikit-learn-intelex": "1 of scikit-learn-intelex"}
    assert "missing" not in traits
    assert json.dumps(traits)


@pytest.mark.skipif(bool(missing_package(OneDAL)), reason="scikit-learn-intelex is not installed")
@pytest.mark.parametrize(("dtype", "rel"), [("float32", 1e-3), ("float64", 1e-5)])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("params", KERNELS, ids=lambda params: params["kernel"])
def test_the_objective_is_smos(rbf_task, params, storage, dtype, rel):
    task = rbf_task
    values = []
    for solver in (
        OneDAL(**params, dtype=dtype, tol=1e-5),
        SMO(**params, fit_intercept=True, tol=1e-8, dtype="float64"),
    ):
        model = solver.fit(storage(task.X), task.y).model_
        hinge = np.maximum(0, 1 - task.y * solver.decision_function(task.X)).sum()
        values.append(0.5 * model.squared_norm() + hinge)
    assert values[0] == pytest.approx(values[1], rel=rel)
