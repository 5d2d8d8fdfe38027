"""Command lines in a study: read, checked, and filled in without a shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.evaluation.outside.commands import (
    Command,
    command_params,
    missing_program,
    parsed_command,
    programs,
)
from marginbench.harness.evaluation.outside.templates import is_command, located_command

RBF = {"name": "rbf", "gamma": 0.1}
OWN = {
    "train": "learn --cost {C} --width {gamma} --eps {eps} '{train}' {model}",
    "predict": "apply {test} {model} {output}",
    "eps": 1e-3,
}


def parsed(folder: Path | str = "/", **params: Any) -> Command:
    return parsed_command(params, Path(folder), "solver 'mine'")


def test_values_go_in_exactly_and_every_argument_stays_one() -> None:
    command = parsed(**OWN)
    awkward = "/data/a b; rm -rf {C}/$HOME"
    assert command.training(RBF, C=0.1 + 0.2, seed=3, train=awkward, model="m") == [
        *("learn", "--cost", "0.30000000000000004", "--width", "0.1", "--eps", "0.001"),
        *(awkward, "m"),
    ]
    assert command.predicting(test="t", model="m", output="o") == ["apply", "t", "m", "o"]


def test_the_options_of_a_kernel_take_the_place_of_its_name() -> None:
    params = command_params("libsvm-tools", {"tol": 1e-5})
    command = parsed(**params)
    values = {"C": 2.0, "seed": 0, "train": "in", "model": "out"}
    shared = ["-c", "2.0", "-e", "1e-05", "-m", "200", "-h", "1", "in", "out"]
    kernels: list[tuple[dict[str, Any], list[str]]] = [
        ({"name": "linear"}, ["-t", "0"]),
        (RBF, ["-t", "2", "-g", "0.1"]),
        (
            {"name": "poly", "degree": 3, "gamma": 1.0, "coef0": 0.5},
            ["-t", "1", "-d", "3", "-g", "1.0", "-r", "0.5"],
        ),
    ]
    for kernel, own in kernels:
        assert command.training(kernel, **values) == ["svm-train", "-s", "0", *own, *shared]
        assert command.lacks(kernel) == ""
    assert command.lacks({"name": "laplacian", "gamma": 1.0}) == "takes no kernel 'laplacian'"


def test_without_a_table_of_kernels_only_what_is_used_must_be_there() -> None:
    assert parsed(**OWN).lacks({"name": "laplacian", "gamma": 1.0}) == ""
    assert (
        parsed(**OWN).lacks({"name": "linear"}) == "uses gamma, which the kernel 'linear' has not"
    )
    named = parsed(train="learn --kernel={kernel} {kernel}", predict="apply {test}")
    assert named.training(RBF, C=1.0) == ["learn", "--kernel=rbf", "rbf"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": ""}, "give the training command in params.train"),
        ({"train": 3}, "params.train = 3: must be a text"),
        ({"train": "learn 'x"}, "No closing quotation"),
        ({"predict": ""}, "give the predicting command in params.predict, or model = 'libsvm'"),
        (
            {"train": "learn {gama} {eps}"},
            "params.train: {gama} is not known (did you mean 'gamma'?)",
        ),
        ({"predict": "apply {train}"}, "params.predict: {train} is not known"),
        ({"kernels": {"rbf": "-g {width}"}}, "params.kernels.rbf: {width} is not known"),
        ({"kernels": {"rbf": 2}}, "params.kernels.rbf = 2: must be a text"),
        ({"model": "libsvn"}, "params.model = 'libsvn' is not known (did you mean 'libsvm'?)"),
        ({"output": "probabilities"}, "params.output = 'probabilities' is not known"),
        ({"esp": 1}, "params.esp: no command line has {esp} (did you mean 'eps'?)"),
        ({"eps": [1]}, "params.eps = [1]: must be a number or a text"),
    ],
)
def test_what_makes_no_sense_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        parsed(**{**OWN, **changes})
    assert str(caught.value).startswith("solver 'mine': ")
    assert message in str(caught.value)


def test_programs_and_scripts_count_by_their_content(tmp_path: Path) -> None:
    script = tmp_path / "learn.py"
    script.write_text("1")
    params = {"train": "env python3 learn.py {train}", "predict": "./apply {test}"}
    program = tmp_path / "apply"
    program.write_text("#!/bin/sh\n")
    assert missing_program(parsed(tmp_path, **params)) == str(program)
    program.chmod(0o755)
    command = parsed(tmp_path, **params)
    assert missing_program(command) == ""
    # Relative files are those beside the study, wherever the program runs.
    assert command.training(RBF, train="in") == ["env", "python3", str(script), "in"]
    before = programs(command)
    assert list(before) == ["train[0] env", "train[2] learn.py", "predict[0] apply"]
    script.write_text("2")
    after = programs(parsed(tmp_path, **params))
    assert {name for name in before if before[name] != after[name]} == {"train[2] learn.py"}


def test_only_what_is_written_as_a_file_is_taken_for_one(tmp_path: Path) -> None:
    for name in ("learn", "1.5"):
        (tmp_path / name).write_text("")
    # A bare word is no path; what has a placeholder is none of the study's files.
    command = parsed(tmp_path, train="env learn ./{model} /no/such {train}", predict="env {test}")
    values = {"train": "in", "model": "learn"}
    assert command.training(RBF, **values) == ["env", "learn", "./learn", "/no/such", "in"]
    assert list(programs(command)) == ["train[0] env", "predict[0] env"]


def test_a_program_that_is_not_there_is_named() -> None:
    command = parsed(train="no-such-program-97531 {train}", predict="env {test}")
    assert missing_program(command) == "no-such-program-97531"
    assert programs(command)["train[0] no-such-program-97531"] == ""


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("command", True),
        ("libsvm-tools", True),
        ("/studies:command", True),
        ("mine.py:command", False),
        ("package.module:command", False),
        ("SMO", False),
    ],
)
def test_names_of_programs(name: str, is_one: bool) -> None:
    assert is_command(name) == is_one


def test_a_located_name_stays_where_it_is() -> None:
    assert located_command("command", "/studies") == "/studies:command"
    assert located_command("/studies:command", "/elsewhere") == "/studies:command"
