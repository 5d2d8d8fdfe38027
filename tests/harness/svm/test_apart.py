"""A run that is fitted in one process and judged in another ends as if both were one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginbench.harness.errors import EvaluationError
from marginbench.harness.evaluation.plain import PlainModel
from marginbench.harness.evaluation.search import Search, configurations
from marginbench.harness.evaluation.svm import ApartWork, FitWork, JudgeWork, Problem, StoppingRules
from marginbench.harness.execution.jobs import (
    CheckpointMessage,
    FoundMessage,
    Message,
    Outcome,
    SnapshotMessage,
    Stamp,
)
from marginbench.harness.execution.wire import FrameReader, decode, encode

DATA = {"n_train": 300, "n_test": 200}
GAUSSIAN = Problem("checkers", DATA, {"name": "rbf", "gamma": 3.0}, 1.0, False)
LINEAR = replace(GAUSSIAN, kernel={"name": "linear"})
BIASED = replace(GAUSSIAN, fit_intercept=True)
CLOCKS = {
    "tuning",
    "tuning_wall_s",
    "tuning_cpu_s",
    "wall_s",
    "cpu_s",
    "system_s",
    "data_s",
    "compile_s",
    "evaluation_s",
    "claimed",
}

#: One solver for each kind of model, and those that keep notes, certificates or a bias.
RUNS = {
    "SMO": FitWork(GAUSSIAN, "SMO", {"gamma": 3.0}, 1.3, certificate=True),
    "SMO with bias": FitWork(
        BIASED, "SMO", {"gamma": 3.0, "fit_intercept": True}, 1.3, certificate=True
    ),
    "SBP": FitWork(GAUSSIAN, "SBP", {"gamma": 3.0, "nu": 0.1, "random_state": 0}, 1.3),
    "Perceptron": FitWork(
        GAUSSIAN, "Perceptron", {"gamma": 3.0, "output": "voted", "random_state": 0}, 1.3
    ),
    "BSCA": FitWork(
        GAUSSIAN, "BSCA", {"gamma": 3.0, "budget": 20, "max_epochs": 3, "random_state": 0}, 1.3,
        epoch_checkpoints=True,
    ),
    "RandomFourierFeatures": FitWork(
        GAUSSIAN, "RandomFourierFeatures", {"gamma": 3.0, "random_state": 0}, 1.3
    ),
    "Pegasos on a budget": FitWork(
        GAUSSIAN, "Pegasos", {"gamma": 3.0, "max_epochs": 50, "random_state": 0}, 1.3,
        rules=StoppingRules(evaluations=4000),
    ),
    "SMO, tuned": FitWork(
        GAUSSIAN, "SMO", {"gamma": 1.0, "C": 0.1}, 1.3, certificate=True,
        search=Search(
            configurations({"gamma": [1.0, 10.0], "C": [0.1, 10.0]}), method="halving"
        ),
    ),
    "LinearSDCA": FitWork(LINEAR, "LinearSDCA", {"random_state": 0}, 1.3, certificate=True),
    "LIBSVM": FitWork(GAUSSIAN, "LIBSVM", {"gamma": 3.0}, 1.3, certificate=True),
}  # fmt: skip


def travelled(value: Any) -> Any:
    """The value as it arrives."""
    reader = FrameReader()
    reader.feed(encode(value))
    ((text, data),) = reader.frames()
    return decode(text, data)


def run_apart(fit: FitWork, folder: Path) -> tuple[dict[str, Any], list[Any]]:
    """Columns and trace of a run whose two parts only share a file and what travels."""
    work = fit.apart()
    assert isinstance(work, ApartWork)
    messages: list[Message] = []
    claims = work.parsed(travelled(work.run(messages.append)))
    states = [item for item in messages if isinstance(item, SnapshotMessage)]
    path = folder / "states"
    path.write_bytes(b"".join(encode(item.state) for item in states))
    times = [item.time for item in states]
    found: dict[str, Any] = {}
    for item in messages:
        if isinstance(item, FoundMessage):
            found = work.parsed_found(travelled(item.columns))
    outcome = Outcome("done", claims, found=found, snapshots=path, claimed=times, seen=times)
    judging = work.judged(outcome)
    assert isinstance(judging, JudgeWork)
    judged: list[Message] = []
    columns = judging.parsed(travelled(judging.run(judged.append)))
    columns = found | columns
    return columns, [item.checkpoint for item in judged if isinstance(item, CheckpointMessage)]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_judged_apart_is_the_run_judged_at_once(name: str, tmp_path: Path) -> None:
    messages: list[Message] = []
    together = RUNS[name].run(messages.append)
    trace = [item.checkpoint for item in messages if isinstance(item, CheckpointMessage)]
    apart, states = run_apart(RUNS[name], tmp_path)
    assert without_clocks(apart) == without_clocks(together)
    assert len(states) == len(trace) > 0
    for found, expected in zip(states, trace, strict=True):
        assert replace(found, wall_s=0.0, cpu_s=0.0) == replace(expected, wall_s=0.0, cpu_s=0.0)
    assert (apart["wall_s"], apart["cpu_s"]) == (states[-1].wall_s, states[-1].cpu_s)
    tuning = " tuning tuning_wall_s tuning_cpu_s tuning_evals" if "tuned" in name else ""
    assert apart["claimed"] == f"n_iter counters epochs{tuning}"


def without_clocks(columns: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in columns.items() if name not in CLOCKS}
    notes = [
        {name: value for name, value in epoch.items() if "seconds" not in name}
        for epoch in json.loads(kept["epochs"])
    ]
    return kept | {"epochs": notes}


def judge(states: list[Any], folder: Path, fit: FitWork = RUNS["SMO"]) -> dict[str, Any]:
    path = folder / "states"
    path.write_bytes(b"".join(map(encode, states)))
    times = tuple(Stamp(float(place), 0.0) for place, _ in enumerate(states))
    return JudgeWork(fit, path, times, "", None).run(lambda message: None)


def state(**changes: Any) -> dict[str, Any]:
    arrays = {"support": np.arange(3), "coef": np.ones(3)}
    model = {"kind": "kernel expansion", "intercept": 0.0, "arrays": arrays}
    return {"n_iter": 1, "counters": None, "model": model, "final": False} | changes


def test_states_of_a_run_that_was_cut_short_have_no_verdict(tmp_path: Path) -> None:
    columns = judge([state(), state(n_iter=2)], tmp_path)
    assert "status" not in columns
    assert (columns["n_iter"], columns["wall_s"]) == (2, 1.0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"more": 1}, "other fields"),
        ({"n_iter": "1"}, "n_iter is '1', not a count"),
        ({"counters": {"kernel_evals": -1}}, "kernel_evals is -1, not a count"),
        ({"counters": {"test_error": 0}}, "the counters of the run are none"),
        ({"counters": [1]}, "the counters of the run are none"),
        ({"model": None}, "no table"),
        ({"model": {"kind": "oracle", "intercept": 0.0, "arrays": {}}}, "unknown kind 'oracle'"),
        ({"model": {"kind": "linear", "intercept": 0.0, "arrays": {}}}, "has no weights"),
        ({"model": {"kind": "linear", "intercept": "0", "arrays": {}}}, "intercept is '0'"),
        ({"model": {"kind": "linear", "intercept": 0.0, "arrays": {"weights": [1]}}}, "are none"),
    ],
)
def test_a_state_that_is_none_is_wrong(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    columns = judge([state(), state(**changes)], tmp_path)
    assert (columns["status"], reason in columns["reason"]) == ("wrong", True), columns["reason"]
    assert columns["n_iter"] == 1  # that of the last state that is one


def test_a_model_that_travels_keeps_its_bits() -> None:
    arrays = {"weights": np.array([0.1, -0.0, 1e-310]), "dual_coef": np.array([1, 2])}
    model = PlainModel("linear", 0.1, arrays)
    found = PlainModel.of_tree(travelled(model.tree()))
    assert (found.kind, found.intercept) == (model.kind, model.intercept)
    for name, array in arrays.items():
        assert found.arrays[name].tobytes() == array.tobytes()
    assert found.finite
    assert not PlainModel("linear", np.nan, arrays).finite
    assert not PlainModel("linear", 0.0, {"weights": np.array([np.inf])}).finite


def test_a_model_with_fields_of_another_kind_loses_them() -> None:
    tree = PlainModel("linear", 0.0, {"weights": np.ones(2)}).tree()
    tree["arrays"]["support"] = np.arange(2)
    assert set(PlainModel.of_tree(tree).arrays) == {"weights"}
    with pytest.raises(EvaluationError):
        PlainModel.of_tree({**tree, "kernel": "mine"})
