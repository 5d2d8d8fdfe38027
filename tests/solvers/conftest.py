"""Problems that the tests of the solvers share, and their optima by an interior-point method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import qpsolvers
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris

from marginbench.solvers import Monitor


@dataclass(frozen=True)
class Task:
    """A training problem, its kernel parameters and its Gram matrix, computed without solvers."""

    X: np.ndarray
    y: np.ndarray
    params: dict[str, Any]
    K: np.ndarray

    @property
    def n(self):
        return len(self.y)

    @property
    def Q(self):
        return self.K * np.outer(self.y, self.y)


@dataclass(frozen=True)
class Optimum:
    """A dual optimum: its alpha, ||w*||^2 and the dual objective in C units."""

    alpha: np.ndarray
    squared_norm: float
    value: float


def dual_optimum(Q, y, C=None, *, bias=False):
    """Maximise the dual by Clarabel; C=None leaves alpha without an upper bound."""
    n = len(y)
    alpha = qpsolvers.solve_qp(
        sparse.csc_matrix(Q), -np.ones(n),
        A=sparse.csc_matrix(y[None, :]) if bias else None, b=np.zeros(1) if bias else None,
        lb=np.zeros(n), ub=None if C is None else np.full(n, 1.0) * C, solver="clarabel",
        tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12, max_iter=500,
    )  # fmt: skip
    assert alpha is not None, "Clarabel found no solution"
    squared_norm = float(alpha @ Q @ alpha)
    return Optimum(alpha, squared_norm, float(alpha.sum()) - 0.5 * squared_norm)


def spent(counters):
    """What checkpoints go by: entries, inner products, and uses of entries that are stored."""
    return counters.kernel_evals + counters.inner_products + counters.matvec_entries


class RecordingMonitor(Monitor):
    """Writes down every call; a checkpoint is due every ``every`` evaluations."""

    def __init__(self, every=0.0, stop_after=None):
        self.every = every
        self.stop_after = stop_after
        self.next_checkpoint = 0.0
        self.calls = []
        self.counters = None
        self.evals_at_start = None
        self.evals_asked = []
        self.iterations = []
        self.evals = []
        self.snapshots = []
        self.last_snapshot = None
        self.final = None

    def start(self, counters):
        self.calls.append("start")
        self.counters = counters
        self.evals_at_start = None if counters is None else spent(counters)

    def due(self, kernel_evals):
        self.evals_asked.append(kernel_evals)
        return super().due(kernel_evals)

    def record(self, n_iter, snapshot):
        self.calls.append("record")
        self.iterations.append(n_iter)
        self.evals.append(spent(self.counters))
        self.snapshots.append(snapshot())
        self.last_snapshot = snapshot
        self.next_checkpoint = spent(self.counters) + self.every
        return self.stop_after is not None and len(self.iterations) >= self.stop_after

    def finish(self, n_iter, model):
        self.calls.append("finish")
        self.final = (n_iter, model)


def full_alpha(model, y):
    """The model's coefficients times the labels, one for each training point."""
    alpha = np.zeros(len(y))
    alpha[model.support] = model.coef
    return alpha * y


@pytest.fixture(scope="session", params=["rbf_task", "linear_task"])
def task(request):
    """The RBF problem (n=150, d=2) and the linear one (n=200, d=5), both with overlap."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def rbf_task():
    rng = np.random.default_rng(20120626)
    y = np.where(rng.permutation(150) < 75, 1.0, -1.0)
    X = rng.standard_normal((150, 2)) + np.outer(y, [0.8, 0.4])
    return Task(X, y, {"kernel": "rbf", "gamma": 0.5}, np.exp(-0.5 * cdist(X, X, "sqeuclidean")))


@pytest.fixture(scope="session")
def linear_task():
    rng = np.random.default_rng(20080705)
    y = np.where(rng.permutation(200) < 100, 1.0, -1.0)
    X = rng.standard_normal((200, 5)) + 0.5 * y[:, None]
    return Task(X, y, {"kernel": "linear"}, X @ X.T)


@pytest.fixture(scope="session")
def separable_task():
    """Two clusters apart, in the plane, with a linear kernel through the origin."""
    rng = np.random.default_rng(7)
    y = np.repeat([1.0, -1.0], 20)
    X = 0.5 * rng.standard_normal((40, 2)) + 3.0 * y[:, None]
    return Task(X, y, {"kernel": "linear"}, X @ X.T)


@pytest.fixture(scope="session")
def optimum():
    """``optimum(task, C, bias=False)``: the reference optimum, solved once for each problem."""
    # The matrix is kept with its optimum: another one could otherwise get its id.
    known = {}

    def solve(task, C, *, bias=False):
        key = (id(task.K), C, bias)
        if key not in known:
            known[key] = task.K, dual_optimum(task.Q, task.y, C, bias=bias)
        return known[key][1]

    return solve


@pytest.fixture(scope="session")
def solve_dual():
    return dual_optimum


@pytest.fixture(scope="session")
def recording_monitor():
    return RecordingMonitor


@pytest.fixture(scope="session")
def alpha_of():
    """``alpha_of(model, y)``: alpha of every training point, in the order of the data."""
    return full_alpha


@pytest.fixture(scope="session")
def points():
    """Forty points in three dimensions, of two classes that overlap a little."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1, -1)
    return rng.standard_normal((40, 3)) + 0.7 * y[:, None], y


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]
