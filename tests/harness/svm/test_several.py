"""Several classes: judged class by class, by what two classes are judged by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import marginbench
from marginbench.harness.errors import EvaluationError
from marginbench.harness.evaluation.models import Evaluator, PlainModel, TaskPoints
from marginbench.harness.evaluation.reference import reference_optimum, references_folder
from marginbench.harness.evaluation.svm import Problem, ReferenceWork
from marginbench.harness.jobs import Message
from marginbench.solvers import (
    BSCA,
    RBF,
    SMO,
    Kernel,
    Linear,
    LinearSDCA,
    OneVsRestModel,
    Perceptron,
    RandomFourierFeatures,
    Solver,
)

C = 2.0
X, Y = load_iris(return_X_y=True)
TRAIN, TEST = np.arange(150) % 3 != 2, np.arange(150) % 3 == 2


def evaluator_of(kernel: Kernel, *, certificate: bool = True) -> Evaluator:
    return Evaluator(
        TaskPoints(kernel, X[TRAIN], X[TEST]), C=C, fit_intercept=False,
        y_train=Y[TRAIN], y_test=Y[TEST], dual_certificate=certificate,
    )  # fmt: skip


SOLVERS = {
    "SMO": (SMO(gamma=0.5, C=C, tol=1e-8, dtype="float64"), RBF(0.5)),
    "BSCA": (BSCA(gamma=0.5, C=C, budget=20, random_state=0), RBF(0.5)),
    "LinearSDCA": (LinearSDCA(C=C, random_state=0), Linear()),
    "RandomFourierFeatures": (RandomFourierFeatures(gamma=0.5, C=C, random_state=0), RBF(0.5)),
    "Voted": (Perceptron(gamma=0.5, output="voted", random_state=0), RBF(0.5)),
}


@pytest.fixture(params=SOLVERS)
def fitted(request: pytest.FixtureRequest) -> tuple[Solver, Kernel]:
    solver, kernel = SOLVERS[request.param]
    return solver.fit(X[TRAIN], Y[TRAIN]), kernel


def test_errors_are_counted_and_objectives_are_added_up(fitted: tuple[Solver, Kernel]) -> None:
    solver, kernel = fitted
    evaluator = evaluator_of(kernel, certificate=solver.certificate == "dual")
    found = evaluator.evaluate(solver.model_)
    for part, error in (("train", found.train_error), ("test", found.test_error)):
        rows = TRAIN if part == "train" else TEST
        assert error == np.mean(solver.predict(X[rows]) != Y[rows])
    primal: float | None = 0.0
    for label, one in zip(range(3), solver.estimators_, strict=True):
        alone = Evaluator(
            TaskPoints(kernel, X[TRAIN], X[TEST]), C=C, fit_intercept=False,
            y_train=np.where(Y[TRAIN] == label, 1, -1), y_test=np.where(Y[TEST] == label, 1, -1),
            dual_certificate=False,
        ).evaluate(one.model_)  # fmt: skip
        primal = None if alone.primal is None or primal is None else primal + alone.primal
    assert found.primal == (None if primal is None else pytest.approx(primal, rel=1e-12))
    if solver.certificate == "dual":
        assert found.gap is not None
        assert 0 <= found.gap < 1e-2 * found.primal  # type: ignore[operator]
    assert found.n_support == solver.model_.n_support


def test_a_class_that_was_not_reached_has_no_weights() -> None:
    solver = SMO(gamma=0.5, C=C).fit(X[TRAIN], Y[TRAIN])
    found = evaluator_of(RBF(0.5)).evaluate(
        OneVsRestModel((solver.model_.parts[0], None, None))  # type: ignore[attr-defined]
    )
    alone = evaluator_of(RBF(0.5))
    whole = alone.evaluate(solver.model_)
    assert found.primal is not None
    assert whole.primal is not None
    # Each missing class costs C for every point, its dual point is 0.
    assert found.primal > 2 * C * 100
    assert found.gap == pytest.approx(2 * C * 100, rel=0.01)
    # Only the first class can be told from the rest.
    assert found.test_error == pytest.approx(1 / 3, abs=0.05)


def test_a_predictor_that_has_not_changed_is_not_scored_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    scored = Evaluator._scored

    def counting(self: Evaluator, c: int, model: PlainModel, dtype: str) -> Any:
        calls.append(1)
        return scored(self, c, model, dtype)

    monkeypatch.setattr(Evaluator, "_scored", counting)
    solver = SMO(gamma=0.5, C=C).fit(X[TRAIN], Y[TRAIN])
    evaluator = evaluator_of(RBF(0.5))
    parts = solver.model_.parts  # type: ignore[attr-defined]
    first = evaluator.evaluate(OneVsRestModel((parts[0], None, None)), "float32")
    second = evaluator.evaluate(OneVsRestModel((parts[0], parts[1], None)), "float32")
    assert len(calls) == 3 + 1
    assert second.test_error < first.test_error
    assert evaluator.evaluate(solver.model_) != second
    assert len(calls) == 3 + 1 + 3


def test_models_of_other_numbers_of_classes_are_refused() -> None:
    two = SMO(gamma=0.5).fit(X[TRAIN], Y[TRAIN] == 1).model_
    three = SMO(gamma=0.5).fit(X[TRAIN], Y[TRAIN]).model_
    evaluator = evaluator_of(RBF(0.5))
    with pytest.raises(EvaluationError, match="3 classes, but the model is one of two classes"):
        evaluator.evaluate(two)
    four = OneVsRestModel((*three.parts, None))  # type: ignore[attr-defined]
    with pytest.raises(EvaluationError, match="3 classes, but the model is one of 4 classes"):
        evaluator.evaluate(four)
    binary = Evaluator(
        TaskPoints(RBF(0.5), X, X), C=C, fit_intercept=False, y_train=Y == 1, y_test=Y == 1,
        dual_certificate=False,
    )  # fmt: skip
    with pytest.raises(EvaluationError, match="two classes, but the model is one of several"):
        binary.evaluate(three)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [{"name": "rbf", "gamma": 0.02}, {"name": "linear"}])
def test_the_reference_is_the_sum_of_those_of_the_classes(
    cache: Path, kernel: dict[str, Any]
) -> None:
    messages: list[Message] = []

    def reference(positive: Any) -> Any:
        problem = Problem("digits", {"positive": positive}, kernel, 1.0, fit_intercept=False)
        return reference_optimum(ReferenceWork(problem, 1e-5), messages.append)

    whole = reference("none")
    each = [reference(digit) for digit in range(10)]
    total = sum(one.primal for one in each)
    assert whole.primal == pytest.approx(total, rel=2e-5)
    assert 0 <= whole.gap <= 1e-5 * whole.primal
    assert whole.test_error < 0.08
    assert (whole.nu, whole.alpha_sum, whole.n_free) == (None, None, None)
    assert max(one.n_support for one in each) < whole.n_support < sum(o.n_support for o in each)
    assert len(list(references_folder().glob("*.parquet"))) == 11
    assert reference("none") == whole


OWN = """
from marginbench import SMO

