"""Peers through this interface are the other libraries' solvers, no more and no less."""

import json
import math
import sys
from importlib import metadata
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC

from marginbench.harness.planning.svm import KIND
from marginbench.solvers import (
    LIBLINEAR,
    LIBSVM,
    SMO,
    LIBLINEAROfficial,
    LIBSVMSubsample,
    OneDAL,
    SklearnSGD,
    registry,
)
from marginbench.solvers.numeric.matrices import as_dense
from marginbench.solvers.registration import missing_package

storages = pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
KERNELS = [
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
]
kernels = pytest.mark.parametrize("params", KERNELS, ids=lambda params: params["kernel"])


@pytest.fixture
def absent(monkeypatch):
    """An environment without the packages of peers."""
    version = metadata.version

    def without(name):
        if name in (OneDAL.requires, LIBLINEAROfficial.requires):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    for name in [*sys.modules, "sklearnex", "liblinear"]:
        # An earlier test may have imported it.
        if name.partition(".")[0] in ("liblinear", "sklearnex"):
            monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("peer", [OneDAL, LIBLINEAROfficial])
def test_without_its_package_a_fit_says_what_to_install(absent, linear_task, command, peer):
    with pytest.raises(ImportError, match=rf"{peer.requires}.*pip install .*\[peers\]") as told:
        peer().fit(linear_task.X, linear_task.y)
    assert "\n" not in str(told.value)
    name = peer.__name__
    assert missing_package(peer) == peer.requires
    assert name not in registry()
    assert name in registry(missing=True)
    _, output, _ = command("solvers", "--json")
    [listed] = [item for item in json.loads(output) if item["name"] == name]
    assert listed["summary"].endswith(f"Needs {peer.requires}, which is not installed.")
    assert "pip install" in KIND.traits(peer, name)["missing"]


@pytest.fixture
def stand_in(monkeypatch):
    """scikit-learn's SVC in place of that of scikit-learn-intelex; how many jobs it is to use."""
    n_jobs_asked = []

    def make(n_jobs, **params):
        n_jobs_asked.append(n_jobs)
        return SVC(**params, random_state=0)

    monkeypatch.setitem(sys.modules, "sklearnex", ModuleType("sklearnex"))
    monkeypatch.setitem(sys.modules, "sklearnex.svm", SimpleNamespace(SVC=make))
    return n_jobs_asked


@storages
@kernels
@pytest.mark.parametrize("peer", [LIBSVM, OneDAL])
def test_model_is_svcs_and_the_global_random_state_is_left_alone(
    stand_in, rbf_task, peer, params, storage
):
    X, y, params = storage(rbf_task.X), rbf_task.y, {**params, "C": 10.0, "tol": 1e-4}
    before = np.random.get_state()  # noqa: NPY002
    ours = peer(**params, dtype="float32").fit(X, y)
    after = np.random.get_state()  # noqa: NPY002
    assert before[2] == after[2]
    np.testing.assert_array_equal(before[1], after[1])
    if peer is OneDAL:
        assert stand_in[0] >= 1
        X = X.astype(np.float32)  # all that oneDAL computes is of this type
    theirs = SVC(**params, cache_size=200).fit(X, y)
    order = np.argsort(theirs.support_)
    np.testing.assert_array_equal(ours.support_, theirs.support_[order])
    np.testing.assert_array_equal(ours.dual_coef_[0], as_dense(theirs.dual_coef_)[0][order])
    assert ours.intercept_[0] == theirs.intercept_[0]
    assert (ours.n_iter_, ours.status_) == (theirs.n_iter_[0], "converged")
    atol = 1e-6 * np.abs(ours.dual_coef_).sum()
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=atol)


