"""What a selection on the command line makes of a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.study.model import Budget, SolverEntry
from marginbench.harness.study.select import of_its_own, select
from marginbench.harness.study.svm import Study
from marginbench.harness.study.toml import load_study, parse_study

VALID = """
name = "mine"
seeds = 2
[[task]]
dataset = "digits"
gamma = 0.1
C = 10
[[solver]]
name = "SMO"
"""
FEASIBILITY = """
kind = "feasibility"
name = "small"
[[cell]]
label = "easy"
generator = "ldfp"
tol = 0.0
m = 8
n = 100
instances = 2
[[cell]]
label = "none"
generator = "lap"
tol = 1e-2
m = 3
n = 30
instances = 1
[[method]]
name = "MPLFP"
[[method]]
name = "PCT"
label = "PCT, 3 steps"
params = { max_iter = 3 }
"""


def parse(text: str) -> Study:
    study = parse_study(text.encode(), where="study.toml")
    assert isinstance(study, Study)
    return study


@pytest.mark.parametrize(
    ("selection", "tasks", "solvers"),
    [
        ({"datasets": ["EASY"]}, ["easy"], ["MPLFP", "PCT, 3 steps"]),
        ({"datasets": ["lap"]}, ["none"], ["MPLFP", "PCT, 3 steps"]),
        ({"datasets": ["lap,ldfp"]}, ["none", "easy"], ["MPLFP", "PCT, 3 steps"]),
        ({"solvers": ["pct"]}, ["easy", "none"], ["PCT, 3 steps"]),
        ({"solvers": ["PCT, 3 steps", "MPLFP"]}, ["easy", "none"], ["PCT, 3 steps", "MPLFP"]),
        ({"solvers": ["vn"]}, ["easy", "none"], ["VN"]),
    ],
)
def test_tasks_and_methods_are_selected_by_label_or_name(
    selection: dict[str, list[str]], tasks: list[str], solvers: list[str]
) -> None:
    chosen = select(parse_study(FEASIBILITY.encode(), where="f"), **selection)
    assert [task.label for task in chosen.tasks] == tasks
    assert [entry.label for entry in chosen.solvers] == solvers


def test_fewer_seeds_are_fewer_instances() -> None:
    chosen = select(parse_study(FEASIBILITY.encode(), where="f"), seeds=1, timeout=3)
    assert [task.instances for task in chosen.tasks] == [1, 1]
    assert chosen.budget.timeout == 3.0
    # A study does not have more instances than it says.
    more = select(parse_study(FEASIBILITY.encode(), where="f"), seeds=9)
    assert [task.instances for task in more.tasks] == [2, 1]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"datasets": ["eazy"]}, "unknown dataset 'eazy' (did you mean 'easy'?)"),
        # Cells are not made from the names of datasets.
        ({"datasets": ["digits"]}, "unknown dataset 'digits' (known: easy, ldfp, none, lap)"),
        ({"solvers": ["MPLP"]}, "unknown solver 'MPLP' (did you mean 'MPLFP'?)"),
        ({"solvers": ["PCT, 4 stepps"]}, "unknown solver '4 stepps' (did you mean 'PCT, 3 steps'"),
    ],
)
def test_a_wrong_selection_of_a_feasibility_study_is_refused(
    selection: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(StudyError) as caught:
        select(parse_study(FEASIBILITY.encode(), where="f"), **selection)
    assert str(caught.value).startswith(message)


def test_selection_keeps_what_is_named() -> None:
    study = load_study("quickstart")
    chosen = select(study, datasets=["Checkers"], solvers=["smo,SBP"], seeds=1, timeout=3)
    assert [task.label for task in chosen.task] == ["checkers"]
    assert chosen.task[0] in study.task
    assert [entry.label for entry in chosen.solver] == ["SMO-textbook", "SBP"]
    assert (chosen.seeds, chosen.budget.timeout) == (1, 3.0)
    assert chosen.budget.memory == study.budget.memory


def test_data_that_the_quickstart_lacks_make_a_study_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my data.csv").write_text("x,y\n" + "1,a\n2,b\n" * 9)
    quickstart = load_study("quickstart")
    tasks = select(quickstart, datasets=["my data.csv", "heart"]).tasks
    study = of_its_own(quickstart, tasks, ["smo", "SBP"])
    assert (study.name, study.title) == (
        "my-data-heart-SMO-SBP",
        "SMO, SBP on my data.csv, heart",
    )
    # The same as in a study file, not what the quickstart sets.
    entries = [(entry.label, entry.params) for entry in study.solvers]
    assert entries == [("SMO", {}), ("SBP", {})]
    assert study.budget == Budget()
    assert (study.description, study.cost) == ("", "")
    assert type(study).model_validate(study.model_dump()).name == study.name
    # Without solvers those of the quickstart, under their names there.
    assert of_its_own(quickstart, tasks, None).solvers == quickstart.solvers
    many = of_its_own(quickstart, tasks * 9, ["SMO"]).name
    assert len(many) == 100
    assert many != of_its_own(quickstart, tasks * 9, ["SBP"]).name


def test_selection_takes_every_task_of_a_dataset() -> None:
    study = load_study("quickstart")
    labels = [task.label for task in select(study, datasets=["digits"]).task]
    assert labels == [task.label for task in study.task if task.dataset == "digits"]


def test_the_label_of_a_grid_means_all_that_it_stands_for() -> None:
    study = parse(
        VALID.replace("C = 10", 'C = [1, 10]\nlabel = "ours"')
        + 'label = "S"\nparams = { tol = [0.1, 0.2] }\n[[solver]]\nname = "LIBSVM"\n'
    )
    assert select(study, datasets=["OURS"]).task == study.task
    assert select(study, datasets=["ours, C=10"]).task == study.task[1:]
    assert select(study, datasets=["digits"]).task == study.task
    assert select(study, solvers=["s"]).solver == study.solver[:2]
    assert select(study, solvers=["SMO"]).solver == study.solver[:2]
    with pytest.raises(StudyError, match=r"unknown dataset 'our' \(did you mean 'ours'\?\)"):
        select(study, datasets=["our"])


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
        ({"seeds": 0}, "the number of seeds must be from 1 to 200000, not 0"),
        ({"timeout": -1.0}, "the timeout must be a number of seconds > 0, not -1"),
        ({"timeout": float("nan")}, "the timeout must be a number of seconds > 0, not nan"),
        ({"solvers": [","]}, "no solver is selected"),
    ],
)
def test_a_wrong_selection_is_refused(selection: dict[str, object], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        select(parse(VALID), **selection)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_solver_of_another_kind_and_a_file_without_a_class_are_told_apart() -> None:
    quickstart, cells = load_study("quickstart"), load_study("mpfp14-table2")
    with pytest.raises(StudyError, match="MPLFP is a solver for studies of the kind 'feasibility'"):
        select(quickstart, solvers=["MPLFP"])
    with pytest.raises(StudyError, match="SMO is a solver for studies of the kind 'svm'"):
        select(cells, solvers=["SMO"])
    with pytest.raises(StudyError, match=r"'mine.py' is a file; .*mine.py:MySolver"):
        select(quickstart, solvers=["mine.py"])


def test_a_file_whose_name_no_table_could_show_is_refused(tmp_path: Path) -> None:
    study = load_study("quickstart")
    name = "A" * 101
    for file, cls, message in (
        ("evil\u202e.py", "A", r"its name must hold printable characters only"),
        ("long.py", name, r"its label must have at most 100 characters, not 101"),
    ):
        (tmp_path / file).write_text(f"class {cls}: pass\n", encoding="utf-8")
        with pytest.raises(StudyError, match=message) as raised:
            select(study, solvers=[f"{tmp_path / file}:{cls}"])
        assert "\u202e" not in str(raised.value)