class Own(SMO):
    pass

class Liar(SMO):
    def decision_function(self, X):
        return super().decision_function(X)[:, ::-1]
"""


@pytest.mark.slow
def test_a_study_of_several_classes(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    task = {"dataset": "digits", "dataset_params": {"positive": "none"}, "gamma": 0.02, "C": 1.0}
    study = marginbench.Study.model_validate(
        {
            "name": "several",
            "task": [{"label": "ten", "kernel": "rbf", **task}],
            "solver": [
                {"name": "SMO"},
                {"name": "Pegasos", "params": {"max_epochs": 2}},
                {"name": "SBP"},
                {"name": f"{tmp_path}/own.py:Own", "label": "Own"},
                {"name": f"{tmp_path}/own.py:Liar", "label": "Liar"},
            ],
            "seeds": 1,
        }
    )
    marginbench.run(study, tmp_path / "out")
    found = marginbench.load_results(tmp_path / "out")
    assert found.runs["ok"].sum() == 3
    (segment,) = (tmp_path / "out" / "journal").glob("*.jsonl")
    lines = [line for line in segment.open("rb") if b'"type":"record"' in line[:100]]
    records = {record.solver: record for record in map(marginbench.parse_record, lines)}
    smo, own = records["SMO"], records["Own"]
    assert (smo.status, smo.n_classes) == ("converged", 10)
    assert 0 <= smo.suboptimality < 1e-3
    assert smo.test_error < 0.07
    for name in ("counters", "n_iter", "test_error", "primal", "n_support", "gap"):
        assert getattr(own, name) == getattr(smo, name)
    errors = [point.test_error for point in records["Pegasos"].trace]
    assert errors[0] > 0.5 > errors[-1]
    assert records["SBP"].status == "skipped"
    assert records["Liar"].status == "wrong"
    assert "decision_function gives" in records["Liar"].reason
    page = marginbench.report(tmp_path / "out").read_text()
    assert "10 classes, each against the rest" in page
    assert "Several classes" in page