@pytest.mark.parametrize(
    ("peer", "limit"),
    [(LIBSVM, "max_iter"), (LIBLINEAR, "max_epochs"), (SklearnSGD, "max_epochs")]
    + [(OneDAL, "max_iter")],
)
def test_a_peer_counts_nothing_and_its_limit_ends_it(
    stand_in, linear_task, recording_monitor, peer, limit
):
    monitor = recording_monitor()
    limited = peer(**{limit: 2}).fit(linear_task.X, linear_task.y)
    assert limited.n_iter_ == 2 * (linear_task.n if peer is SklearnSGD else 1)
    solver = peer().fit(linear_task.X, linear_task.y, monitor=monitor)
    # SGD's rule for an end is only there if it is asked for.
    ends = ["budget", "budget" if peer is SklearnSGD else "converged"]
    assert [limited.status_, solver.status_] == ends
    assert peer.deterministic == (peer in (LIBSVM, OneDAL))
    assert solver.counters_ is None
    assert monitor.counters is None
    assert monitor.calls == ["start", "finish"]
    assert monitor.final == (solver.n_iter_, solver.model_)
    assert not any(kind.instrumented for kind in (peer, LIBLINEAROfficial))


@storages
@pytest.mark.parametrize("n_samples", [40, 0.33, 1.0])
def test_the_model_is_that_of_the_drawn_points(rbf_task, n_samples, storage):
    task = rbf_task
    X = storage(task.X)
    m = n_samples if n_samples > 1 else math.ceil(n_samples * task.n)
    solver = LIBSVMSubsample(gamma=0.5, C=2.0, n_samples=n_samples, random_state=3).fit(X, task.y)
    drawn = np.sort(np.random.default_rng(3).permutation(task.n)[:m])
    np.testing.assert_array_equal(solver.samples_, drawn)
    alone = LIBSVM(gamma=0.5, C=2.0).fit(X[drawn], task.y[drawn])
    np.testing.assert_array_equal(solver.support_, drawn[alone.support_])
    np.testing.assert_array_equal(solver.dual_coef_, alone.dual_coef_)
    assert solver.intercept_[0] == alone.intercept_[0]
    assert (solver.n_iter_, solver.status_) == (alone.n_iter_, "converged")
    np.testing.assert_allclose(solver.decision_function(X), alone.decision_function(X), rtol=1e-6)


def test_points_of_one_class_predict_it():
    X = np.arange(200.0)[:, None]
    y = np.where(np.arange(200) == 7, 1, -1)
    solver = LIBSVMSubsample(n_samples=2, random_state=0).fit(X, y)
    assert 7 not in solver.samples_
    np.testing.assert_array_equal(solver.predict(X), -1)
    assert (len(solver.support_), solver.n_iter_, solver.deterministic) == (0, 0, False)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (LIBSVM(fit_intercept=False), "LIBSVM always fits a bias: set fit_intercept=True"),
        (LIBSVM(max_iter=0), "max_iter must be .*0"),
        (OneDAL(np.dot), "OneDAL .*callable"),
        *(
            (LIBSVMSubsample(n_samples=size), f"n_samples must be .*{size}")
            for size in (1, True, 0.0, 1.5, math.nan, "all")
        ),
        *(
            (OneDAL(kernel), f"OneDAL has no kernel '{kernel}'")
            for kernel in ("laplacian", "precomputed")
        ),
    ],
)
def test_what_a_peer_does_not_take_is_refused(rbf_task, solver, message):
    with pytest.raises(ValueError, match=message):
        solver.fit(rbf_task.K, rbf_task.y)


@storages
def test_model_is_linear_svcs(linear_task, storage):
    X, y = storage(linear_task.X), linear_task.y
    ours = LIBLINEAR(C=0.1, tol=1e-2, max_epochs=5000, random_state=3).fit(X, y)
    seed = int(np.random.default_rng(3).integers(2**31))
    theirs = LinearSVC(
        C=0.1, loss="hinge", fit_intercept=False, tol=1e-2, max_iter=5000, random_state=seed
    ).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    assert 0 < ours.n_iter_ == theirs.n_iter_ < 5000
    assert ours.status_ == "converged"


