"""Kernel entries that are kept between the states of a run: each is computed once, and is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from marginbench.harness.evaluation import models as scoring
from marginbench.harness.evaluation.models import Evaluator, TaskPoints
from marginbench.solvers import RBF, Kernel, KernelExpansion, Linear, Polynomial
from marginbench.solvers.kernels import Points, Precomputed

N_TRAIN, N_TEST, C = 50, 30, 2.0


def points(storage: Any = np.asarray) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N_TRAIN + N_TEST, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=len(X)) > 0, 1.0, -1.0)
    return storage(X[:N_TRAIN]), storage(X[N_TRAIN:]), y[:N_TRAIN], y[N_TRAIN:]


def evaluator(kernel: Kernel, X: Any, Z: Any, y: np.ndarray, z: np.ndarray) -> Evaluator:
    task = TaskPoints(kernel, X, Z)
    return Evaluator(task, C=C, fit_intercept=False, y_train=y, y_test=z, dual_certificate=False)


def states(X: Any, y: np.ndarray, kernel: Kernel) -> list[KernelExpansion]:
    """Support vectors come and go; the first state has none, and the last repeats."""
    rng = np.random.default_rng(5)
    found = []
    for share in (0.0, 0.1, 0.4, 0.2, 0.9, 0.9):
        coef = y * rng.uniform(0, C, len(y)) * (rng.random(len(y)) < share)
        support = np.flatnonzero(coef)
        found.append(KernelExpansion(kernel, X[support], coef[support], 0.0, support, len(y)))
    return [*found, found[-1]]


@pytest.mark.parametrize("kernel", [RBF(0.7), Linear(), Polynomial(degree=2)], ids=lambda k: k.name)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_kept_entries_are_those_of_each_state(kernel: Kernel, storage: Any) -> None:
    X, Z, y, z = points(storage)
    kept = evaluator(kernel, X, Z, y, z)
    for model in states(X, y, kernel):
        found = kept.evaluate(model, "float32")
        exact = evaluator(kernel, X, Z, y, z).evaluate(model, "float64")
        assert found.primal == pytest.approx(exact.primal, rel=1e-4)
        assert found.squared_norm == pytest.approx(exact.squared_norm, rel=1e-4, abs=1e-6)
        assert found.train_error == pytest.approx(exact.train_error, abs=1.1 / N_TRAIN)
        assert found.test_error == pytest.approx(exact.test_error, abs=1.1 / N_TEST)


def test_entries_of_a_gram_matrix_are_those_of_its_rows() -> None:
    X, Z, y, z = points()
    linear, gram = Linear(), Precomputed()
    given = evaluator(gram, X @ X.T, Z @ X.T, y, z)
    for model in states(X, y, linear):
        expected = evaluator(linear, X, Z, y, z).evaluate(model, "float64")
        assert given.evaluate(model, "float32").primal == pytest.approx(expected.primal, rel=1e-4)


class Counted(RBF):
    """Counts the entries that it computes."""

    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        computed.append(len(A) * len(B))
        return super().block(A, B, out)


computed: list[int] = []


@pytest.mark.parametrize("keeps", ["all at once", "as needed", "none"])
def test_each_entry_is_computed_once_where_all_of_them_fit(
    keeps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = N_TRAIN * (N_TRAIN + N_TEST)
    monkeypatch.setattr(scoring, "KEPT_BYTES", 4 * size - (keeps == "none"))
    monkeypatch.setattr(scoring, "_BLOCK_ENTRIES", size if keeps == "all at once" else 500)
    X, Z, y, z = points()
    kernel = Counted(0.7)
    models = states(X, y, kernel)[:4]
    judge = evaluator(kernel, X, Z, y, z)
    computed.clear()
    for model in models:
        judge.evaluate(model, "float32")
    ever = len(set().union(*(set(model.support) for model in models)))
    each = sum(len(model.support) for model in models)
    rows = {"all at once": N_TRAIN, "as needed": ever, "none": each}
    assert ever < N_TRAIN
    assert sum(computed) == (N_TRAIN + N_TEST) * rows[keeps]
