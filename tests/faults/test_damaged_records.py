"""Damaged results: commands name every damage, show nothing that is wrong, and mend it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.results.journal import Journal

#: A study of each kind, of one quick run.
STUDIES = {
    "svm": """
name = "board"
title = "A board"
seeds = 2
[[task]]
dataset = "checkers"
dataset_params = { n_train = 200, n_test = 100 }
gamma = 10.0
C = 1.0
[[solver]]
name = "SMO"
seeds = 2
""",
    "feasibility": """
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
""",
}
#: Columns that differ between two runs of the same code on the same data.
TIMINGS = frozenset({
    "started_at", "wall_s", "cpu_s", "system_s", "compile_s", "evaluation_s", "data_s",
    "peak_memory_mb", "environment",
})  # fmt: skip


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs ``marginbench`` as a process of its own: exit code, output and errors."""
    cache = tmp_path_factory.mktemp("cache")

    def run(*arguments: object) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "marginbench", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=600,
            env=os.environ | {"MARGINBENCH_CACHE": str(cache), "COLUMNS": "200"},
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.slow) for kind in ("feasibility", "svm")],
)
def ran(
    request: pytest.FixtureRequest, command: Command, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the study file and ``results``, two runs of a study of a kind."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "study.toml").write_text(STUDIES[request.param])
    code, _, err = command("run", folder / "study.toml", "--out", folder / "results")
    assert code == 0, err
    return folder


def values(record: Any) -> dict[str, Any]:
    """What two runs of the same code have in common."""
    found = {k: v for k, v in asdict(record).items() if k not in TIMINGS}
    found["trace"] = [
        {k: v for k, v in state.items() if k not in TIMINGS} for state in found["trace"]
    ]
    return found


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_damaged_record_is_named_by_report_and_redone_by_run(ran: Path, command: Command) -> None:
    results = ran / "results"
    journal = Journal(results)
    (path,), entry = journal.segments(), journal.entries[-1]
    before = values(journal.load(entry))
    flip(path, entry.offset + entry.size // 2)
    words = re.compile(rf"{path.name}: line 5 \(byte {entry.offset}\) is damaged")
    code, out, err = command("report", results)
    assert (code, err) == (0, "")
    assert words.search(out)
    assert words.search((results / "report.html").read_text())
    code, out, err = command("run", ran / "study.toml", "--out", results)
    assert code == 0
    assert words.search(err)
    assert "the run is done again" in err
    assert "1 of 2 runs already recorded" in err
    assert "2 runs: 2 converged" in out
    journal = Journal(results)
    assert values(journal.load(journal.current[entry.cell])) == before
    code, _, err = command("run", ran / "study.toml", "--out", results)
    assert (code, "damaged" in err) == (0, False)


def test_a_damaged_description_is_never_shown(ran: Path, command: Command) -> None:
    results = ran / "results"
    path = results / "study.json"
    intact, page = path.read_bytes(), (results / "report.html").read_bytes()
    title = intact.index(b'"title": "') + 12
    flip(path, title)
    code, out, err = command("report", results)
    assert (code, out) == (2, "")
    assert err == (
        f"marginbench: {path}: damaged (its content does not match its digest); run the study "
        "again to write it anew\n"
    )
    assert (results / "report.html").read_bytes() == page
    code, out, err = command("run", ran / "study.toml", "--out", results)
    assert code == 0
    assert "moved to _study.json.damaged, written anew" in err
    assert "2 of 2 runs already recorded" in err
    assert path.read_bytes() == intact
