"""Study files: what they are read as, and what a user's mistakes are answered with."""

import random
import re
import tomllib

import numpy as np
import pytest

from marginbench import Budget, run
from marginbench.data_loaders import find
from marginbench.harness.errors import StudyError, UserError
from marginbench.harness.study.model import SolverEntry, StudyFile
from marginbench.harness.study.svm import Study, Task
from marginbench.harness.study.toml import load_study, parse_study, study_names
from marginbench.harness.words import MESSAGE_LIMIT

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
[[cell]]
label = "easy"
generator = "ldfp"
tol = 0.0
m = 8
n = 100
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
TASKS = FEASIBILITY[FEASIBILITY.index("[[cell]]") : FEASIBILITY.index("[[method]]")]
TUNED = """
name = "tuned"
[tuning]
method = "halving"
seed = 0
folds = 3
[[task]]
dataset = "digits"
tune = { C = [0.1, 1], gamma = [0.1] }
[[solver]]
name = "SGD"
tune = { max_epochs = [1, 5] }
"""


def parse(text):
    return parse_study(text.encode(), where="study.toml")


def mistakes(text):
    """The line and the message of each mistake of a study file."""
    with pytest.raises(UserError) as caught:
        parse(text)
    matches = [re.fullmatch(r"study\.toml(?::(\d+))?: (.*)", line) for line in caught.value.lines]
    return [(int(m[1]) if m[1] else None, m[2]) for m in matches if m]


def test_width_and_C_come_from_the_dataset_where_they_are_left_out():
    task, source = parse(VALID.replace("gamma = 0.1\nC = 10", "")).task[0], find("digits")
    assert (task.gamma, task.C) == (source.default_gamma, source.default_C)
    # All else has the defaults of the page.
    assert (task.degree, task.coef0, task.fit_intercept, task.reference) == (3, 0.0, False, True)
    cell, images = parse(FEASIBILITY).tasks
    assert (cell.kappa, images.unit_norm, images.instances) == (1.0, True, 1)


def test_a_folder_of_the_users_does_not_hide_a_registered_dataset(tmp_path):
    (tmp_path / "digits").mkdir()
    (tmp_path / "mine.toml").write_text(VALID)
    (task,) = load_study(tmp_path / "mine.toml").tasks
    assert (task.dataset, task.folder) == ("digits", None)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (VALID, "timeout =", "timeoutt =", "unknown key 'budget.timeoutt' (did you mean 'timeo"),
        (VALID, '"digits"', '"digts"', "task[1].dataset: unknown dataset 'digts' (did you mean"),
        (VALID, '"SMO"', '"SBQ"', "solver[1].name: unknown solver 'SBQ' (did you mean 'SBP'?)"),
        (VALID, "C = 10", 'kernel = "rbff"', "task[1].kernel = 'rbff' is not known (did you"),
        (VALID, "C = 10", 'kernel = "precomputed"', "task[1].kernel = 'precomputed' is not known"),
        (VALID, "C = 10", 'kernel = "poly"\ncoef0 = inf', "task[1].coef0 = inf: should be a fini"),
        (VALID, "seeds = 2", "seeds = 0", "seeds = 0: should be greater than or equal to 1"),
        (VALID, "seeds = 2", 'seeds = "2"', "seeds = '2': should be a valid integer"),
        (VALID, '"digits"', '""', "task[1].dataset = '': must not be empty"),
        (VALID, "gamma = 0.1", "gamma = inf", "task[1].gamma = inf: should be a finite number"),
        (VALID, "[budget]", "[budget]\ncheckpoint_factor = 1.009", "budget.checkpoint_factor = 1."),
        (VALID, "timeout = 5.0", 'zp = ["C"]', "unknown key 'budget.zp' (known: timeout, cpu_time"),
        (VALID, "C = 10", 'label = ""', "task[1].label = '': must not be empty"),
        (VALID.strip(), '"mine"', '"my own"', "name = 'my own': may hold letters, digits, '.', "),
        (VALID, "[[solver]]", "[solver]", "solver = {'name': 'SMO'}: must be a list; for one of t"),
        (VALID, "[budget]\ntimeout", "budget", "budget = 5.0: must be a table, { key"),
        (VALID, '[[solver]]\nname = "SMO"\n', "", "a study needs at least one [[solver]]"),
        (VALID, '"SMO"', '"SMO"\nparams = 3', "solver[1].params = 3: must be a table, { key"),
        (VALID, '"SMO"', '"nowhere.py:Mine"', "solver[1].name: no such file: /"),
        (VALID, '"SMO"', '"SMO"\nparams = { tol = "reference" }', "solver[1].params.tol: only nu"),
        (FEASIBILITY, '= "feasi', '= "feasa', "kind = 'feasability' is not known (did you mean"),
        (FEASIBILITY, TASKS, "", "a feasibility study needs at least one [[cell]] or [[images]]"),
        (FEASIBILITY, "m = 8\n", "", "the key 'cell[1].m' is missing"),
        (FEASIBILITY, "n_train = 100", "dataset_params.size = 3", "images[1].dataset_params: dig"),
        (FEASIBILITY, '"mplfp"', '"mplfp"\nother_problem = true', "method[1].other_problem: is fo"),
        (FEASIBILITY, '"mplfp"', '"mplfp"\ntune = { tol = [0.1] }', "method[1].tune: is for solve"),
        (FEASIBILITY, '"ten digits"', '"Easy"', "two entries of [[cell]] and [[images]] have the"),
        (TUNED, "folds = 3", "folds = 3\nvalidation = 0.5", "tuning: validation and folds exclude"),
        (TUNED, "folds = 3", 'resource = "kernel_evals"', "tuning.resource = 'kernel_evals' doub"),
        (FEASIBILITY, "[5, 20]", "[20, 5]", "images[1].stages = [20, 5]: numbers of iterations mu"),
        (TUNED, "C = [0.1, 1]", "C = [inf]", "task[1].tune = {'C': [inf], 'gamma': [0.1]}: C must"),
        (TUNED, "C = [0.1, 1]", "C = [0, 1]", "task[1].tune = {'C': [0, 1], 'gamma': [0.1]}: C m"),
        (TUNED, "gamma = [0.1]", "degree = [2]", "task[1].tune = {'C': [0.1, 1], 'degree': [2]}: "),
        (TUNED, "tune = { C", "C = 1\ntune = { C", "task[1].tune = {'C': [0.1, 1], 'gamma': [0.1"),
        (TUNED, "tune = { m", "params.max_epochs = 1\ntune = { m", "solver[1].tune.max_epochs: is"),
    ],
)
def test_a_mistake_is_one_line_that_names_line_key_and_value(text, old, new, message):
    assert old in text
    [(line, words)] = mistakes(text.replace(old, new, 1))
    assert words.startswith(message)
    first = text[: text.index(old)].count("\n") + 1
    assert not new or line in range(first, first + new.count("\n") + 1)


