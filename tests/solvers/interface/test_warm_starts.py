"""A fit that continues an earlier one, and one that is interrupted or watched."""

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
from marginbench.solvers import Monitor

X, DIGITS = make_blobs(120, centers=4, cluster_std=4.0, random_state=0)
LABELS = {"two classes": DIGITS % 2, "four classes": DIGITS}
CONTINUED = [
    (Pegasos, {}),
    (Pegasos, {"strategy": "on_demand", "C": 3.0}),
    (Pegasos, {"tol": 1e-9}),
    (Perceptron, {"output": "averaged"}),
    (Perceptron, {"output": "voted", "strategy": "on_demand"}),
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
    parts = pickle.loads(pickle.dumps(parts)).set_params(max_epochs=3).fit(X, y)
    np.testing.assert_array_equal(parts.decision_function(X), whole.decision_function(X))
    assert parts.n_iter_ == whole.n_iter_
    # Nothing but what both have to look up beforehand is paid twice.
    spent = parts.counters_.evaluations + before.evaluations - whole.counters_.evaluations
    assert 0 <= spent <= len(X) * (len(whole.classes_) if len(whole.classes_) > 2 else 1)
    cold = parts.set_params(warm_start=False, max_epochs=5).fit(X, y)
    np.testing.assert_array_equal(cold.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [0.5, 1.0, 20.0])
def test_smo_goes_on_with_another_penalty(y, bias, C):
    settings = {"fit_intercept": bias, "tol": 1e-6, "dtype": "float64"}
    warm = SMO(C=1.0, warm_start=True, **settings).fit(X, y)
    first = warm.n_iter_
    warm.set_params(C=C).fit(X, y)
    cold = SMO(C=C, **settings).fit(X, y)
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-4)
    assert warm.status_ == "converged"
    if C == 1.0:
        assert warm.n_iter_ <= first / 20


def test_a_warm_start_from_something_else_is_refused():
    y = LABELS["two classes"]
    model = Pegasos(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="a fit of 120 points, 2 features and classes"):
        model.fit(X[1:], y[1:])
    model.fit(X, y)  # after a failure anew
    with pytest.raises(ValueError, match="with strategy='maintained', got 'on_demand'"):
        model.set_params(strategy="on_demand").fit(X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"tol=0\.1 cannot continue a fit with tol=0"):
        model.set_params(tol=0.1).fit(X, y)


@pytest.mark.posix
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (Pegasos(C=1e-3), LABELS["two classes"]),
        (LinearPegasos(), LABELS["four classes"]),
        (BSGD(budget=10), LABELS["two classes"]),
    ],
    ids=["Pegasos", "LinearPegasos", "BSGD"],
)
def test_ctrl_c_leaves_a_usable_model(model, y):
    usual = signal.getsignal(signal.SIGINT)
    model = clone(model).set_params(max_epochs=1).fit(X, y)  # compiles
    model.set_params(max_epochs=10**9)
    later = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    later.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    later.join()
    assert signal.getsignal(signal.SIGINT) is usual
    assert model.status_ == "stopped"
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
    assert capsys.readouterr().err == ""


def test_verbose_writes_lines_to_the_error_stream(capsys, monkeypatch):
    monkeypatch.setattr(Progress.__init__, "__defaults__", (None, 0.0))
    model = Pegasos(max_epochs=3, verbose=True).fit(X, LABELS["two classes"])
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"Pegasos: \d+ s, \d+ iterations, \S+ evaluations", line)
    # A monitor takes the place of the lines.
    model.fit(X, LABELS["two classes"], monitor=Monitor())
    assert capsys.readouterr().err == ""
