"""Grids: which entries a list stands for, what they are called, and what is refused."""

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.study import grid
from marginbench.harness.study.grid import short
from marginbench.harness.study.model import SolverEntry
from marginbench.harness.study.svm import Study
from marginbench.harness.study.toml import parse_study

TASK = {"dataset": "digits", "gamma": 0.1, "C": 1.0}


SMO = {"name": "SMO"}
PARAMS = "params = { sizes = { value = [1, 2] }, tol = [0.1, 0.2] }\n"


def study(task=TASK, solver=SMO):
    return Study(name="grid", task=[task], solver=[solver])


def labels(entries):
    return [entry.label for entry in entries]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            {"C": [10.0, 0.1], "gamma": [0.5, 1e-5]},
            ["C=10, gamma=0.5", "C=10, gamma=1e-05", "C=0.1, gamma=0.5", "C=0.1, gamma=1e-05"],
        ),
        ({"gamma": [0.5], "C": [1.0, 2.0]}, ["gamma=0.5, C=1", "gamma=0.5, C=2"]),
        (
            {"kernel": ["rbf", "laplacian"], "dataset_params": {"n_train": [100], "n_test": 50}},
            ["kernel=rbf, n_train=100", "kernel=laplacian, n_train=100"],
        ),
        # Lists that go together.
        (
            {"C": [1.0, 2.0], "kernel": ["rbf"], "gamma": [0.1, 0.2], "zip": ["gamma", "C"]},
            ["C=1, kernel=rbf, gamma=0.1", "C=2, kernel=rbf, gamma=0.2"],
        ),
        (
            {"C": [1.0, 2.0], "gamma": [0.1, 0.2], "degree": [2, 3], "coef0": [0.0, 1.0]}
            | {"kernel": "poly", "zip": [["C", "gamma"], ["degree", "coef0"]]},
            [
                f"{first}, {second}"
                for first in ("C=1, gamma=0.1", "C=2, gamma=0.2")
                for second in ("degree=2, coef0=0", "degree=3, coef0=1")
            ],
        ),
    ],
)
def test_lists_make_every_combination_in_the_order_written(task, expected):
    found = study({"dataset": "checkers", **task}).task
    assert labels(found) == [f"checkers, {label}" for label in expected]
    # What a label says is so.
    for entry, words in zip(found, expected, strict=True):
        values = entry.model_dump() | entry.dataset_params
        for word in words.split(", "):
            name, _, value = word.partition("=")
            assert short(values[name]) == value


def test_datasets_and_parameters_of_all_tables_may_be_lists_and_a_label_is_the_stem():
    found = study(
        {"label": "ours", "dataset": ["digits", "checkers"], "C": [1.0, 2.0]},
        {"name": "SBP", "params": {"nu": ["reference", 0.5], "max_epochs": 3}},
    )
    assert labels(found.task)[1] == "ours, digits, C=2"
    assert [task.dataset for task in found.task] == ["digits"] * 2 + ["checkers"] * 2
    assert labels(found.solver) == ["SBP, nu=reference", "SBP, nu=0.5"]
    assert found.solver[1].params == {"nu": 0.5, "max_epochs": 3}
    solver = {"name": "mine.py:Mine", "params": {"tol": [0.1, 0.2], "nu": [5, 6]}}
    found = study(solver=solver | {"zip": ["tol", "params.nu"]}).solver
    assert labels(found) == ["Mine, tol=0.1, nu=5", "Mine, tol=0.2, nu=6"]
    assert [entry.params for entry in found] == [{"tol": 0.1, "nu": 5}, {"tol": 0.2, "nu": 6}]
    # No two values look alike.
    assert [*map(short, (True, 0.123456789, 1234567.0, [1, 2], 1000, 10**18))] == [
        *("true", "0.123456789", "1234567.0", "[1, 2]", "1000", "0xde0b6b3a7640000")
    ]