def test_all_mistakes_are_told_a_line_each_if_they_can_be_read():
    names = VALID.replace('"digits"', '"digit"').replace('name = "SMO"', 'name = "SMOO"')
    keys = VALID.replace("seeds = 2", "sedes = 2\ntitel = 3")
    values = VALID.replace("seeds = 2", "seeds = 0").replace("= 5.0", "= -5.0")
    for text, lines in ((names, [7, 11]), (keys, [3, 4]), (values, [3, 5])):
        assert [line for line, _ in mistakes(text) if line] == lines
    # A misspelt key is named before the one that is then missing.
    for old, new, line in (("dataset", "dataste", 7), ("[[task]]", "[[tasks]]", 6)):
        place, words = mistakes(VALID.replace(old, new))[0]
        assert (place, words[:17]) == (line, "unknown key 'task")
    for number, last in ((20, "unknown key"), (21, "1 more mistake"), (30, "10 more mistakes")):
        told = mistakes(VALID + "".join(f"k{key} = 0\n" for key in range(number)))
        assert len(told) == min(21, number)
        assert told[-1][1].startswith(last)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: Study(name="x", task=[{"dataset": np.ones(3)}], solver=["SMO"]),
            "Study: task[1].dataset = array([1., 1., 1.]): should be a valid string\n"
            "Study: solver[1] = 'SMO': must be a table, { key = value }; in Python, a dict",
        ),
        (lambda: Task(dataset="digits", C=-1), "Task: C = -1: should be greater than 0"),
        (lambda: Budget(timout=1), "Budget: unknown key 'timout' (did you mean 'timeout'?)"),
        (lambda: run("quickstart", solvers=[1]), "1 is no name; give a text, such as 'SMO' or"),
        (lambda: load_study("quikstart"), "unknown study 'quikstart' (did you mean 'quickstart'"),
        (lambda: load_study("nowhere.toml"), "no such study file: nowhere.toml"),
        (lambda: load_study("nowhere/study"), "no such study file: nowhere/study"),
        (
            lambda: parse('name = "x"\nseeds = = 3\n'),
            "study.toml: not valid TOML: Invalid value (at line 2",
        ),
    ],
)
def test_a_mistake_in_python_or_in_a_whole_file_is_a_line(made, message):
    with pytest.raises(UserError) as caught:
        made()
    assert str(caught.value).startswith(message)


def test_names_are_found_in_any_case_and_labels_are_made_unique():
    study = parse(VALID.replace('"digits"', '"DIGITS"') + '[[solver]]\nname = "smo"\n')
    assert [task.dataset for task in study.task] == ["digits"]
    entries = [(entry.name, entry.label) for entry in study.solver]
    assert entries == [("SMO", "SMO"), ("SMO", "smo-2")]


