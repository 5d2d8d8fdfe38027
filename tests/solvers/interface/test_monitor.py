"""The protocol between a fit and whoever watches it."""

import numpy as np
import pytest

from marginbench.solvers import registry

INSTRUMENTED = [name for name, solver in registry().items() if solver.instrumented]
#: What is tried of each solver besides its defaults.
EXTRAS = [
    ("SMO", {"working_set": "textbook"}),
    ("SMO", {"working_set": "large", "fit_intercept": True}),
    ("SBP", {"fit_intercept": True}),
    ("Perceptron", {"output": "averaged"}),
    ("BatchPerceptron", {"target_margin": 1.0}),
    ("BSCA", {"budget": 20, "order": "iid", "maintenance": "project"}),
    ("BSCA", {"budget": 20, "maintenance": "merge"}),
    ("BSGD", {"budget": 20, "maintenance": "remove"}),
    ("LinearPegasos", {"batch_size": 7, "output": "averaged"}),
    ("MPKFP", {"gram_size": 0.0}),
    ("BundleClassifier", {"inner": "line_search", "fit_intercept": True}),
    ("Falkon", {"n_components": 20}),
    ("EigenPro", {"max_batch_size": 10}),
    ("CuttingPlane", {"oracle": "linear", "n_samples": 20}),
    ("CuttingPlane", {"oracle": "constant", "n_samples": 20}),
]
#: With their defaults these are done at once, or do not end soon.
ONLY_SO = {"SMO", "BSCA", "BatchPerceptron", "Falkon", "EigenPro"}
VARIANTS = [
    pytest.param(name, extra, id="-".join([name, *map(str, extra.values())]))
    for name, extra in [*((name, {}) for name in INSTRUMENTED if name not in ONLY_SO), *EXTRAS]
]
#: Their iterations are planes, cuts or whole epochs, each with the work of many steps.
PLANES = ("BundleClassifier", "OCAS", "CuttingPlane")
FEW = (*PLANES, "LowRankSVM", "Nystrom", "RandomFourierFeatures")
FEASIBILITY = ("MPKFP", "KPCT", "KVN", "SNKP", "ISNKPVN")


# Three iterations are enough here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def make(name, task, **extra):
    solver = registry()[name](**extra)
    params = {**task.params, "dtype": "float64", "max_epochs": 3, "tol": 1e-8, "random_state": 0}
    params["max_iter"] = 3 if name in PLANES else 60 if name in FEASIBILITY else 3 * len(task.y)
    return solver.set_params(**{k: v for k, v in params.items() if k in solver.get_params()})


def assert_same_model(model, expected):
    assert type(model) is type(expected)
    found, wanted = model.attributes(), expected.attributes()
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize(("name", "extra"), VARIANTS)
def test_watching_changes_nothing_and_can_stop(rbf_task, name, extra, recording_monitor):
    task = rbf_task
    alone = make(name, task, **extra).fit(task.X, task.y)
    for every in (10 * task.n, 0):
        monitor = recording_monitor(every=every)
        solver = make(name, task, **extra).fit(task.X, task.y, monitor=monitor)
        assert_same_model(solver.model_, alone.model_)
        assert solver.n_iter_ == alone.n_iter_
        assert solver.status_ == alone.status_
        assert solver.counters_ == alone.counters_

        assert monitor.calls[0] == "start"
        assert monitor.calls[-1] == "finish"
        assert set(monitor.calls[1:-1]) == {"record"}
        assert monitor.counters is solver.counters_
        assert monitor.evals_at_start == 0
        assert (np.diff(monitor.evals_asked) >= 0).all()
        assert monitor.evals_asked[-1] <= solver.counters_.evaluations
        assert (np.diff(monitor.iterations) > 0).all()
        assert monitor.iterations[0] >= 1
        assert monitor.iterations[-1] <= solver.n_iter_
        assert (np.diff(monitor.evals) >= every).all()
        assert monitor.final[0] == solver.n_iter_
        assert monitor.final[1] is solver.model_
        # The snapshot still works after the run.
        assert_same_model(monitor.last_snapshot(), solver.model_)
    whole = monitor

    few = name in FEW or extra.get("working_set") == "large"
    for checkpoints in (2,) if few else (1, 17):
        monitor = recording_monitor(stop_after=checkpoints)
        solver = make(name, task, **extra).fit(task.X, task.y, monitor=monitor)
        assert solver.status_ == "stopped"
        assert monitor.calls == ["start"] + ["record"] * checkpoints + ["finish"]
        assert solver.n_iter_ == monitor.iterations[-1]
        assert solver.counters_.evaluations == monitor.evals[-1]
        # Stopped at a checkpoint: the model is the one that was seen there, and later steps of
        # the whole run did not change what it had seen at this checkpoint.
        seen = monitor.snapshots[-1], monitor.last_snapshot(), whole.snapshots[checkpoints - 1]
        for model in seen:
            assert_same_model(model, solver.model_)
