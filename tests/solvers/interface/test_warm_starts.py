"""A fit that continues an earlier one, and one that is interrupted or watched."""

import copy
import os
import pickle
import re
import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs

from marginbench import BSCA, BSGD, SGD, SMO, LinearPegasos, Pegasos, Perceptron, Progress
from marginbench.solvers import Monitor, OneVsRest

X, DIGITS = make_blobs(120, centers=4, cluster_std=4.0, random_state=0)
LABELS = {"two classes": DIGITS % 2, "four classes": DIGITS}
CONTINUED = [
    (Pegasos, {}),
    (Pegasos, {"C": 3.0}),
    (Perceptron, {"output": "voted"}),
    (SGD, {}),
    (LinearPegasos, {"batch_size": 7}),
    (LinearPegasos, {"output": "averaged"}),
    (BSGD, {"budget": 10}),
    (BSGD, {"budget": 10, "maintenance": "project"}),
    (BSCA, {"budget": 10, "order": "iid", "pairing": "label"}),
]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize(("cls", "parameters"), CONTINUED)
def test_two_and_three_epochs_are_five(cls, parameters, y):
    whole = cls(max_epochs=5, random_state=0, **parameters).fit(X, y)
    parts = cls(max_epochs=2, random_state=0, warm_start=True, **parameters).fit(X, y)
    before = parts.counters_
    parts = pickle.loads(pickle.dumps(parts)).set_params(max_epochs=3)
    twin, duals = copy.copy(parts), getattr(parts, "alpha_", np.zeros(0))
    kept = duals.copy()
    # Two that continue a fit share nothing.
    for each in (twin, parts):
        scores = each.fit(X, y).decision_function(X)
        np.testing.assert_array_equal(scores, whole.decision_function(X))
        np.testing.assert_array_equal(duals, kept)
    assert parts.n_iter_ == whole.n_iter_
    # Nothing but what both have to look up beforehand is paid twice.
    spent = parts.counters_.evaluations + before.evaluations - whole.counters_.evaluations
    assert 0 <= spent <= len(X) * (len(whole.classes_) if len(whole.classes_) > 2 else 1)
    cold = parts.set_params(warm_start=False, max_epochs=5).fit(X, y)
    np.testing.assert_array_equal(cold.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("bias", [False, True])
def test_smo_goes_on_with_another_penalty(y, bias):
    settings = {"fit_intercept": bias, "tol": 1e-6, "dtype": "float64"}
    for C in (0.5, 1.0, 5.0):
        warm = SMO(C=1.0, warm_start=True, **settings).fit(X, y)
        first = warm.n_iter_
        warm.set_params(C=C).fit(X, y)
        cold = SMO(C=C, **settings).fit(X, y)
        np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-4)
        assert warm.status_ == "converged"
        assert C != 1.0 or warm.n_iter_ <= first / 20


@pytest.mark.parametrize("solver", [SMO(fit_intercept=True), Perceptron(), BSCA(budget=10)])
def test_a_warm_start_from_something_else_is_refused(solver):
    y = LABELS["two classes"]
    model = clone(solver).set_params(warm_start=True).fit(X, y)
    other = y.copy()
    other[:3] = 1 - other[:3]
    for points, labels in ((X[1:], y[1:]), (X[::-1], y[::-1]), (X, other)):
        with pytest.raises(ValueError, match="the points, labels or weights are others"):
            model.fit(points, labels)
    if isinstance(model, SMO):
        with pytest.raises(ValueError, match="the points, labels or weights are others"):
            model.fit(X, y, sample_weight=1.0 + y)


def test_parameters_that_a_warm_start_cannot_change_are_named():
    y = LABELS["two classes"]
    model = Pegasos(max_epochs=2, warm_start=True, random_state=0).fit(X, y)
    for changed in ({"gamma": 0.3}, {"C": 3.0}):
        before = {name: getattr(model, name) for name in changed}
        with pytest.raises(ValueError, match=f"continues a fit with {next(iter(changed))}="):
            model.set_params(**changed).fit(X, y)
        model.set_params(**before)
    budgeted = BSGD(budget=10, max_epochs=1, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"continues a fit with C=1\.0, got 3\.0"):
        budgeted.set_params(C=3.0).fit(X, y)
    # What was refused has changed nothing.
    whole = Pegasos(max_epochs=4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).decision_function(X), whole.decision_function(X))


@pytest.mark.posix
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (Pegasos(C=1e-3), LABELS["two classes"]),
        (LinearPegasos(), LABELS["four classes"]),
        (OneVsRest(Pegasos(), stages=(5, 10**9)), LABELS["two classes"]),
        (OneVsRest(Pegasos(), stages=(5,)), LABELS["four classes"]),
    ],
    ids=["Pegasos", "LinearPegasos", "stages", "stages of four"],
)
def test_ctrl_c_leaves_a_usable_model(model, y):
    usual = signal.getsignal(signal.SIGINT)
    epochs = "estimator__max_epochs" if isinstance(model, OneVsRest) else "max_epochs"
    model = clone(model).set_params(**{epochs: 1}).fit(X, y)  # compiles
    model.set_params(**{epochs: 10**9})
    later = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    later.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    later.join()
    assert signal.getsignal(signal.SIGINT) is usual
    assert getattr(model, "estimator_", model).status_ == "stopped"
    assert model.n_iter_ > 0
    assert model.predict(X).shape == y.shape


def test_a_callback_is_called_at_intervals_and_can_stop(capsys):
    seen = []

    def look(n_iter, build):
        seen.append((n_iter, build().n_support, watch.counters.kernel_evals, watch.seconds))
        return n_iter > 1000

    watch = Progress(look, every=0.0)
    model = Pegasos(max_epochs=10**9).fit(X, LABELS["two classes"], monitor=watch)
    assert model.status_ == "stopped"
    assert seen[-1][0] == model.n_iter_ > 1000
    assert seen == sorted(seen)
    # None is due in a run that is shorter than the interval.
    Pegasos(max_epochs=2).fit(X, LABELS["two classes"], monitor=Progress(look, every=60.0))
    assert seen[-1][0] == model.n_iter_
    assert capsys.readouterr().err == ""


def test_verbose_writes_lines_to_the_error_stream(capsys, monkeypatch):
    monkeypatch.setattr(Progress.__init__, "__defaults__", (None, 0.0))
    model = Pegasos(max_epochs=3, verbose=True).fit(X, LABELS["two classes"])
    out, err = capsys.readouterr()
    assert out == ""
    line = r"Pegasos: \d+ s, \d+ iterations, \S+ evaluations\n"
    assert re.fullmatch(f"({line})+", err)
    # A monitor takes the place of the lines.
    model.fit(X, LABELS["two classes"], monitor=Monitor())
    assert capsys.readouterr().err == ""
