"""The command of a finished study asks no worker, unless something has changed that matters."""

import pytest

from marginbench import DataError
from marginbench.harness.evaluation.svm import ReferenceWork
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.preflight import FACTS
from marginbench.harness.planning.report import preview
from marginbench.harness.study.toml import load_study

from .answers import Lenient

STUDY = """
name = "mine"
seeds = 1
[[task]]
dataset = "points.csv"
C = 1.0
gamma = 1.0
reference = {reference}
[[solver]]
name = "mine.py:Mine"
"""
SOLVER = """
from marginbench import Perceptron

class Mine(Perceptron):
    "A solver of a user."

    number = {number}
"""
POINTS = "x,y\n" + "".join(f"{place},{'yes' if place > 9 else 'no'}\n" for place in range(20))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study of a user's own solver on a user's own data."""
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine.toml").write_text(STUDY.format(reference="false"))
    (tmp_path / "mine.py").write_text(SOLVER.format(number=1))
    (tmp_path / "points.csv").write_text(POINTS)
    return tmp_path


@pytest.fixture
def command(folder):
    """Runs the study; how much was asked of the executor, and the summary."""

    def run():
        executor, study = Lenient(), load_study(folder / "mine.toml")
        summary = run_study(study, folder / "results", executor=executor)
        return len(executor.asked), summary

    return run


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("mine.py", SOLVER.format(number=2)),
        ("points.csv", POINTS.replace("19,yes", "19.5,yes")),
        ("mine.toml", STUDY.format(reference="false").replace("C = 1.0", "C = 2.0")),
    ],
)
def test_what_has_changed_is_asked_and_run_again(folder, command, file, content):
    command()
    before = (folder / file).read_text()
    (folder / file).write_text(content)
    asked, summary = command()
    assert asked > 0
    assert (summary.changed, summary.already_recorded) == (True, 0)
    (folder / file).write_text(before)
    _, summary = command()
    assert summary.already_recorded == 1


def test_only_what_is_lost_is_asked_for_by_a_command_with_nothing_left_to_do(
    folder, command, monkeypatch
):
    def fails(self, send):
        raise DataError("no optimum")

    (folder / "mine.toml").write_text(STUDY.format(reference="true"))
    with monkeypatch.context() as patch:
        patch.setattr(ReferenceWork, "run", fails)
        assert command()[0] > 0
        assert command()[0] > 0  # one that could not be had is asked for each time
    _, whole = command()
    asked, summary = command()
    assert (asked, summary.changed, summary.already_recorded) == (0, False, 1)
    assert summary.statuses == whole.statuses
    executor = Lenient()
    shown = preview(load_study(folder / "mine.toml"), folder / "results", executor, print)
    assert (executor.asked, shown.counts) == ([], {"recorded": 1})
    for lost in ("datasets/**/*.parquet", "references/*.json", "facts.json"):
        assert command()[0] == 0
        for path in folder.rglob(lost):
            path.unlink()
        assert command()[0] > 0
    (folder / "results" / FACTS).write_text('{"sources": 1')
    assert command()[0] > 0
    for path in (folder / "results" / "journal").iterdir():
        path.unlink()
    asked, summary = command()
    assert (asked > 0, summary.already_recorded) == (True, 0)
