"""Studies: what a user's mistakes are answered with, and what a selection means."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginbench import Budget, run
from marginbench.harness.errors import SolverError, StudyError, UserError
from marginbench.harness.study.feasibility import FeasibilityStudy
from marginbench.harness.study.model import SolverEntry
from marginbench.harness.study.svm import Study, Task
from marginbench.harness.study.toml import load_study, parse_study

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


FEASIBILITY = """
kind = "feasibility"
name = "small"
[budget]
timeout = 20.0
[[cell]]
label = "easy"
generator = "ldfp"
tol = 0.0
m = 8
n = 100
kappa = 1.5
instances = 2
published = { MPLFP = 1.5, PCT = "TO" }
[[images]]
label = "ten digits"
dataset = "DIGITS"
gammas = [0.5, 2.0]
n_train = 100
n_validation = 50
stages = [5, 20]
[[method]]
name = "mplfp"
[[method]]
name = "MPKFP"
label = "with a kernel"
seeds = 1
params = { tol = 1e-3 }
"""


def message_and_line(error: BaseException) -> tuple[str, int | None]:
    """What is said of study.toml, and of which of its lines."""
    found = re.fullmatch(r"study\.toml(?::(\d+))?: (.*)", str(error))
    assert found, str(error)
    return found[2], int(found[1]) if found[1] else None


def changed_lines(text: str, old: str, new: str) -> range:
    """The lines that hold ``new`` once it has replaced ``old``, counted from 1."""
    first = text[: text.index(old)].count("\n") + 1
    return range(first, first + new.rstrip("\n").count("\n") + 1)


def parse(text: str) -> Study:
    study = parse_study(text.encode(), where="study.toml")
    assert isinstance(study, Study)
    return study


def parse_feasibility(text: str) -> FeasibilityStudy:
    study = parse_study(text.encode(), where="study.toml")
    assert isinstance(study, FeasibilityStudy)
    return study


def test_a_feasibility_study_is_read_with_its_defaults() -> None:
    study = parse_feasibility(FEASIBILITY)
    assert [task.label for task in study.tasks] == ["easy", "ten digits"]
    assert study.cell[0].published == {"MPLFP": 1.5, "PCT": "TO"}
    assert (study.images[0].dataset, study.images[0].instances) == ("digits", 1)
    assert [(entry.name, entry.label, entry.seeds) for entry in study.solvers] == [
        ("MPLFP", "mplfp", None),
        ("MPKFP", "with a kernel", 1),
    ]
    assert (study.budget.timeout, study.budget.memory) == (20.0, 4096.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'kind = "feasibility"',
            'kind = "feasability"',
            "kind = 'feasability' is not known (did you mean 'feasibility'?)",
        ),
        ("[[images]]", "[[image]]", "unknown table [[image]] (did you mean [[images]]?)"),
        ('[[method]]\nname = "mplfp"', '[[solver]]\nname = "mplfp"', "unknown table [[solver]] "),
        (
            'generator = "ldfp"',
            'generator = "ldpf"',
            "cell[1].generator = 'ldpf' is not known (did you mean 'ldfp'?)",
        ),
        ("m = 8\n", "", "the key 'cell[1].m' is missing"),
        ("gammas = [0.5, 2.0]", "gammas = []", "images[1].gammas"),
        (
            "n_train = 100",
            "dataset_params = { size = 3 }",
            "images[1]: digits: unknown parameter 'size' (known: positive)",
        ),
        (
            'name = "mplfp"',
            'name = "SMO"',
            "method[1].name: SMO is a solver for studies of the kind 'svm'",
        ),
        (
            'label = "ten digits"',
            'label = "Easy"',
            "two entries of [[cell]] and [[images]] have the label 'Easy'; give each its own",
        ),
        (
            'label = "with a kernel"',
            'label = "with a kernel"\n[[method]]\nname = "VN"\nlabel = "With a kernel"',
            "two entries of [[method]] have the label 'With a kernel'; give each its own",
        ),
    ],
)
def test_a_mistake_in_a_feasibility_study_is_one_line(old: str, new: str, message: str) -> None:
    assert old in FEASIBILITY
    with pytest.raises(StudyError) as caught:
        parse_feasibility(FEASIBILITY.replace(old, new))
    found, line = message_and_line(caught.value)
    assert found.startswith(message)
    assert not new or line in changed_lines(FEASIBILITY, old, new)


def test_a_feasibility_study_needs_cells_or_images() -> None:
    methods = FEASIBILITY[FEASIBILITY.index("[[method]]") :]
    with pytest.raises(StudyError, match=r"needs at least one \[\[cell\]\] or \[\[images\]\]"):
        parse_feasibility(f'kind = "feasibility"\nname = "small"\n{methods}')


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
            "unknown key 'budget.timeoutt' (did you mean 'timeout'?)",
        ),
        ("seeds = 2", "seedz = 2", "unknown key 'seedz' (did you mean 'seeds'?)"),
        (
            'dataset = "digits"',
            'dataset = "digts"',
            "task[1].dataset: unknown dataset 'digts' (did you mean 'digits'?)",
        ),
        (
            'name = "SMO"',
            'name = "SBQ"',
            "solver[1].name: unknown solver 'SBQ' (did you mean 'SBP'?)",
        ),
        (
            "gamma = 0.1",
            'kernel = "rbff"',
            "task[1].kernel = 'rbff' is not known (did you mean 'rbf'?)",
        ),
        ("seeds = 2", "seeds = 0", "seeds = 0: should be greater than or equal to 1"),
        ("seeds = 2", 'seeds = "2"', "seeds = '2': should be a valid integer"),
        (
            "gamma = 0.1",
            "gamma = inf",
            "task[1].gamma = inf: should be a finite number",
        ),
        (
            "timeout = 5.0",
            "timeout = -5.0",
            "budget.timeout = -5.0: should be greater than 0",
        ),
        ('name = "mine"', "", "the key 'name' is missing"),
        (
            'name = "mine"',
            'name = "my own"',
            "name = 'my own': may hold letters, digits, '.', '_' and '-', none of the "
            "last three first",
        ),
        (
            "[[solver]]",
            "[solver]",
            "[solver] is one table where a study has a list of them; write [[solver]]",
        ),
        (
            "[budget]\ntimeout = 5.0",
            "budget = 5.0",
            "budget = 5.0: write it as a table [budget]",
        ),
        ('[[solver]]\nname = "SMO"\n', "", "a study needs at least one [[solver]]"),
        (
            'name = "SMO"',
            'name = "SMO"\nparams = 3',
            "solver[1].params = 3: write it as a table, { key = value }",
        ),
        (
            'name = "SMO"',
            'name = "nowhere.py:Mine"',
            f"solver[1].name: no such file: {Path('nowhere.py').resolve()}",
        ),
        (
            'name = "SMO"',
            'name = "SMO"\nparams = { tol = "reference" }',
            "solver[1].params.tol = 'reference': only nu can be taken from the reference optimum",
        ),
        (
            'name = "SMO"',
            'name = "SMO"\nlabel = "a"\n[[solver]]\nname = "SBP"\nlabel = "A"',
            "two entries of [[solver]] have the label 'A'; give each its own",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_key_and_value(old: str, new: str, message: str) -> None:
    assert old in VALID
    with pytest.raises(UserError) as caught:
        parse(VALID.replace(old, new))
    found, line = message_and_line(caught.value)
    assert found == message
    assert not new or line in changed_lines(VALID, old, new)


TUNED = """
name = "tuned"
[tuning]
method = "halving"
folds = 3
[[task]]
dataset = "digits"
tune = { C = [0.1, 1], gamma = [0.1] }
[[solver]]
name = "SGD"
tune = { max_epochs = [1, 5] }
"""


def test_what_is_tuned_is_read() -> None:
    study = parse_study(TUNED.encode(), where="study.toml")
    assert isinstance(study, Study)
    assert (study.tuning.method, study.tuning.folds, study.tuning.resource) == (
        "halving",
        3,
        "points",
    )
    assert study.task[0].tune == {"C": [0.1, 1.0], "gamma": [0.1]}
    assert study.task[0].why_no_reference == (
        "its C and gamma are tuned: each solver has its own problem"
    )
    assert study.solver[0].tune == {"max_epochs": [1, 5]}
    # As a results folder stores it.
    assert Study.model_validate(study.model_dump()) == study


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"halving"', '"halfing"', "tuning.method = 'halfing' is not known (did you mean 'halv"),
        ("folds = 3", "fold = 3", "unknown key 'tuning.fold' (did you mean 'folds'?)"),
        ("folds = 3", "folds = 1", "tuning.folds = 1: should be greater than or equal to 2"),
        ("folds = 3", "folds = 3\nvalidation = 0.5", "tuning: validation and folds exclude each"),
        ("folds = 3", 'resource = "kernel_evals"', "tuning.resource = 'kernel_evals' doubles up"),
        ("C = [0.1, 1]", "C = []", "task[1].tune.C"),
        ("C = [0.1, 1]", "C = [0, 1]", "C must be greater than 0"),
        ("C = [0.1, 1]", "c = [1]", "c cannot be tuned; give values of C, gamma"),
        ("gamma = [0.1]", "gamma = [-1]", "gamma"),
        ("gamma = [0.1]", "degree = [2]", "degree cannot be tuned; give values of C, gamma"),
        ("C = [0.1, 1]", 'C = ["a"]', "task[1].tune.C[1] = 'a': should be a valid number"),
        ("tune = { C", "C = 1\ntune = { C", "C is tuned and given as well; remove one"),
        (
            "tune = { max",
            "params = { max_epochs = 1 }\ntune = { max",
            "max_epochs is in params and",
        ),
        ("max_epochs = [1, 5]", "max_epochs = []", "solver[1].tune.max_epochs"),
    ],
)
def test_a_mistake_in_what_is_tuned_is_one_line(old: str, new: str, message: str) -> None:
    assert old in TUNED
    with pytest.raises(StudyError) as raised:
        parse_study(TUNED.replace(old, new, 1).encode(), where="study.toml")
    assert re.match(r"study.toml:\d+: ", str(raised.value))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_studies_of_the_page_on_tuning_are_valid() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "tuning.md"
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    limited, tuned = (parse_study(block.encode(), where="tuning.md") for block in blocks)
    assert isinstance(limited, Study)
    assert set(limited.budget.rules) == {"kernel_evals", "iterations", "stop"}
    assert isinstance(tuned, Study)
    assert tuned.task[0].tune
    assert tuned.solver[1].tune


def test_feasibility_methods_are_not_tuned() -> None:
    text = FEASIBILITY.replace('name = "mplfp"', 'name = "mplfp"\ntune = { tol = [0.1] }')
    with pytest.raises(StudyError, match=r"method\[1\].tune: only solvers of SVM tasks are tuned"):
        parse_study(text.encode(), where="study.toml")


def test_bad_syntax_names_the_line() -> None:
    with pytest.raises(StudyError, match=r"^study\.toml: not valid TOML: .*line 2"):
        parse('name = "x"\nseeds = = 3\n')


@pytest.mark.parametrize("section", ["task", "solver"])
def test_a_study_needs_tasks_and_solvers(section: str) -> None:
    head, task, solver = VALID.partition("[[task]]")[0], VALID.index("[[task]]"), VALID.index("[[s")
    kept = VALID[solver:] if section == "task" else VALID[task:solver]
    with pytest.raises(StudyError, match=f"{section} is empty; a study needs at least one"):
        parse(f"{section} = []\n{head}{kept}")


@pytest.mark.parametrize(
    "replaced",
    [
        {"seeds = 2": "seeds = 0", "C = 10": "C = 0", 'name = "SMO"': 'nam = "SMO"'},
        {'"digits"': '"digit"', 'name = "SMO"': 'name = "SMOO"\n[[solver]]\nname = "SPB"'},
        {"seeds = 2": "sedes = 2", '"digits"': '"digit"', 'name = "SMO"': 'name = "SMOO"'},
    ],
    ids=["keys", "names", "both"],
)
def test_all_mistakes_are_told_a_line_each(replaced: dict[str, str]) -> None:
    text = VALID
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(StudyError) as caught:
        parse(text)
    places = [int(line.split(":")[1]) for line in str(caught.value).splitlines()]
    assert len(places) == 3
    assert places == sorted(places)


@pytest.mark.parametrize(("count", "last"), [(20, "k19'"), (30, ": 10 more mistakes")])
def test_no_more_mistakes_are_told_than_can_be_read(count: int, last: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse(VALID + "".join(f"k{number} = 0\n" for number in range(count)))
    assert len(caught.value.lines) == min(count, 21)
    assert last in caught.value.lines[-1]


class OfTheirOwn:
    """Stands for a solver's class."""


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: Study(name="x", task=[{"dataset": "digits"}], solver=["SMO", OfTheirOwn]),
            "Study: solver[1] = 'SMO': give a dictionary such as {'name': 'SMO'}",
        ),
        (
            lambda: Study(name="x", task=[{"dataset": np.ones(3)}], solver=[{"name": "SMO"}]),
            "Study: task[1].dataset = array([1., 1., 1.]): should be a valid string",
        ),
        (
            lambda: Study(name="../x", task=[{"dataset": "digits"}], solver=[{"name": "SMO"}]),
            "Study: name = '../x': may hold letters, digits,",
        ),
        (lambda: Task(dataset="digits", C=-1), "Task: C = -1: should be greater than 0"),
        (lambda: Budget(timout=1), "Budget: unknown key 'timout' (did you mean 'timeout'?)"),
        (lambda: run("quickstart", out="a\0b"), r"'a\x00b': no path can hold a NUL character"),
        (lambda: run("quickstart", solvers=[OfTheirOwn]), "OfTheirOwn'> is no name; give a text"),
    ],
)
def test_a_mistake_in_python_is_a_line(made: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError) as caught:
        made()
    assert message in caught.value.lines[0]


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


