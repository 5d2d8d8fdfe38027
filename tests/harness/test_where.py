"""``--where``: what expressions mean, what is refused, and what a part that is no product plans."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.execution.runner import run_study
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.planning.manifest import Scope, merged
from marginbench.harness.results.description import read_description
from marginbench.harness.study.select import MAX_LENGTH, select
from marginbench.harness.study.svm import Study
from marginbench.harness.study.toml import load_study, parse_study
from marginbench.reports.analysis import Analysis
from marginbench.reports.results import load_results

GRID = b"""
name = "grid"
seeds = 2
[[task]]
dataset = "digits"
C = [1, 10]
gamma = 0.5
[[task]]
label = "line, with bias"
dataset = "checkers"
dataset_params = { n_train = 100 }
kernel = "linear"
C = 10
fit_intercept = true
[[solver]]
name = "SBP"
params = { nu = 0.5, max_epochs = [1, 2] }
[[solver]]
name = "SDCA"
"""


@pytest.fixture(scope="module")
def grid() -> Study:
    study = parse_study(GRID, where="grid.toml")
    assert isinstance(study, Study)
    return study


def chosen(study: Study, text: str) -> set[tuple[str, str, int]]:
    selection = select(study, where=text).selection
    assert selection is not None
    return set(selection.runs)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("C == 10", lambda t, s, seed: t.C == 10),
        ("1 < C <= 10.0", lambda t, s, seed: t.C == 10),
        ('solver != "SDCA" and seed == 1', lambda t, s, seed: s.label != "SDCA" and seed == 1),
        ('class == "SBP"', lambda t, s, seed: s.name == "SBP"),
        ("class in ['SBP', 'SDCA'] and C < 5", lambda t, s, seed: t.C == 1),
        ('task == "line, with bias"', lambda t, s, seed: t.kernel == "linear"),
        ("kernel not in ['rbf']", lambda t, s, seed: t.kernel == "linear"),
        ("fit_intercept == true", lambda t, s, seed: t.fit_intercept),
        ("n_train == 100 or C == 1", lambda t, s, seed: t.C == 1 or t.kernel == "linear"),
        ("solver.max_epochs > 1", lambda t, s, seed: s.params.get("max_epochs") == 2),
        ("max_epochs in (1, 2)", lambda t, s, seed: s.name == "SBP"),
        # Of texts that are not names only the order matters.
        ('"A" < class == "SBP"', lambda t, s, seed: s.name == "SBP"),
        # What a run does not have compares as false, whatever is asked.
        ("gamma != 7", lambda t, s, seed: t.kernel == "rbf"),
        ("not gamma == 7", lambda t, s, seed: True),
        ("max_epochs != 1", lambda t, s, seed: s.params.get("max_epochs") == 2),
        ("C > -1 and not (C == 1 or seed == 0)", lambda t, s, seed: t.C == 10 and seed == 1),
    ],
)
def test_an_expression_chooses_the_runs_of_which_it_is_true(
    grid: Study, text: str, holds: Callable[..., bool]
) -> None:
    expected = {(t.label, s.label, seed) for t, s, seed in all_runs_of(grid) if holds(t, s, seed)}
    assert chosen(grid, text) == expected


def all_runs_of(study: Study) -> list[tuple[Any, Any, int]]:
    return [(t, s, seed) for t in study.task for s in study.solver for seed in range(study.seeds)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Cc == 10", "unknown name 'Cc' (did you mean 'C'?)"),
        ("solver.max_epoch > 1", "unknown name 'solver.max_epoch' (did you mean 'solver.max_"),
        ('class == "SBQ"', "no class of the study is 'SBQ' (did you mean 'SBP'?)"),
        ('solver == "SBP"', "no solver of the study is 'SBP' (known: SBP, max_epochs=1, "),
        ('kernel in ["rfb"]', "no kernel of the study is 'rfb' (did you mean 'rbf'?)"),
        ("C == 11", "no run of the study is chosen"),
        ("C = 10", "not an expression (invalid syntax"),
        ("C == ", "not an expression"),
        ("C", "'C' is no comparison"),
        ("C + 1 == 2", "'C + 1' is neither a name nor a number"),
        ("C == gamma()", "'gamma()' is neither a name nor a number"),
        ("__import__('os').name == 'x'", "is neither a name nor a number"),
        ("C == 1 if True else C == 2", "is no comparison"),
        ("1 == 1", "'1 == 1' compares no property of a run"),
        ("C in 10", "'in' takes a list"),
        ("C == [10]", "'in' takes a list"),
        ("C is 10", "only ==, !=, <, <=, >, >=, in and not in compare"),
        ("C < 'ten'", "texts and numbers have no order"),
        ("", "the expression is empty"),
        ("C == 'a\nb", "not an expression"),
        ("(" * 500 + "C == 1" + ")" * 500, "not an expression"),
        ("not " * 400 + "C == 1", "nested too deeply"),
        ("C == 1 or " * 400 + "C == 2", f"an expression may have {MAX_LENGTH} characters"),
    ],
)
def test_a_mistake_is_one_line(grid: Study, text: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        select(grid, where=text)
    assert str(caught.value).startswith("--where")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_noise_is_chosen_or_refused(grid: Study) -> None:
    draw = random.Random(5)
    pieces = [
        *("C", "gamma", "class", "solver", "solver.", ".", "seed", "==", "!=", "<", "in", "not in"),
        *("and", "or", "not", "(", ")", "[", "]", ",", "1", "1e400", "-", '"SBP"', "'", "true"),
        *("lambda", ":", "=", "\n", "\\", "#", "\0", "é", "1j", "b''", "f'{C}'", "*", "await"),
    ]
    refused = 0
    for _ in range(600):
        text = " ".join(draw.choice(pieces) for _ in range(draw.randint(1, 8)))
        try:
            select(grid, where=text)
        except StudyError:
            refused += 1
    assert 300 < refused <= 600


def test_a_seed_that_a_deterministic_solver_does_not_have(
    tmp_path: Path, make_study: Callable[..., Study]
) -> None:
    board = {"dataset": "checkers", "dataset_params": {"n_train": 40, "n_test": 20}, "C": 1.0}
    task = {**board, "gamma": 10.0, "reference": False}
    whole = make_study(task=[task], solver=[{"name": "SMO"}, {"name": "Perceptron"}], seeds=2)
    part = select(whole, where="seed == 1")
    assert run_study(part, tmp_path, whole=whole, executor=InProcess()).planned == 1
    found = read_description(tmp_path)
    assert found is not None
    assert [solver["label"] for solver in found["solvers"]] == ["Perceptron"]
    none = select(whole, where='seed == 1 and class == "SMO"')
    with pytest.raises(StudyError, match="no run of the study is chosen; a deterministic solver"):
        run_study(none, tmp_path, whole=whole, executor=InProcess())


def test_only_what_is_chosen_is_prepared(grid: Study) -> None:
    part = select(grid, where='C == 1 and solver == "SDCA"')
    assert [task.label for task in part.task] == ["digits, C=1"]
    assert [entry.label for entry in part.solver] == ["SDCA"]
    cells = select(load_study("mpfp14-table2"), where="m == 100 and seed < 3 and class == 'VN'")
    assert {task.m for task in cells.tasks} == {100}  # type: ignore[attr-defined]
    assert {seed for _, _, seed in cells.selection.runs} == {0, 1, 2}  # type: ignore[union-attr]


def test_parts_that_are_no_product_add_up(tmp_path: Path, make_study: Callable[..., Study]) -> None:
    board = {
        "dataset": "checkers",
        "dataset_params": {"n_train": 40, "n_test": 20},
        "gamma": 10.0,
        "reference": False,
    }
    whole = make_study(
        task=[{**board, "C": [1.0, 2.0]}],
        solver=[{"name": "Perceptron"}, {"name": "Pegasos", "params": {"max_epochs": 1}}],
        seeds=2,
    )

    def run(where: str | None) -> tuple[int, str, list[tuple[str, str, int]]]:
        summary = run_study(select(whole, where=where), tmp_path, whole=whole, executor=InProcess())
        found = read_description(tmp_path)
        assert found is not None
        planned = [(run["task"], run["solver"], run["seed"]) for run in found["planned"]]
        return summary.planned, summary.part, planned

    odd = '(C == 1 and solver == "Pegasos") or (C == 2 and seed == 1 and class != "Pegasos")'
    one, two = "checkers, C=1", "checkers, C=2"
    first = [(one, "Pegasos", 0), (one, "Pegasos", 1), (two, "Perceptron", 1)]
    assert run(odd) == (3, f"where {odd}", first)
    cautions = Analysis(load_results(tmp_path)).cautions
    assert "Only a part of the study was run: 3 of 8 runs." in cautions
    assert run("C == 2") == (
        4,
        "1 of 2 tasks, where C == 2",
        [*first[:2], (two, "Perceptron", 0), first[2], (two, "Pegasos", 0), (two, "Pegasos", 1)],
    )
    assert run(None)[0] == 8
    assert read_description(tmp_path)["of"]["runs"] == 8  # type: ignore[index]


@pytest.mark.slow
def test_a_large_grid_is_planned_in_time(tmp_path: Path) -> None:
    """Seconds, not minutes: no step goes through all entries for each run."""
    values = ", ".join(str(number) for number in range(1, 5001))
    text = GRID.decode().replace("C = [1, 10]", f"C = [{values}]")
    whole = parse_study(text.encode(), where="grid.toml")
    planned = [
        {"task": task, "solver": solver, "seed": seed, "key": "k", "file": "f"}
        for task, solver, seed in whole.runs()
    ]
    now = {
        "tasks": [{"label": task.label} for task in whole.tasks],
        "solvers": [{"label": entry.label} for entry in whole.solvers],
        "planned": planned,
        "command": "run",
    }
    started = time.process_time()
    assert len(select(whole, where="C > 4999").tasks) == 1
    found = merged(now, None, whole, Scope(whole, whole).content(tmp_path))
    assert found["of"]["runs"] == len(planned) == 5001 * 3 * 2
    assert time.process_time() - started < 20
