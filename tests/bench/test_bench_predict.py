"""Local timings of predictions, for each form of a model."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.predict import Predict
from marginbench.harness.evaluation.models import Evaluator, TaskPoints
from marginbench.solvers.kernels import kernel_of

_COMPARED = np.arange(0, 10_000, 50)


@pytest.mark.parametrize("model", Predict.params[0])
@pytest.mark.parametrize("storage", Predict.params[1])
def test_predict(benchmark, storage, model):
    suite = Predict()
    suite.setup(model, storage)
    estimator, Z = suite.model, suite.Z
    benchmark.group = f"predict, {storage}"

    labels = benchmark(estimator.predict, Z)

    scores = estimator.decision_function(Z)
    np.testing.assert_array_equal(labels, np.where(scores > 0, 1.0, -1.0))
    low, high = _score_bounds(estimator, suite.X, Z)
    noise = 1e-6 * (1 + np.abs(scores[_COMPARED]))
    assert np.all((scores[_COMPARED] >= low - noise) & (scores[_COMPARED] <= high + noise))
    benchmark.extra_info["points"] = Z.shape[0]
    if hasattr(estimator, "support_vectors_"):
        kept = estimator.support_vectors_.shape[0]
        assert 0 < kept <= suite.X.shape[0]
        benchmark.extra_info["support_vectors"] = kept


def _score_bounds(estimator, X, Z):
    """What float32 entries can make of the scores that the harness recomputes from the model."""
    described = {"name": "linear"}
    if "kernel" in estimator.get_params():
        described = {"name": estimator.kernel, "gamma": estimator.gamma}
    labels = np.ones(X.shape[0])
    evaluator = Evaluator(
        TaskPoints(kernel_of(described), X, Z),
        C=estimator.C,
        fit_intercept=False,
        y_train=labels,
        y_test=np.ones(Z.shape[0]),
        dual_certificate=False,
    )
    return evaluator.score_bounds(estimator.model_, _COMPARED)
