"""Damaged results: commands name every damage, show nothing that is wrong, and mend it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from marginbench.harness.results.journal import Journal

from .conftest import Place, numbers

pytestmark = pytest.mark.slow
STUDY = """
name = "columns"
title = "A cell"
kind = "feasibility"
[[cell]]
label = "small"
generator = "ldfp"
m = 10
n = 100
tol = 0.0
instances = 2
[[method]]
name = "MPLFP"
"""
RUN, REPORT = ("run", "columns.toml"), ("report", "results/columns")


@pytest.fixture(scope="module")
def ran(make_place: Callable[[Path], Place], tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place with the results of two runs."""
    place = make_place(tmp_path_factory.mktemp("damaged"))
    (place.folder / "columns.toml").write_text(STUDY)
    place.environment["COLUMNS"] = "300"  # no line of the report is broken
    ended = place.command(*RUN)
    assert ended.code == 0, ended.err
    return place


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_a_damaged_record_is_named_by_report_and_redone_by_run(ran: Place) -> None:
    results = ran.folder / "results" / "columns"
    journal, before = Journal(results), numbers(results)
    (path,), entry = journal.segments(), journal.entries[-1]
    flip(path, entry.offset + entry.size // 2)
    words = re.compile(rf"{path.name}: line 5 \(byte {entry.offset}\) is damaged")
    ended = ran.command(*REPORT)
    assert (ended.code, ended.err) == (0, "")
    assert words.search(ended.out)
    assert words.search((results / "report.html").read_text())
    ended = ran.command(*RUN)
    assert ended.code == 0
    assert words.search(ended.err)
    assert "the run is done again" in ended.err
    assert "1 of 2 runs already recorded" in ended.err
    assert "2 runs: 2 converged" in ended.out
    assert numbers(results) == before
    assert "damaged" not in ran.command(*RUN).err


def test_a_damaged_description_is_never_shown(ran: Place) -> None:
    results = ran.folder / "results" / "columns"
    path = results / "study.json"
    intact, page = path.read_bytes(), (results / "report.html").read_bytes()
    flip(path, intact.index(b'"title": "') + 12)
    ended = ran.command(*REPORT)
    assert (ended.code, ended.out) == (2, "")
    assert ended.said == [
        "marginbench: results/columns/study.json: damaged (its content does not match its "
        "digest); run the study again to write it anew"
    ]
    assert (results / "report.html").read_bytes() == page
    ended = ran.command(*RUN)
    assert ended.code == 0
    assert "moved to _study.json.damaged, written anew" in ended.err
    assert "2 of 2 runs already recorded" in ended.err
    assert path.read_bytes() == intact
