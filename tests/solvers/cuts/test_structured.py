"""Structural SVMs: outputs against brute force, optima against an interior-point method."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import qpsolvers
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from marginbench.solvers import (
    CuttingPlane,
    LinearChain,
    MultiClass,
    StructuredProblem,
    StructuredSVM,
    TwoClasses,
)

EXACT = {"oracle": "exact", "dtype": "float64", "random_state": 0}


class Selection(StructuredProblem):
    """One of the points of an input is the right one; losing by far costs more."""

    max_loss = 1.0

    def argmax(self, scores, weights, target=None):
        value = scores[:, 0]
        if target is not None:
            value = value + [self.loss(target, k) for k in range(len(value))]
        return int(np.argmax(value))

    def loss(self, target, output):
        return min(abs(target - output), 2) / 2

    def psi(self, output, n_points):
        coef = np.zeros((n_points, 1))
        coef[output] = 1.0
        return coef, np.empty(0)


def all_outputs(structure, length):
    if isinstance(structure, LinearChain):
        return [
            np.array(path) for path in itertools.product(range(structure.n_channels), repeat=length)
        ]
    if isinstance(structure, Selection):
        return list(range(length))
    return [-1.0, 1.0] if isinstance(structure, TwoClasses) else list(range(structure.n_channels))


def score_of(structure, scores, weights, output):
    coef, explicit = structure.psi(output, len(scores))
    return float((scores * coef).sum() + (weights * explicit).sum())


STRUCTURES = {
    "two classes": (TwoClasses(), 1),
    "two classes, long features": (TwoClasses(1.0, constant=2.0), 1),
    "classes": (MultiClass(4), 1),
    "chain": (LinearChain(3), 5),
    "chain of two": (LinearChain(2), 6),
    "chain without transitions": (LinearChain(3, transitions=False), 4),
    "selection": (Selection(), 5),
}


@pytest.fixture(params=STRUCTURES.values(), ids=STRUCTURES)
def random_batch(request):
    """A structure, and scores, weights and targets of 30 inputs of several lengths."""
    structure, longest = request.param
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, longest + 1, size=30)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    scores = rng.standard_normal((starts[-1], structure.n_channels))
    weights = rng.standard_normal(structure.n_explicit)
    targets = []
    for size in sizes:
        outputs = all_outputs(structure, size)
        targets.append(outputs[rng.integers(len(outputs))])
    if longest == 1:
        targets = np.array(targets)
    return structure, scores, weights, targets, starts


def test_the_most_violating_outputs_are_those_of_brute_force(random_batch):
    structure, scores, weights, targets, starts = random_batch
    found = structure.most_violating(scores, weights, targets, starts)
    # One example at a time.
    expected = StructuredProblem.most_violating(structure, scores, weights, targets, starts)
    for name in ("losses", "values", "coef", "explicit"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    for i, target in enumerate(targets):
        own = scores[starts[i] : starts[i + 1]]
        outputs = all_outputs(structure, len(own))
        plain = [score_of(structure, own, weights, output) for output in outputs]
        best = outputs[int(np.argmax(plain))]
        np.testing.assert_array_equal(structure.argmax(own, weights), best)
        right = score_of(structure, own, weights, target)
        losses = [structure.loss(target, output) for output in outputs]
        assert found.values[i] == pytest.approx(max(np.add(losses, plain)) - right, abs=1e-12)


def optimum(K, structure, targets, starts, C):
    """The optimal value by Clarabel, over a multiplier for every output of every input."""
    n, features, losses, owner = len(targets), [], [], []
    for i, target in enumerate(targets):
        size = starts[i + 1] - starts[i]
        right = structure.psi(target, size)
        for output in all_outputs(structure, size):
            wrong = structure.psi(output, size)
            row = np.zeros((len(K), structure.n_channels))
            row[starts[i] : starts[i + 1]] = right[0] - wrong[0]
            features.append((row, right[1] - wrong[1]))
            losses.append(structure.loss(target, output))
            owner.append(i)
    rows, explicit = (np.array(part) for part in zip(*features, strict=True))
    P = np.einsum("aps,pq,bqs->ab", rows, K, rows, optimize=True) + explicit @ explicit.T
    each = sparse.csc_matrix((np.ones(len(owner)), (owner, np.arange(len(owner)))))
    losses = np.array(losses)
    a = qpsolvers.solve_qp(
        sparse.csc_matrix(P), -losses, A=each, b=np.full(n, C), lb=np.zeros(len(owner)),
        solver="clarabel", tol_gap_abs=1e-9, tol_gap_rel=1e-9,
    )  # fmt: skip
    return float(losses @ a - 0.5 * a @ P @ a)


def primal(solver, X, targets, starts, C):
    violations = solver.structure_.most_violating(
        np.ascontiguousarray(solver.scores(X)), solver.explicit_coef_, targets, starts
    )
    return 0.5 * solver.model_.squared_norm() + C * violations.values.sum()


def test_two_classes_are_the_binary_problem(rbf_task):
    task, params = rbf_task, {"tol": 1e-6, **EXACT, **rbf_task.params}
    binary = CuttingPlane(**params).fit(task.X, task.y)
    expected = binary.decision_function(task.X)
    # As two classes w_1 = -w_2, so that the norms add up and the score is their difference.
    several = StructuredSVM(C=0.5, **params).fit(task.X, task.y)
    np.testing.assert_allclose(several.decision_function(task.X), expected, atol=1e-3)
    for y in (task.y, task.y.astype(int).tolist()):
        own = StructuredSVM(TwoClasses(), **params).fit(task.X, y)
        np.testing.assert_allclose(own.decision_function(task.X)[:, 0], expected, atol=1e-4)
        assert own.predict(task.X) == binary.predict(task.X).tolist()
        assert own.score(task.X, y) == binary.score(task.X, task.y)


def digits():
    return *(part[:50] for part in load_digits(return_X_y=True)), None


def chains():
    """Sequences of three states, seen through much noise."""
    rng = np.random.default_rng(0)
    lengths = np.array([3, 2, 1, 3] * 4)
    y = rng.integers(3, size=lengths.sum())
    centres = np.array([[0.0, 0.0], [1.2, 0.0], [0.0, 1.2]])
    return centres[y] + 0.8 * rng.standard_normal((len(y), 2)), y, lengths


def selections():
    """Inputs of 2 to 5 points, of which any is right."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(2, 6, size=12)
    return rng.standard_normal((lengths.sum(), 2)), rng.integers(lengths).tolist(), lengths


