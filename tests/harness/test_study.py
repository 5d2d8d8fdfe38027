"""Studies: what a user's mistakes are answered with, and what a selection means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marginbench.harness.errors import SolverError, StudyError
from marginbench.harness.selection import select
from marginbench.harness.study import SolverEntry
from marginbench.harness.study_file import load_study, parse_study, study_names
from marginbench.harness.svm.study import Study, Task

VALID = """
name = "mine"
seeds = 2
[budget]
timeout = 5.0
[[task]]
dataset = "digits"
gamma = 0.1
C = 10
[[solver]]
name = "SMO"
"""


def parse(text: str) -> Study:
    return parse_study(text.encode(), where="study.toml")


def test_a_valid_study_is_read_with_its_defaults() -> None:
    study = parse(VALID)
    assert study.task == (Task(dataset="digits", label="digits", gamma=0.1, C=10.0),)
    assert study.solver == (SolverEntry(name="SMO", label="SMO"),)
    assert (study.seeds, study.budget.timeout, study.budget.memory) == (2, 5.0, 4096.0)


def test_the_file_and_python_build_the_same_object() -> None:
    built = Study(
        name="mine",
        seeds=2,
        budget={"timeout": 5.0},
        task=[{"dataset": "digits", "gamma": 0.1, "C": 10.0}],
        solver=[{"name": "SMO"}],
    )
    assert parse(VALID) == built


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "timeout = 5.0",
            "timeoutt = 5.0",
            "study.toml: unknown key 'budget.timeoutt' (did you mean 'timeout'?)",
        ),
        ("C = 10", "c = 10", "study.toml: unknown key 'task[1].c' (did you mean 'C'?)"),
        ("seeds = 2", "seedz = 2", "study.toml: unknown key 'seedz' (did you mean 'seeds'?)"),
        (
            'dataset = "digits"',
            'dataset = "digts"',
            "study.toml: task[1].dataset: unknown dataset 'digts' (did you mean 'digits'?)",
        ),
        (
            'name = "SMO"',
            'name = "SBQ"',
            "study.toml: solver[1].name: unknown solver 'SBQ' (did you mean 'SBP'?)",
        ),
        (
            "gamma = 0.1",
            'kernel = "rbff"',
            "study.toml: task[1].kernel = 'rbff' is not known (did you mean 'rbf'?)",
        ),
        ("seeds = 2", "seeds = 0", "study.toml: seeds = 0: should be greater than or equal to 1"),
        ("seeds = 2", 'seeds = "2"', "study.toml: seeds = '2': should be a valid integer"),
        ("C = 10", "C = -1.0", "study.toml: task[1].C = -1.0: should be greater than 0"),
        (
            "gamma = 0.1",
            "gamma = inf",
            "study.toml: task[1].gamma = inf: should be a finite number",
        ),
        (
            "timeout = 5.0",
            "timeout = -5.0",
            "study.toml: budget.timeout = -5.0: should be greater than 0",
        ),
        ('name = "mine"', "", "study.toml: the key 'name' is missing"),
        (
            'name = "SMO"',
            'name = "SMO"\nparams = { tol = "reference" }',
            "study.toml: solver[1].params.tol = 'reference': only nu can be taken from the "
            "reference optimum",
        ),
        (
            'name = "SMO"',
            'name = "SMO"\nlabel = "a"\n[[solver]]\nname = "SBP"\nlabel = "A"',
            "study.toml: two entries of [[solver]] have the label 'A'; give each its own",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_key_and_value(old: str, new: str, message: str) -> None:
    assert old in VALID
    with pytest.raises(StudyError) as caught:
        parse(VALID.replace(old, new))
    assert str(caught.value) == message


def test_bad_syntax_names_the_line() -> None:
    with pytest.raises(StudyError, match=r"^study\.toml: not valid TOML: .*line 2"):
        parse('name = "x"\nseeds = = 3\n')


@pytest.mark.parametrize("section", ["task", "solver"])
def test_a_study_needs_tasks_and_solvers(section: str) -> None:
    head, task, solver = VALID.partition("[[task]]")[0], VALID.index("[[task]]"), VALID.index("[[s")
    kept = VALID[solver:] if section == "task" else VALID[task:solver]
    with pytest.raises(StudyError, match=f"{section} is empty; a study needs at least one"):
        parse(f"{section} = []\n{head}{kept}")


def test_parameters_of_a_dataset_are_checked() -> None:
    with pytest.raises(StudyError, match=r"task\[1\]: .*unknown parameter 'n_tran'"):
        parse(VALID.replace('"digits"', '"checkers"\ndataset_params = { n_tran = 5 }'))


def test_several_mistakes_are_counted() -> None:
    with pytest.raises(StudyError, match=r"\(and 1 more\)$"):
        parse(VALID.replace("seeds = 2", "seeds = 0").replace("C = 10", "C = 0"))


def test_names_are_found_in_any_case_and_labels_are_made_unique() -> None:
    study = parse(VALID.replace('"digits"', '"DIGITS"') + '[[solver]]\nname = "smo"\n')
    assert [task.dataset for task in study.task] == ["digits"]
    assert [(entry.name, entry.label) for entry in study.solver] == [
        ("SMO", "SMO"),
        ("SMO", "smo-2"),
    ]


def test_width_and_C_come_from_the_dataset_where_they_are_left_out() -> None:
    task = parse(VALID.replace("gamma = 0.1\nC = 10", "")).task[0]
    assert task.gamma is not None
    assert task.gamma > 0
    assert task.C is not None
    linear = parse(VALID.replace("gamma = 0.1", 'kernel = "linear"')).task[0]
    assert linear.kernel_description == {"name": "linear"}


def test_a_solver_file_is_looked_for_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine: pass\n")
    path = tmp_path / "study.toml"
    path.write_text(VALID.replace('"SMO"', '"mine.py:Mine"'))
    study = load_study(path)
    assert study.solver[0].name == f"{(tmp_path / 'mine.py').resolve()}:Mine"
    assert study.solver[0].label == "Mine"
    path.write_text(VALID.replace('"SMO"', '"other.py:Mine"'))
    with pytest.raises(SolverError, match=r"no such file: .*other\.py"):
        load_study(path)


def test_shipped_studies_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "quickstart" in study_names()
    for name in study_names():
        study = load_study(name)
        assert study.name == name


def test_an_unknown_study_suggests_the_nearest() -> None:
    with pytest.raises(StudyError, match=r"unknown study 'quikstart' \(did you mean 'quickstart'"):
        load_study("quikstart")
    with pytest.raises(StudyError, match=r"no such study file: nowhere/study\.toml"):
        load_study(f"nowhere{os.sep}study.toml")


def test_selection_keeps_what_is_named() -> None:
    study = load_study("quickstart")
    chosen = select(study, datasets=["Checkers"], solvers=["smo,SBP"], seeds=1, timeout=3)
    assert [task.label for task in chosen.task] == ["checkers"]
    assert chosen.task[0] in study.task
    assert [entry.label for entry in chosen.solver] == ["SMO", "SBP"]
    assert (chosen.seeds, chosen.budget.timeout) == (1, 3.0)
    assert chosen.budget.memory == study.budget.memory


def test_selection_takes_every_task_of_a_dataset() -> None:
    study = load_study("quickstart")
    labels = [task.label for task in select(study, datasets=["digits"]).task]
    assert labels == [task.label for task in study.task if task.dataset == "digits"]


def test_a_label_may_have_a_comma() -> None:
    study = parse(VALID.replace('dataset = "digits"', 'dataset = "digits"\nlabel = "a, b"'))
    assert select(study, datasets=["A, b"]).task == study.task


def test_a_selected_file_keeps_its_parameters(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("class Own: pass\n")
    study = parse(VALID.replace('"SMO"', f'"{file}:Own"\nparams = {{ tol = 0.5 }}'))
    for name in (f"{file}:Own", "own"):
        assert select(study, solvers=[name]).solver == study.solver


def test_selection_adds_what_the_study_does_not_have(tmp_path: Path) -> None:
    study = parse(VALID)
    chosen = select(study, datasets=["breast-cancer"], solvers=["LIBSVM"])
    assert [task.dataset for task in chosen.task] == ["breast-cancer"]
    assert chosen.task[0].gamma is not None
    assert chosen.task[0].C is not None
    assert chosen.solver == (SolverEntry(name="LIBSVM", label="LIBSVM"),)
    file = tmp_path / "own.py"
    file.write_text("class Own: pass\n")
    added = select(study, solvers=["SMO", f"{file}:Own"])
    assert [entry.label for entry in added.solver] == ["SMO", "Own"]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"datasets": ["digist"]}, "unknown dataset 'digist' (did you mean 'digits'?)"),
        ({"solvers": ["Pegassos"]}, "unknown solver 'Pegassos' (did you mean 'Pegasos'?)"),
        ({"seeds": 0}, "the number of seeds must be from 1 to 10000, not 0"),
        ({"timeout": -1.0}, "the timeout must be a number of seconds > 0, not -1"),
        ({"timeout": float("nan")}, "the timeout must be a number of seconds > 0, not nan"),
        ({"solvers": [","]}, "no solver is selected"),
    ],
)
def test_a_wrong_selection_is_refused(selection: dict[str, object], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        select(parse(VALID), **selection)  # type: ignore[arg-type]
    assert str(caught.value) == message
