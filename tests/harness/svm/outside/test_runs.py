"""Classifiers of other libraries and programs: run in one process, judged in another."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC, LinearSVC

from marginbench.data_loaders import load
from marginbench.harness.errors import SolverError
from marginbench.harness.evaluation.outside.commands import command_params, parsed_command
from marginbench.harness.evaluation.outside.launching import CommandError
from marginbench.harness.evaluation.outside.work import (
    Estimator,
    OutsideFit,
    OutsideJudge,
    OutsideWork,
    Program,
)
from marginbench.harness.evaluation.svm import Problem
from marginbench.harness.execution.jobs import (
    CheckpointMessage,
    Message,
    Outcome,
    SnapshotMessage,
    Stamp,
)
from marginbench.harness.execution.process import SCRATCH
from marginbench.harness.execution.wire import FrameReader, decode, encode
from marginbench.harness.results.svm import Checkpoint

DATA = {"n_train": 200, "n_test": 100}
PROBLEM = Problem("checkers", DATA, {"name": "rbf", "gamma": 10.0}, 1.0, True)
TEN = Problem("digits", {"positive": "none"}, {"name": "rbf", "gamma": 0.02}, 1.0, True)
DIGITS = Problem("digits", {}, {"name": "rbf", "gamma": 0.02}, 1.0, False)
HERE = Path(__file__).parent
MINE = HERE / "estimators.py"
Columns = dict[str, Any]


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "scratch"
    monkeypatch.setenv(SCRATCH, str(folder))
    return folder


def travelled(value: Any) -> Any:
    reader = FrameReader()
    reader.feed(encode(value))
    ((text, data),) = reader.frames()
    return decode(text, data)


def run(work: OutsideWork) -> tuple[Columns, list[Checkpoint]]:
    """The columns and the trace of a run whose two halves share only what travels."""
    fit = work.apart()
    assert isinstance(fit, OutsideFit)
    messages: list[Message] = []
    claims = fit.parsed(travelled(vars(fit.run(messages.append))))
    times = [item.time for item in messages if isinstance(item, SnapshotMessage)]
    judging = fit.judged(Outcome("done", claims, claimed=times, seen=times or [Stamp(1.0, 1.0)]))
    assert isinstance(judging, OutsideJudge)
    judged: list[Message] = []
    columns = judging.parsed(travelled(judging.run(judged.append)))
    return columns, [item.checkpoint for item in judged if isinstance(item, CheckpointMessage)]


def estimator(name: str, problem: Problem = PROBLEM, solves: bool = False, **params: Any) -> Any:
    return OutsideWork(problem, Estimator(name, params, seed=3), solves=solves)


def program(how: str = "right", problem: Problem = PROBLEM, **params: Any) -> OutsideWork:
    start = f"{sys.executable} -S program.py"
    command = parsed_command(
        {
            "train": f"{start} train {shlex.quote(how)} {{train}} {{model}}",
            "predict": f"{start} predict {shlex.quote(how)} {{test}} {{model}} {{output}}",
            **params,
        },
        HERE,
        "solver",
    )
    return OutsideWork(problem, Program(command, seed=0))


def data(problem: Problem = PROBLEM) -> Any:
    return load(problem.dataset, problem.dataset_params or None)


def errors(found: Any, given: Any) -> tuple[float, float]:
    return (
        float(np.mean(found.predict(given.X_train) != given.y_train)),
        float(np.mean(found.predict(given.X_test) != given.y_test)),
    )


def slow(*values: Any) -> Any:
    """A further case of what another one shows."""
    return pytest.param(*values, marks=pytest.mark.slow)


NOT_KNOWN = ("n_iter", "n_support", "counters", "primal", "dual")


def test_a_classifier_is_judged_by_what_it_predicts() -> None:
    columns, (state,) = run(
        estimator("sklearn.ensemble:RandomForestClassifier", n_estimators=5, max_depth=3)
    )
    given = data()
    same = RandomForestClassifier(n_estimators=5, max_depth=3, random_state=3)
    expected = errors(same.fit(given.X_train, given.y_train), given)
    assert (columns["status"], columns["judged_by"]) == ("converged", "predictions")
    assert (columns["train_error"], columns["test_error"]) == expected
    assert columns["wall_s"] == state.wall_s > 0
    assert {getattr(state, name) for name in NOT_KNOWN} == {None}
    assert set(columns).isdisjoint(NOT_KNOWN)


def test_an_svc_is_judged_by_its_coefficients() -> None:
    params = {"kernel": "rbf", "gamma": 10.0, "C": 1.0}
    columns, (state,) = run(estimator("sklearn.svm:SVC", solves=True, **params))
    given = data()
    svc = SVC(gamma=10.0).fit(given.X_train, given.y_train)
    assert (columns["status"], columns["judged_by"]) == ("converged", "model")
    assert (columns["train_error"], columns["test_error"]) == errors(svc, given)
    assert columns["n_support"] == len(svc.support_) == state.n_support
    # The dual value from scratch: sum alpha - 1/2 ||w||^2.
    K = np.exp(-10.0 * ((given.X_train[:, None] - given.X_train[None]) ** 2).sum(axis=2))
    coef = np.zeros(len(K))
    coef[svc.support_] = svc.dual_coef_[0]
    assert columns["dual"] == pytest.approx(np.abs(coef).sum() - coef @ K @ coef / 2, rel=1e-5)
    assert 0 <= columns["gap"] < 1e-2 * columns["primal"]
    assert (columns["claimed"], columns["counters"]) == ("n_iter", None)


def test_an_svc_of_another_problem_does_not_pass_for_the_tasks() -> None:
    # Its box is [0, 5], not [0, 1].
    columns, _ = run(estimator("sklearn.svm:SVC", solves=True, gamma=10.0, C=5.0))
    assert columns["status"] == "wrong"
    assert "no feasible dual point" in columns["reason"]


def test_a_function_makes_a_pipeline_with_the_seed_of_the_run() -> None:
    first, _ = run(estimator(f"{MINE}:make"))
    again, _ = run(estimator(f"{MINE}:make"))
    assert first["test_error"] == again["test_error"]
    other = OutsideWork(PROBLEM, Estimator(f"{MINE}:make", {}, seed=4))
    assert run(other)[0]["train_error"] != first["train_error"]


@pytest.mark.slow
def test_an_early_end_is_told_by_its_warning() -> None:
    given = data()
    columns, _ = run(estimator("sklearn.svm:LinearSVC", max_iter=1))
    with pytest.warns(match="failed to converge"):
        expected = errors(
            LinearSVC(max_iter=1, random_state=3).fit(given.X_train, given.y_train), given
        )
    assert columns["status"] == "budget"
    assert "failed to converge" in columns["reason"]
    assert (columns["train_error"], columns["test_error"]) == expected


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("one column", "predict returned shape (200, 1) for the 200 training points"),
        ("too few", "predict returned shape (199,) for the 200 training points"),
        ("text", "predict returned values of type <U4, not the labels of the task"),
        ("objects", "predict returned values of type object, not the labels of the task"),
        ("nan", "the prediction for training point 0, nan, is no class of the task"),
        ("another class", "the prediction for training point 5, 3, is no class of the task"),
    ],
)
def test_predictions_that_are_none_make_a_run_wrong(how: str, reason: str) -> None:
    columns, trace = run(estimator(f"{MINE}:Constant", how=how))
    assert (columns["status"], columns["reason"], trace) == ("wrong", reason, [])
    assert columns.get("test_error") is None


@pytest.mark.parametrize(
    ("name", "how", "error", "message"),
    [
        ("Constant", {"how": "raises"}, ArithmeticError, "step size is zero"),
        ("Constant", {"how": "raises in predict"}, ArithmeticError, "not fitted"),
        ("Constant", {"how": "ragged"}, ValueError, "inhomogeneous"),
        ("make_nothing", {}, SolverError, "made a dict without fit; it must make a classifier"),
    ],
)
def test_what_an_estimator_raises_is_passed_on(
    name: str, how: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(estimator(f"{MINE}:{name}", **how))


def centroid_errors(problem: Problem) -> tuple[float, float]:
    given = data(problem)
    classes = np.unique(given.y_train)
    X = given.X_train.astype(np.float64)
    means = np.stack([X[given.y_train == label].mean(axis=0) for label in classes])

    def error(X: Any, y: Any) -> float:
        apart = ((X[:, None].astype(np.float64) - means[None]) ** 2).sum(axis=2)
        return float(np.mean(classes[apart.argmin(axis=1)] != y))

    return error(X, given.y_train), error(given.X_test, given.y_test)


@pytest.mark.parametrize("problem", [PROBLEM, slow(DIGITS)], ids=["checkers", "digits"])
def test_a_program_is_judged_by_what_it_predicts(problem: Problem, scratch: Path) -> None:
    columns, (state,) = run(program("looks at labels", problem))
    assert (columns["status"], columns["judged_by"]) == ("converged", "predictions")
    assert (columns["train_error"], columns["test_error"]) == centroid_errors(problem)
    assert columns["wall_s"] == state.wall_s >= columns["cpu_s"] * 0.5 > 0
    assert 5 < columns["peak_memory_mb"] < 60
    assert {getattr(state, name) for name in NOT_KNOWN} == {None}
    assert [path for path in scratch.iterdir() if path.is_dir()] == []


@pytest.mark.slow
def test_scores_say_the_same_as_labels() -> None:
    by_label, _ = run(program())
    by_score, _ = run(program("scores", output="scores"))
    assert by_score["test_error"] == by_label["test_error"]
    assert by_score["train_error"] == by_label["train_error"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["forks", "prints", "changes its input"])
def test_what_a_program_does_besides_changes_no_result(how: str) -> None:
    expected, _ = run(program())
    if how == "changes its input":
        run(program(how))
    found, _ = run(program(how))
    for name in ("status", "train_error", "test_error"):
        assert found[name] == expected[name]


@pytest.mark.parametrize(
    ("how", "params", "reason"),
    [
        slow("no output", {}, "wrote no predictions"),
        slow("a pipe", {}, "wrote no predictions"),
        ("too few", {}, "wrote 199 predictions for 200 points"),
        slow("too many", {}, "wrote more than the 200 predictions asked for"),
        slow("text", {}, "wrote 'yes' in line 3, not a number"),
        slow("no text", {}, "the file train-output is no text"),
        slow("another class", {}, "the prediction for training point 2, 3.0, is no class of the"),
        ("scores with nan", {"output": "scores"}, "training point 2, nan, is no score"),
    ],
)
def test_a_programs_predictions_that_are_none_make_a_run_wrong(
    how: str, params: dict[str, str], reason: str
) -> None:
    columns, trace = run(program(how, **params))
    assert (columns["status"], trace) == ("wrong", [])
    assert reason in columns["reason"]


def test_a_program_that_wrote_no_model_is_wrong() -> None:
    columns, _ = run(replace(program("writes nothing", model="libsvm"), solves=True))
    assert columns["status"] == "wrong"
    assert columns["reason"].endswith("wrote no model file")


def test_a_program_that_fails_says_why(scratch: Path) -> None:
    with pytest.raises(CommandError, match=r"ended with exit code 2: no memory for the cache$"):
        run(program("fails"))
    with pytest.raises(CommandError, match=r"ended with exit code 1: .*FileNotFoundError"):
        run(program("writes nothing"))
    assert [path for path in scratch.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("kernel", [slow("linear"), slow("poly"), "rbf"])
def test_svm_train_finds_what_the_library_finds(kernel: str) -> None:
    if shutil.which("svm-train") is None:
        pytest.skip("svm-train is not installed (Debian: apt-get install libsvm-tools)")
    params: dict[str, Any] = {
        "linear": {},
        "poly": {"degree": 2, "gamma": 3.0, "coef0": 1.0},
        "rbf": {"gamma": 10.0},
    }[kernel]
    problem = replace(PROBLEM, kernel={"name": kernel, **params})
    command = parsed_command(command_params("libsvm-tools", {}), HERE, "solver")
    program, _ = run(OutsideWork(problem, Program(command, 0), solves=True))
    library, _ = run(
        estimator("sklearn.svm:SVC", problem, solves=True, kernel=kernel, C=1.0, **params)
    )
    assert program["status"] == library["status"] == "converged"
    for name in ("primal", "dual"):
        assert program[name] == pytest.approx(library[name], rel=1e-3)
    assert program["test_error"] == pytest.approx(library["test_error"], abs=0.02)
    assert program["gap"] >= 0


@pytest.mark.slow
def test_pairs_of_classes_are_judged_by_labels() -> None:
    if shutil.which("svm-train") is None:
        pytest.skip("svm-train is not installed (Debian: apt-get install libsvm-tools)")
    command = parsed_command(command_params("libsvm-tools", {}), HERE, "solver")
    program, _ = run(OutsideWork(TEN, Program(command, 0)))
    library, _ = run(estimator("sklearn.svm:SVC", TEN, gamma=0.02))
    assert program["judged_by"] == library["judged_by"] == "predictions"
    assert program["test_error"] == pytest.approx(library["test_error"], abs=0.004)
    assert program["test_error"] < 0.1


@pytest.mark.slow
def test_words_of_an_early_end_make_it_one() -> None:
    columns, _ = run(program("prints", unfinished="xxx"))
    assert columns["status"] == "budget"
    assert columns["reason"].endswith("says: xxx")