@pytest.mark.parametrize(
    ("structure", "data", "gamma", "C"),
    [
        (MultiClass(10), digits, 0.1 / 256, 0.1),
        (MultiClass(10), digits, 0.1 / 256, 1.0),
        (LinearChain(3), chains, 1.0, 3.0),
        (LinearChain(3, transitions=False), chains, 1.0, 0.3),
        (Selection(), selections, 2.0, 2.0),
    ],
)
def test_exact_cuts_reach_the_independent_optimum(structure, data, gamma, C):
    X, y, lengths = data()
    starts = np.r_[0, np.cumsum(np.ones(len(X), int) if lengths is None else lengths)]
    targets = np.split(y, starts[1:-1]) if data is chains else y
    best = optimum(np.exp(-gamma * cdist(X, X, "sqeuclidean")), structure, targets, starts, C)
    solver = StructuredSVM(structure, gamma=gamma, C=C, tol=1e-4, **EXACT)
    solver.fit(X, targets, lengths)
    assert solver.status_ == "converged"
    excess = primal(solver, X, targets, starts, C) - best
    assert -1e-6 * best <= excess <= 1e-4 * max(best + excess, C * len(targets))
    if data is selections:
        outputs = solver.predict(X, lengths)
        losses = [Selection().loss(a, b) for a, b in zip(y, outputs, strict=True)]
        assert solver.score(X, y, lengths) == pytest.approx(1 - np.mean(losses))
    if data is digits:
        # Sampled cuts come near it.
        for oracle in ("linear", "constant"):
            solver.set_params(oracle=oracle, n_samples=60, tol=1e-3).fit(X, y)
            assert primal(solver, X, y, starts, C) <= 1.1 * best


