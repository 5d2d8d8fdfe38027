"""scikit-learn's callbacks: the tasks that they see, the models that they get, and stopping."""

import numpy as np
import pytest

from marginbench import LinearPegasos, Progress

pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 brings callbacks")


class Recorder:
    """Keeps what it is told, and stops at the end of the third task within a fit."""

    max_propagation_depth = None

    def __init__(self):
        self.told, self.scores = [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.told.append(("begin", context.estimator_name, context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.told.append(("end", context.estimator_name, context.task_name))
        if isinstance(estimator, LinearPegasos):
            self.scores.append(fitted_estimator.score(X, y))
        return self.told.count(("end", context.estimator_name, "iterations")) == 3


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, X[:, 0] + 0.3 * rng.normal(size=300) > 0


# Of three classes only the first is told from the rest when the fit is stopped.
@pytest.mark.parametrize(("n_classes", "least"), [(2, 0.9), (3, 0.4)])
def test_a_callback_sees_tasks_and_stops_the_fit(points, n_classes, least):
    X, _ = points
    y = np.digitize(X[:, 0], [-0.5, 0.5])[: len(X)] if n_classes == 3 else X[:, 0] > 0
    recorder = Recorder()
    model = LinearPegasos(max_epochs=10**9).set_callbacks(recorder).fit(X, y)
    part, fit = ("LinearPegasos", "iterations"), ("LinearPegasos", "fit")
    inside = [("begin", *part), ("end", *part)]
    assert recorder.told == [
        *("setup", ("begin", *fit), *inside, *inside, *inside, *inside),
        *(("end", *fit), "teardown"),
    ]
    assert model.status_ == "stopped"
    # The end of the fit has the model that the fit leaves.
    assert recorder.scores[-1] == model.score(X, y)
    assert recorder.scores[-2] > least


def test_a_fit_with_a_monitor_or_without_callbacks_tells_nobody(points):
    recorder = Recorder()
    model = LinearPegasos(max_epochs=2).set_callbacks(recorder)
    model.fit(*points, monitor=Progress())
    model.set_callbacks().fit(*points)
    assert recorder.told == []
    with pytest.raises(TypeError, match="FitCallback"):
        model.set_callbacks(print)