@pytest.mark.parametrize("class_weight", [None, {-1: 0.3, 1: 2.0}])
@pytest.mark.parametrize(
    ("solver", "tolerance"),
    [
        (LIBLINEAR(C=0.5, tol=1e-8, max_epochs=10_000), 1e-7),
        (SklearnSGD(C=0.02, average=True, min_improvement=0.0, max_epochs=200), 0.02),
    ],
)
def test_it_approaches_the_optimum_of_c_and_the_weights(
    linear_task, solve_dual, solver, tolerance, class_weight
):
    task, weights = linear_task, np.random.default_rng(0).uniform(0.1, 2.0, linear_task.n)
    solver.set_params(class_weight=class_weight, random_state=0)
    w = solver.fit(task.X, task.y, sample_weight=weights).coef_[0]
    factors = weights * (1.0 if class_weight is None else np.where(task.y > 0, 2.0, 0.3))
    best = solve_dual(task.Q, task.y, solver.C * factors).value
    value = 0.5 * w @ w + solver.C * factors @ np.maximum(0, 1 - task.y * (task.X @ w))
    assert best * (1 - 1e-9) <= value <= best * (1 + tolerance)


needs_package = pytest.mark.skipif(
    bool(missing_package(LIBLINEAROfficial)), reason="liblinear-official is not installed"
)


@needs_package
@storages
@pytest.mark.parametrize("sign", [1, -1])
def test_the_official_library_reaches_the_optimum_by_its_seed_and_prints_nothing(
    linear_task, optimum, storage, sign, capfd
):
    # With the other sign the other class comes first, and LIBLINEAR's w points to that.
    task = linear_task
    X, y = storage(task.X), sign * task.y
    ours = LIBLINEAROfficial(C=0.1, tol=1e-6, random_state=0).fit(X, y)
    assert ours.status_ == "converged"
    w = sign * ours.coef_[0]
    value = 0.5 * w @ w + 0.1 * np.maximum(0.0, 1.0 - task.y * (task.X @ w)).sum()
    assert value == pytest.approx(optimum(task, 0.1).value, rel=1e-5)
    assert ours.counters_ is None
    fits = [LIBLINEAROfficial(tol=1e-1, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()
    assert capfd.readouterr() == ("", "")


@needs_package
def test_its_own_limit_ends_the_run_and_is_told(linear_task):
    with pytest.warns(UserWarning, match="LIBLINEAROfficial ended"):
        solver = LIBLINEAROfficial(C=1e4, tol=1e-12).fit(linear_task.X, linear_task.y)
    assert solver.status_ == "budget"
    assert solver.n_iter_ > 1


def test_the_version_of_its_package_is_a_trait(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: f"1 of {name}")
    assert "OneDAL" in registry()
    traits = json.loads(json.dumps(KIND.traits(OneDAL, "OneDAL")))
    assert traits["packages"] == {"scikit-learn-intelex": "1 of scikit-learn-intelex"}
    assert "missing" not in traits


@pytest.mark.skipif(bool(missing_package(OneDAL)), reason="scikit-learn-intelex is not installed")
@pytest.mark.parametrize(("dtype", "rel"), [("float32", 1e-3), ("float64", 1e-5)])
@storages
@kernels
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


@storages
@pytest.mark.parametrize(("average", "bias"), [({}, True), (True, False), (True, True)])
def test_the_model_is_sgd_classifiers(linear_task, storage, average, bias):
    X, y = storage(linear_task.X), linear_task.y
    common = {"fit_intercept": bias} | (average and {"average": average})
    ours = SklearnSGD(C=0.1, min_improvement=1e-3, max_epochs=1000, random_state=3, **common)
    seed = int(np.random.default_rng(3).integers(2**31))
    theirs = SGDClassifier(alpha=1 / (len(y) * 0.1), random_state=seed, **common).fit(X, y)
    np.testing.assert_array_equal(ours.fit(X, y).coef_, theirs.coef_)
    np.testing.assert_array_equal(ours.intercept_, theirs.intercept_)
    assert (ours.intercept_[0] != 0) == bias
    assert ours.n_iter_ == theirs.n_iter_ * len(y)
    assert ours.status_ == "converged"