def test_evaluations_of_chains_are_positions_times_drawn_positions():
    (X, y, _), lengths = chains(), np.full(12, 3)
    one = StructuredSVM("chain", gamma=0.5, oracle="linear", n_samples=7, max_iter=1,
                        random_state=0)  # fmt: skip
    ended = "StructuredSVM ended at max_iter=1 .*: the last cut lay 1 above the model, 0.001 is"
    with pytest.warns(ConvergenceWarning, match=ended) as caught:
        one.fit(X, y, lengths)
    assert caught[0].filename == __file__
    assert one.status_ == "budget"
    assert one.counters_.kernel_evals == 36 * 7 * 3
    assert one.counters_.kernel_evals_computed == 36 * one.model_.n_support


def test_a_monitor_sees_every_cut_and_may_stop(rbf_task, recording_monitor):
    task = rbf_task
    monitor = recording_monitor(stop_after=4)
    solver = StructuredSVM(n_samples=20, random_state=0, **task.params)
    solver.fit(task.X, task.y, monitor=monitor)
    assert monitor.calls == ["start"] + ["record"] * 4 + ["finish"]
    assert monitor.iterations == [1, 2, 3, 4]
    assert solver.status_ == "stopped"
    np.testing.assert_array_equal(monitor.snapshots[-1].coef, solver.model_.coef)


NUMBERS = "takes the numbers 0 to 1"


@pytest.mark.parametrize(
    ("params", "y", "lengths", "message"),
    [
        ({}, [0, 1, 2, 0], [2, 2], "structure='multiclass' has a point an input"),
        ({"structure": "chain"}, [0, 1, 2, 0], [2, 3], "lengths sum to 5, but X has 4 points"),
        ({"structure": "chain"}, [0, 1, 2, 0], [4, 0], "lengths must be whole numbers >= 1"),
        ({"structure": "chain"}, [0, 1, 2, 0], [2.0, 2.0], "lengths must be whole numbers >= 1"),
        ({"structure": Selection()}, [0, 1, 2], [2, 2], "got 3 for 2 inputs"),
        ({"structure": TwoClasses()}, [0, 1, 1, 0], None, "takes the outputs -1 and 1"),
        ({"structure": MultiClass(2)}, [0, 1, 2, 0], None, NUMBERS),
        ({"structure": MultiClass(2)}, list("abba"), None, NUMBERS),
        ({"structure": LinearChain(2)}, [[0, 1], [2, 0]], [2, 2], NUMBERS),
        ({"structure": LinearChain(2)}, [[0, 1], [1]], [2, 2], "a state for each point"),
        ({"structure": "tree"}, [0, 1, 2, 0], None, "structure must be one of multiclass, chain"),
        ({"oracle": "constant", "stopping": "relative"}, [0, 1, 2, 0], None, "needs the mean loss"),
        ({"C": 0.0}, [0, 1, 2, 0], None, "C must be a number > 0, got 0.0"),
        ({}, [1, 1, 1, 1], None, "needs two classes in y, got only one class"),
    ],
)
def test_what_does_not_fit_is_named(params, y, lengths, message):
    with pytest.raises(ValueError, match=message) as failure:
        StructuredSVM(**params).fit(np.arange(8.0).reshape(4, 2), y, lengths)
    assert "\n" not in str(failure.value)


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_the_score_takes_what_the_fit_takes(structure):
    X = np.random.default_rng(0).standard_normal((20, 3))
    y = (X[:, 0] > 0).astype(int)
    solver = StructuredSVM(structure, kernel="linear").fit(X, y[:, None])
    expected = np.mean(solver.predict(X) == y)
    # Another structure is that of the next fit.
    solver.set_params(structure="chain" if structure == "multiclass" else "multiclass")
    assert solver.score(X, y[:, None]) == solver.score(X, y) == expected
    for wrong in (None, 0, y[:1], y[1:]):
        with pytest.raises(ValueError, match=r"1d array|inconsistent numbers of samples"):
            solver.score(X, wrong)


def test_the_worked_examples_run(capsys):
    text = (Path(__file__).parents[3] / "docs" / "structured-outputs.md").read_text()
    chain, own = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(chain, {})
    assert float(capsys.readouterr().out.split()[0]) > 0.8
    exec(own, {})
    assert float(capsys.readouterr().out) > 0.75