def test_a_parameter_may_be_a_list_itself():
    # Only a list needs it, and only a table of nothing else is it.
    tables = {"table": {"value": 3}, "more": {"value": [3], "unit": "s"}}
    params = {"sizes": {"value": [1, 2]}, "tol": [0.1, 0.2], **tables}
    found = study(solver={"name": "SMO", "params": params})
    for entry, tol in zip(found.solver, (0.1, 0.2), strict=True):
        assert entry.params == {"sizes": [1, 2], "tol": tol, **tables}
    # A list of lists is a grid over lists.
    several = study(solver={"name": "SMO", "params": {"sizes": [[1, 2], [3]]}})
    assert [entry.params["sizes"] for entry in several.solver] == [[1, 2], [3]]
    assert labels(several.solver) == ["SMO, sizes=[1, 2]", "SMO, sizes=[3]"]
    # Written as a file, its entries are those of the same study.
    text = f"name = 'grid'\n[[task]]\ndataset = 'digits'\n[[solver]]\nname = 'SMO'\n{PARAMS}"
    read = parse_study(text.encode(), where="grid.toml")
    again = parse_study(read.to_toml().encode(), where="written.toml")
    assert again == read
    assert [entry.params["sizes"] for entry in again.solver] == [[1, 2], [1, 2]]
    # An object has been read already: its lists are values.
    entry = SolverEntry(name="SMO", label="SMO", params={"sizes": [1, 2]})
    assert study(solver=entry).solver == (entry,)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"C": []}, "task[1].C: is an empty list"),
        ({"C": [1.0, 2.0, 1]}, "task[1].C: lists 1 twice"),
        (
            {"C": [1, 2], "gamma": [1], "zip": ["C", "gamma"]},
            "task[1].zip: C, gamma must have equal lengths, not [2, 1]",
        ),
        (
            {"C": [1, 2], "gamma": [1, 2], "zip": ["C", "gama"]},
            "task[1].zip: 'gama' holds no list (did you mean 'gamma'?)",
        ),
        ({"zip": ["C"]}, "task[1].zip: 'C' holds no list"),
        ({"C": [1.0], "zip": [["C"], ["C"]]}, "task[1].zip: names a list twice"),
        ({"C": [1.0], "zip": ["C", "C"]}, "task[1].zip: names a list twice"),
        ({"C": [1.0], "zip": "C"}, "task[1].zip: must be a list of names, as"),
        ({"C": [1.0], "zip": [["C"], ["C", 1]]}, "task[1].zip: must be a list of names, as"),
        ({"C": [1.0], "label": ""}, "Study: task[1].label = '': must not be empty"),
        ({"C": [1.0], "dataset": 3}, "Study: task[1].dataset = 3: should be a valid string"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(task, message):
    with pytest.raises(StudyError) as caught:
        study({"dataset": "digits", **task})
    assert str(caught.value).startswith(message)


def test_the_grids_of_a_table_make_as_many_entries_as_are_allowed(monkeypatch):
    monkeypatch.setattr(grid, "MAX_ENTRIES", 5)
    fewer, more = ({**TASK, "label": "a", "C": [*range(1, n)]} for n in (3, 5))
    table = [fewer, TASK, {**fewer, "label": "b"}]
    assert len(Study(name="grid", task=table, solver=[SMO]).task) == 5
    with pytest.raises(StudyError, match=r"\[\[task\]\] make more than 5 entries") as caught:
        Study(name="grid", task=[fewer, more], solver=[SMO])
    assert caught.value.at == ("task", 1)


def test_a_mistake_in_a_grid_names_the_line_and_the_entry_as_written():
    text = """name = "grid"
[[task]]
dataset = "digits"
C = [1, 2, 3]
[[task]]
dataset = "checkers"
gamma = [0.1, -1.0,
  0.2]
C = [1.0, 2.0]
[[solver]]
name = "SMO"
"""
    with pytest.raises(StudyError) as caught:
        parse_study(text.encode(), where="grid.toml")
    assert str(caught.value) == "grid.toml:7: task[2].gamma = -1.0: should be greater than 0"
    unknown = text.replace("-1.0", "1.0").replace("checkers", "chekers")
    with pytest.raises(StudyError, match=r"^grid.toml:6: task\[2\].dataset: unknown .*\)$"):
        parse_study(unknown.encode(), where="grid.toml")
    # Two grids of one dataset need names of their own.
    alike = text.replace('"checkers"', '"digits"').replace("[0.1, -1.0,\n  0.2]", "0.1")
    with pytest.raises(StudyError) as caught:
        parse_study(alike.encode(), where="grid.toml")
    assert str(caught.value) == (
        "grid.toml:5: two entries of [[task]] have the label 'digits, C=1' (case does not count); "
        "give each its own"
    )
