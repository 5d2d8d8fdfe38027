"""Parts of a study: by names, by numbers, by expressions."""

import itertools
import random
import time
from pathlib import Path

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.manifest import Scope, merged
from marginbench.harness.results.description import read_description
from marginbench.harness.study.model import MAX_RUNS, Budget
from marginbench.harness.study.select import of_its_own, select
from marginbench.harness.study.toml import load_study

from .answers import InProcess
from .conftest import BOARD
from .test_study_file import FEASIBILITY, VALID, parse

GRID = """
name = "grid"
seeds = 2
[[task]]
label = "ours"
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
label = "S"
params = { nu = 0.5, max_epochs = [1, 2] }
[[solver]]
name = "SDCA"
"""
OURS = ["ours, C=1", "ours, C=10"]
OWN, LONG = VALID.replace('"SMO"', '"own.py:Own"\nparams = { tol = 0.5 }'), "A" * 101


@pytest.fixture(scope="module")
def grid():
    return parse(GRID)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Selections are made beside these files."""
    monkeypatch.chdir(tmp_path)
    for data in ("my data, v2.csv", f"{'b' * 120}.csv"):
        Path(data).write_text("x,y\n" + "1,a\n2,b\n" * 9)
    for file, name in (("own.py", "Own"), ("long.py", LONG), ("evil\u202e.py", "A")):
        Path(file).write_text(f"class {name}: pass\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "selection", "tasks", "solvers"),
    [
        (FEASIBILITY, {"datasets": ["EASY"]}, ["easy"], None),
        (FEASIBILITY, {"datasets": ["digits"]}, ["ten digits"], None),
        (FEASIBILITY, {"where": "m == 8 or n_train == 1"}, ["easy"], None),
        (FEASIBILITY, {"solvers": ["vn", "mpkfp"]}, None, ["VN", "with a kernel"]),
        (GRID, {"datasets": ["line, with BIAS", "ours"]}, ["line, with bias", *OURS], None),
        (GRID, {"datasets": ["ours, c=10"]}, ["ours, C=10"], None),
        (GRID, {"datasets": ["checkers,digits"]}, ["line, with bias", *OURS], None),
        (GRID, {"datasets": ["breast-cancer"]}, ["breast-cancer"], None),
        (GRID, {"solvers": ["s"]}, None, ["S, max_epochs=1", "S, max_epochs=2"]),
        (GRID, {"solvers": ["sdca, SBP"]}, None, ["SDCA", "S, max_epochs=1", "S, max_epochs=2"]),
        (GRID, {"solvers": ["SDCA", "LIBSVM"]}, None, ["SDCA", "LIBSVM"]),
        # Files by their paths, and in the study also by the name of the class.
        (VALID, {"datasets": ["my data, v2.csv"]}, ["my data, v2.csv"], None),
        # Room is left for a number.
        (VALID, {"datasets": [f"{'b' * 120}.csv"]}, ["b" * 96], None),
        (VALID, {"solvers": ["SMO", "own.py:Own"]}, None, ["SMO", "Own"]),
        (OWN, {"solvers": ["own.py:Own"]}, None, ["Own"]),
        (OWN, {"solvers": ["own"]}, None, ["Own"]),
    ],
)
def test_tasks_and_solvers_are_selected_by_label_or_name(text, selection, tasks, solvers):
    study = parse(text)
    chosen = select(study, **selection)
    for now, before, labels in (
        (chosen.tasks, study.tasks, tasks),
        (chosen.solvers, study.solvers, solvers),
    ):
        own = {entry.label: entry for entry in before}
        assert [entry.label for entry in now] == (list(own) if labels is None else labels)
        assert all(own.get(entry.label, entry) == entry for entry in now)


def test_seeds_and_timeout_are_changed_and_nothing_else():
    study = parse(FEASIBILITY)
    chosen = select(study, seeds=1, timeout=3)
    assert [task.instances for task in chosen.tasks] == [1, 1]
    assert (study.most_seeds, chosen.most_seeds) == (2, 1)
    assert chosen.budget == Budget(timeout=3.0)
    # A study does not have more instances than it says.
    assert select(study, seeds=9).tasks == study.tasks
    assert select(parse(VALID), seeds=MAX_RUNS).seeds == MAX_RUNS


def test_data_that_the_quickstart_lacks_make_a_study_of_their_own():
    quickstart = load_study("quickstart")
    tasks = select(quickstart, datasets=["my data, v2.csv", "heart"]).tasks
    study = of_its_own(quickstart, tasks, ["smo", "SBP"])
    assert study.name == "my-data-v2-heart-SMO-SBP"
    assert study.title == "SMO, SBP on my data, v2.csv, heart"
    # The same as in a study file, not what the quickstart sets.
    entries = [(entry.label, entry.params) for entry in study.solvers]
    assert entries == [("SMO", {}), ("SBP", {})]
    assert study.budget == Budget()
    # Without solvers those of the quickstart, under their names there.
    plain = of_its_own(quickstart, tasks, None)
    assert (plain.name, plain.solvers) == ("my-data-v2-heart", quickstart.solvers)
    for label, name in (("数据", "data"), ("A" * 100, "A" * 100)):
        named = tasks[0].model_copy(update={"label": label})
        assert of_its_own(quickstart, [named], None).name == name
    many = [tasks[0].model_copy(update={"label": f"table{number}"}) for number in range(30)]
    long = [of_its_own(quickstart, many, [solver]).name for solver in ("SMO", "SBP")]
    assert [len(name) for name in long] == [100, 100]
    assert long[0] != long[1]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("C == 10", lambda t, s, seed: t.C == 10),
        ('solver != "SDCA" and seed == 1', lambda t, s, seed: s.label != "SDCA" and seed == 1),
        ("class in ['SBP', 'SDCA'] and C < 5", lambda t, s, seed: t.C == 1),
        ('task == "line, with bias"', lambda t, s, seed: t.kernel == "linear"),
        ("kernel not in ['rbf']", lambda t, s, seed: t.kernel == "linear"),
        ("fit_intercept == true", lambda t, s, seed: t.fit_intercept),
        ("n_train == 100 or C == 1", lambda t, s, seed: t.C == 1 or t.kernel == "linear"),
        ("solver.max_epochs != 1", lambda t, s, seed: s.params.get("max_epochs") == 2),
        ("max_epochs in (1, 2)", lambda t, s, seed: s.name == "SBP"),
        # Of texts that are not names only the order matters.
        ('"A" < class == "SBP"', lambda t, s, seed: s.name == "SBP"),
        # What a run does not have compares as false, whatever is asked.
        ("gamma != 7", lambda t, s, seed: t.kernel == "rbf"),
        ("not gamma == 7", lambda t, s, seed: True),
        ("C > -1 and not (C == 1 or seed == 0)", lambda t, s, seed: t.C == 10 and seed == 1),
    ],
)
def test_an_expression_chooses_the_runs_of_which_it_is_true(grid, text, holds):
    runs = itertools.product(grid.task, grid.solver, range(grid.seeds))
    expected = {(t.label, s.label, seed) for t, s, seed in runs if holds(t, s, seed)}
    part = select(grid, where=text)
    assert part.selection.runs == expected
    # Only what is chosen is prepared.
    assert {task.label for task in part.task} == {task for task, _, _ in expected}
    assert {entry.label for entry in part.solver} == {solver for _, solver, _ in expected}


#: A selection of a study, and what is wrong with it.
WRONG = [
    *((VALID, {"timeout": float(text)}, f"the timeout must be a number of seconds > 0, not {text}")
      for text in ("nan", "inf", "0")),
    *((VALID, {"seeds": n}, f"the number of seeds must be from 1 to {MAX_RUNS}, not {n}")
      for n in (0, MAX_RUNS + 1)),
    (VALID, {"solvers": [","]}, "no solver is selected"),
    (VALID, {"solvers": ["MPLFP"]}, "MPLFP is a solver for studies of the kind 'feasibility'"),
    (VALID, {"solvers": ["mine.py"]}, "'mine.py' is a file; name the class in it too, as in "),
    # No table could show these.
    (VALID, {"solvers": [f"long.py:{LONG}"]}, "String should have at most 100 characters"),
    (VALID, {"solvers": ["evil\u202e.py:A"]}, "must hold printable characters only"),
    (GRID, {"datasets": ["our"]}, "unknown dataset 'our' (did you mean 'ours'?)"),
    # Cells are not made from the names of datasets.
    (FEASIBILITY, {"datasets": ["adult"]}, "unknown dataset 'adult' (known: easy, ldfp, ten"),
    (FEASIBILITY, {"solvers": ["with akernel"]}, "unknown solver 'with akernel' (did you mean"),
    (FEASIBILITY, {"where": "published == 1"}, "unknown name 'published'"),
    *((GRID, {"where": text}, words) for text, words in (
        ("Cc == 10", "unknown name 'Cc' (did you mean 'C'?)"),
        ("solver.max_epoch > 1", "unknown name 'solver.max_epoch' (did you mean 'solver.max_"),
        ('class == "SBQ"', "no run of the study is chosen"),
        ("C in [1, None]", "'[1, None]' is no name, number, text"),
        ("C == 10 is 10", "only ==, !=, <, <=, >, >=, in and not in compare"),
        ("C = 10", "not an expression (invalid syntax"),
        ("C", "'C' is no comparison"),
        ("C == {[1]}", "'{[1]}' is no name, number, text"),
        ("class_weight == 1", "unknown name 'class_weight'"),
        ("C == gamma()", "'gamma()' is no name, number, text"),
        *((f"C == {odd}", "is no name, number, text") for odd in ("1j", "b''", "f'{C}'", "-'a'")),
        ("lambda: C", "'lambda: C' is no comparison"),
        ("C == 1\0", "not an expression"),
        ("1 == 1", "'1 == 1' compares no property of a run"),
        ("C in 10", "'in' takes a list"),
        ("C is 10", "only ==, !=, <, <=, >, >=, in and not in compare"),
        ("C < 'ten'", "texts and numbers have no order"),
        ("", "not an expression"),
        ("(" * 500 + "C == 1" + ")" * 500, "not an expression"),
        ("not " * 3000 + "C == 1", "not an expression"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("text", "selection", "message"), WRONG)
def test_a_wrong_selection_is_refused_in_a_line(text, selection, message):
    with pytest.raises(StudyError) as caught:
        select(parse(text), **selection)
    said = str(caught.value)
    assert message in said
    assert said.isprintable()
    assert said.startswith("--where") == ("where" in selection)


def test_noise_is_chosen_or_refused(grid):
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


def test_a_seed_that_a_deterministic_solver_does_not_have(tmp_path, make_study):
    whole = make_study(task=[BOARD], solver=[{"name": "SMO"}, {"name": "Perceptron"}], seeds=2)
    part = select(whole, where="seed == 1")
    assert run_study(part, tmp_path, whole=whole, executor=InProcess()).planned == 1
    found = read_description(tmp_path)
    assert [solver["label"] for solver in found["solvers"]] == ["Perceptron"]
    none = select(whole, where='seed == 1 and class == "SMO"')
    with pytest.raises(StudyError, match="no run of the study is chosen; a deterministic solver"):
        run_study(none, tmp_path, whole=whole, executor=InProcess())


@pytest.mark.slow
def test_a_large_grid_is_planned_in_time(tmp_path):
    """Seconds, not minutes: no step goes through all entries for each run."""
    whole = parse(GRID.replace("C = [1, 10]", f"C = {[*range(1, 5001)]}"))
    now = {
        "tasks": [{"label": task.label} for task in whole.tasks],
        "solvers": [{"label": entry.label} for entry in whole.solvers],
        "planned": [
            {"task": task, "solver": solver, "seed": seed, "key": "k", "file": "f"}
            for task, solver, seed in whole.runs()
        ],
        "command": "run",
    }
    started = time.process_time()
    assert len(select(whole, where="C > 4999").tasks) == 1
    found = merged(now, None, whole, Scope(whole, whole).content(tmp_path))
    assert found["of"]["runs"] == 5001 * 3 * 2
    assert time.process_time() - started < 20