def test_a_solver_file_is_looked_for_beside_the_study(tmp_path):
    (tmp_path / "mine.py").write_text("class Mine: pass\n")
    path = tmp_path / "study.toml"
    path.write_text(VALID.replace('"SMO"', '"mine.py:Mine"'))
    study = load_study(path)
    assert study.solver[0].name == f"{(tmp_path / 'mine.py').resolve()}:Mine"
    assert study.solver[0].label == "Mine"
    path.write_text(VALID.replace('"SMO"', '"other.py:Mine"'))
    with pytest.raises(StudyError, match=r"no such file: .*other\.py"):
        load_study(path)
    assert SolverEntry(name="/a:b/mine.py:Mine", label="x").class_name == "Mine"


#: Each value is the number of its line, or of the line where its list begins.
FORMS = """first = 1 # [task] in a comment
title = 2 # seeds = 1
"quoted key" = 3
dotted.a.b = 4
list = [
  5,
  5,
]
[table]
key = 10
[table.sub]
key = 0xC
[[task]]
C = 14.0
[task.params]
x = 16
[[task]]
  C = 18.0
  params = { y = 19, z.w = [19] }
[[solver]]
x = 21
"""


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        nested = isinstance(item, dict | list)
        yield from leaves(item, (*path, name)) if nested else [((*path, name), item)]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_place_has_the_line_on_which_it_is_written_or_its_table(ends):
    file = StudyFile("study.toml", FORMS.replace("\n", ends))
    lines = dict(leaves(tomllib.loads(FORMS)))
    assert {path: file.line(path) for path in lines} == lines
    assert (file.line(("task", 0)), file.line(("task", 0, "gamma")), file.line(("seeds",))) == (
        13, 13, None
    )  # fmt: skip
    assert file.at(("task", 1, "C", "x")) == "study.toml:18"
    assert file.at(("cell", 0)) == "study.toml"


#: What replaces or joins pieces of a study: keys and values that are nearly right, and noise.
PIECES = (
    *("[", "]", "[[", "]]", "{", "}", "=", ",", ".", "#", "\n", '"', "'", '"""', "'''", "\\", "\0"),
    *("-1", "0", "1e999", "nan", "true", "9" * 30, "0x" + "f" * 5000, "9" * 5000, "1979-05-27"),
    *("[1, 2]", "[]", "{}", "[[1], [2]]", "{ value = [1] }", '"reference"', '"\\u202e"', "é", "\r"),
    *("C", "zip", "zip = ['C']\n", "label = ''\n", "params = [1]\n", "seeds = [1, 2]\n"),
    *("[task]\n", "[[task]]\n", "[solver.params]\n", "[[solver]]\n", "[budget]\n", "[tuning]\n"),
    *("C = [0.1, 1]\n", "gamma = [1.0, 'x']\n", 'kind = "feasibility"\n', "[" * 3000),
)


def mutated(text, draw):
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(text) + 1)
        stop = min(len(text), start + draw.choice((0, 0, 1, 3, 20)))
        if draw.random() < 0.5:  # at the beginning of a line, where whole keys stand
            start = stop = text.rfind("\n", 0, start) + 1
        text = text[:start] + draw.choice(PIECES) + text[stop:]
    return text


def test_a_spoilt_study_is_read_or_refused_in_a_line_for_each_mistake():
    draw, names = random.Random(1), study_names()
    texts = [FORMS, *(load_study(name).to_toml() for name in names)]
    refused = 0
    for _ in range(120):
        text = mutated(draw.choice(texts), draw)
        content = text.encode("utf-8", "surrogatepass")
        if draw.random() < 0.05:
            content = content[: draw.randrange(len(content))] + b"\xff"
        try:
            parse_study(content, where="study.toml")
        except StudyError as error:
            refused += 1
            for line in str(error).split("\n"):
                assert line.startswith("study.toml")
                assert line.isprintable()
                assert len(line) <= MESSAGE_LIMIT
    assert 50 < refused < 120


def test_numbers_of_numpy_are_pythons_own():
    def study(whole, number):
        entry = {"dataset": "checkers", "dataset_params": {"n_train": whole(50)}}
        solver = {"name": "Pegasos", "params": {"max_epochs": whole(2)}}
        task = [{**entry, "C": [number(1), number(2)]}]
        return Study(name="x", seeds=whole(3), task=task, solver=[solver])

    assert study(np.int64, np.float64) == study(int, float) != study(int, float).with_seeds(4)
    written = study(int, float).to_toml()
    assert study(np.int32, np.float32).to_toml() == written
    assert "budget" not in written  # nor anything else that was not set