def test_an_unknown_study_suggests_the_nearest() -> None:
    with pytest.raises(StudyError, match=r"unknown study 'quikstart' \(did you mean 'quickstart'"):
        load_study("quikstart")
    with pytest.raises(StudyError, match=r"no such study file: nowhere/study\.toml"):
        load_study(f"nowhere{os.sep}study.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('nam = "x"', "unknown key 'nam' (did you mean 'name'?)"),
        ('[[task]]\ndataste = "digits"', "unknown key 'task[1].dataste' (did you mean 'dataset'?)"),
        ('[[tasks]]\ndataset = "digits"', "unknown table [[tasks]] (did you mean [[task]]?)"),
    ],
)
def test_a_misspelt_key_is_named_before_the_one_that_is_then_missing(
    text: str, message: str
) -> None:
    rest = '[[solver]]\nname = "SMO"\n'
    head = "" if text.startswith("nam") else 'name = "x"\n'
    tasks = '[[task]]\ndataset = "digits"\n' if text.startswith("nam") else ""
    with pytest.raises(StudyError) as caught:
        parse_study(f"{head}{text}\n{tasks}{rest}".encode(), where="study.toml")
    found, line = message_and_line(caught.value)
    assert found.startswith(message)
    assert line == (1 if text.startswith("nam") else 3 if "dataste" in text else 2)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("evil\u202egnp", "must hold printable characters only"),
        ("zero\u200dwidth", "must hold printable characters only"),
        ("filler\u3164", "must hold printable characters only"),
        ("two\nlines", "must hold printable characters only"),
        ("   ", "must hold a letter, a digit or a sign, not only spaces and accents"),
        ("\u0301\u0301", "must hold a letter, a digit or a sign, not only spaces and accents"),
        ("x" * 101, "must have at most 100 characters, not 101"),
        ("x" * 10_000, "must have at most 100 characters, not 10000"),
    ],
)
@pytest.mark.parametrize("part", [SolverEntry, Task], ids=["solver", "task"])
def test_a_label_that_no_table_could_show(part: Any, label: str, message: str) -> None:
    named = {"name": "SMO"} if part is SolverEntry else {"dataset": "digits"}
    with pytest.raises(StudyError, match=message):
        part(**named, label=label)


@pytest.mark.parametrize("label", ["naïve Bayes", "支持向量机", "ไทย", "e\u0301", "x" * 100])
def test_labels_in_any_script(label: str) -> None:
    assert SolverEntry(name="SMO", label=label).label == label
