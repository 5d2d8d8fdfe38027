"""docs/study-files.md: its studies are valid, and what it says of them is so; docs/tuning.md."""

import itertools
import re
import shlex
from pathlib import Path

import pytest

from marginbench.harness.errors import StudyError
from marginbench.harness.planning.report import overview
from marginbench.harness.study.select import select
from marginbench.harness.study.toml import parse_study

from .answers import InProcess

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "study-files.md").read_text(encoding="utf-8")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


STUDIES = blocks(PAGE, "toml")
ABOUT_TUNING = blocks((DOCS / "tuning.md").read_text(encoding="utf-8"), "toml")
#: Has a parameter that is a list.
OWN = """
from marginbench import SMO, hyperparameters

@hyperparameters
class MySolver(SMO):
    sizes: tuple = ()
"""


def completed(text):
    """A part of a study with what it leaves out."""
    if text.startswith("kind"):
        return text
    head = "" if text.startswith("name") else 'name = "example"\n'
    task = "" if "[[task]]" in text else '[[task]]\ndataset = "digits"\n'
    return head + text + task + ("" if "[[solver]]" in text else '[[solver]]\nname = "Pegasos"\n')


def labels_of(text):
    study = parse_study(completed(text).encode(), where="page.toml")
    return [entry.label for entry in (*study.tasks, *study.solvers)]


def found(words):
    """The only study of the page that holds these words."""
    [text] = [text for text in STUDIES if words in text]
    return text


@pytest.mark.parametrize("text", STUDIES + ABOUT_TUNING, ids=itertools.count())
def test_every_study_of_the_page_is_valid(text, tmp_path):
    (tmp_path / "my_solver.py").write_text(OWN)
    study = parse_study(completed(text).encode(), where="page.toml", folder=str(tmp_path))
    # Values of parameters that need data are checked in the run.
    assert overview(study, InProcess(), lambda line: None).pairs


def test_sizes_labels_and_parts_are_those_that_the_page_names():
    study = parse_study(STUDIES[0].encode(), where="page.toml")
    size = overview(study, InProcess(), lambda line: None).size
    assert f"`ok: {size}`" in PAGE.replace("\n", " ")
    for line in re.findall(r"^marginbench run my-study.toml --where .*$", PAGE, re.MULTILINE):
        selection = select(study, where=shlex.split(line)[-1]).selection
        assert 0 < len(selection.runs) < 30
    tasks = labels_of(found('dataset = ["digits"'))[:-1]
    assert len(tasks) == 12
    assert f'"{tasks[0]}" to "{tasks[-1]}"' in PAGE.replace("\n", " ")
    own = labels_of(found('label = "P"'))
    assert f'"{own[1]}" and "{own[2]}"' in PAGE.replace("\n", " ")
    assert len(labels_of(found('zip = ["C", "gamma"]'))) == 5


MISTAKES = (
    ("[budget]", "[budgt]"),
    ("timeout = 60.0", "timeout = -1.0"),
    ("C = [0.1, 1, 10]", "C = [0.1, 1, 1.0]"),
    ("max_epochs", "max_epoch"),
    ("max_epochs = 20", "max_epochs = 0"),
)
[MESSAGES] = blocks(PAGE, "text")


@pytest.mark.parametrize(
    ("mistake", "message"), list(zip(MISTAKES, MESSAGES.splitlines(), strict=True))
)
def test_messages_are_those_of_the_page(mistake, message):
    text = STUDIES[0].replace(*mistake)
    with pytest.raises(StudyError) as caught:
        overview(parse_study(text.encode(), where="my-study.toml"), InProcess(), lambda line: None)
    assert str(caught.value) == message


def test_names_of_expressions_are_those_of_the_page():
    names = PAGE[PAGE.index("| name | value |") :].split("\n\n")[0]
    study = parse_study(STUDIES[0].encode(), where="page.toml")
    task = study.tasks[0].model_copy(update={"kernel": "poly", "folds": 2})
    facets = {"task", "solver", "class", "seed", *task.facets}
    assert facets <= set(re.findall(r"`(\w+)`", names))
