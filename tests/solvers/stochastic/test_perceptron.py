"""The perceptron against its literal definition."""

import numpy as np
import pytest

from marginbench.solvers import Perceptron
from marginbench.solvers.models import voting


def twin(K, y, epochs, seed):
    """Freund and Schapire's pseudo-code: every predictor and its votes, one for being made.

    Visits in a fresh permutation per pass, until one is without mistakes.
    """
    n, rng = len(y), np.random.default_rng(seed)
    predictors, votes, visits, status = [np.zeros(n)], [0], 0, "budget"
    while status == "budget" and visits < epochs * n:
        before, visits = len(votes), visits + n
        for i in rng.permutation(n):
            if y[i] * (K[i] @ predictors[-1]) > 0:
                votes[-1] += 1
            else:
                predictors.append(predictors[-1] + y[i] * (np.arange(n) == i))
                votes.append(1)
        if len(votes) == before:
            status = "converged"
    return np.array(predictors), np.array(votes), visits, status


@pytest.mark.parametrize("output", ["last", "averaged", "voted"])
@pytest.mark.parametrize("epochs", [1, 4])
def test_predictor_is_the_literal_one(task, separable_task, epochs, output):
    # The separable points end in a pass without mistakes.
    for given, most in ((task, epochs), (separable_task, 50)):
        K, y = given.K, given.y
        predictors, votes, n_iter, status = twin(K, y, most, seed=1)
        solver = Perceptron(output=output, max_epochs=most, **given.params)
        solver.set_params(dtype="float64", random_state=1).fit(given.X, y)
        assert (solver.n_iter_, solver.status_) == (n_iter, status)
        assert solver.n_mistakes_ == len(votes) - 1
        scores = solver.decision_function(given.X)
        if output == "voted":
            np.testing.assert_array_equal(scores, np.sign(K @ predictors.T) @ votes)
            np.testing.assert_array_equal(solver.survivals_, votes[1:])
            continue
        assert solver.counters_.kernel_evals == len(y) * solver.n_mistakes_
        # The average is of w before each visit: the last one has not been seen when it was made.
        averaged = (votes @ predictors - predictors[-1]) / n_iter
        expected = K @ (averaged if output == "averaged" else predictors[-1])
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    assert solver.status_ == "converged"


def test_a_vote_is_the_same_in_blocks_and_has_no_norm(rbf_task, monkeypatch):
    task = rbf_task
    model = Perceptron(**task.params, output="voted", random_state=2).fit(task.X, task.y).model_
    votes = model.decision_function(task.X)
    with pytest.raises(ValueError, match="no vector w, so it has no norm"):
        model.squared_norm()
    monkeypatch.setattr(voting, "_BLOCK_BYTES", 7 * model.n_support * 4)
    np.testing.assert_array_equal(model.decision_function(task.X), votes)
