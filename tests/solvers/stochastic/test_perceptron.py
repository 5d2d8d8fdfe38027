"""The perceptron against its literal definition."""

import numpy as np
import pytest

from marginbench.solvers import Perceptron
from marginbench.solvers.models import voting


def twin(K, y, epochs, seed, tol=0.0):
    """Visits in a fresh permutation per pass; the average is of w before each visit."""
    n = len(y)
    rng = np.random.default_rng(seed)
    alpha, total = np.zeros(n), np.zeros(n)
    visits, mistakes_in_order = 0, []
    converged = False
    for _ in range(epochs):
        mistakes = 0
        for i in rng.permutation(n):
            total += alpha
            visits += 1
            if y[i] * (K[i] @ (alpha * y)) <= 0:
                alpha[i] += 1
                mistakes += 1
                mistakes_in_order.append(i)
        if mistakes <= tol * n:
            converged = True
            break
    return {
        "last": alpha,
        "averaged": total / visits,
        "n_iter": visits,
        "mistakes": mistakes_in_order,
        "status": "converged" if converged else "budget",
    }


@pytest.mark.parametrize("output", ["last", "averaged"])
@pytest.mark.parametrize("epochs", [1, 4])
def test_predictor_is_the_literal_one(task, separable_task, epochs, output, alpha_of):
    # The separable points end in a pass without mistakes.
    for given, most in ((task, epochs), (separable_task, 50)):
        expected = twin(given.K, given.y, most, seed=1)
        solver = Perceptron(output=output, max_epochs=most, **given.params)
        solver.set_params(dtype="float64", random_state=1).fit(given.X, given.y)
        assert solver.n_iter_ == expected["n_iter"]
        assert solver.status_ == expected["status"]
        assert solver.n_mistakes_ == len(expected["mistakes"])
        assert solver.counters_.kernel_evals == len(given.y) * len(expected["mistakes"])
        alpha = alpha_of(solver.model_, given.y)
        np.testing.assert_allclose(alpha, expected[output], rtol=1e-12, atol=1e-12)
    assert solver.status_ == "converged"


def voted_twin(K_test, K, y, epochs, seed):
    """Freund and Schapire's pseudo-code, with every predictor written out."""
    rng = np.random.default_rng(seed)
    predictors, votes = [np.zeros(len(y))], [0]
    for _ in range(epochs):
        for i in rng.permutation(len(y)):
            if y[i] * (K[i] @ predictors[-1]) > 0:
                votes[-1] += 1
            else:
                predictors.append(predictors[-1] + y[i] * (np.arange(len(y)) == i))
                votes.append(1)
    scores = K_test @ np.array(predictors).T
    return np.sign(scores) @ np.array(votes), votes


@pytest.mark.parametrize("epochs", [1, 4])
def test_the_vote_is_the_literal_one(task, epochs):
    common = {"max_epochs": epochs, "dtype": "float64", "random_state": 1, **task.params}
    solver = Perceptron(output="voted", **common).fit(task.X, task.y)
    expected, votes = voted_twin(task.K, task.K, task.y, epochs, seed=1)
    np.testing.assert_array_equal(solver.decision_function(task.X), expected)
    np.testing.assert_array_equal(solver.survivals_, votes[1:])
    # All that voted saw all visits, and one each for being made.
    assert solver.survivals_.sum() == solver.n_iter_
    last = Perceptron(**common).fit(task.X, task.y)
    np.testing.assert_array_equal(last.dual_coef_, solver.dual_coef_)
    assert solver.counters_.kernel_evals > 0


def test_a_vote_is_the_same_in_blocks_and_has_no_norm(rbf_task, monkeypatch):
    task = rbf_task
    model = Perceptron(**task.params, output="voted", random_state=2).fit(task.X, task.y).model_
    votes = model.decision_function(task.X)
    with pytest.raises(ValueError, match="no vector w, so it has no norm"):
        model.squared_norm()
    monkeypatch.setattr(voting, "_BLOCK_BYTES", 7 * model.n_support * 4)
    np.testing.assert_array_equal(model.decision_function(task.X), votes)
