"""The tutorial, command by command: from data of one's own to a report, killed on the way."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from marginbench.harness.results.journal import Journal
from marginbench.solvers.numeric.compiling import cache_folder

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
# A block of the page, after a comment that says what it is.
_BLOCK = re.compile(
    r"(?:<!-- (?P<note>[^>]*?) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL
)
_TIMEOUT = 600

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Block:
    """A file to write, or commands to run, perhaps to be killed."""

    file: str
    text: str
    killed: bool = False


def blocks():
    found = []
    for match in _BLOCK.finditer(PAGE.read_text()):
        note = match["note"] or ""
        file = note.removeprefix("file: ") if note.startswith("file: ") else ""
        if note == "installed by the tests":
            continue
        if file or match["language"] == "sh":
            found.append(Block(file, match["text"], note == "killed by the tests"))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tutorial")


@pytest.fixture(scope="module")
def environment(folder):
    """The commands of this environment first, and nothing cached but machine code."""
    binaries = Path(sys.executable).parent
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": path,
        "MARGINBENCH_CACHE": str(folder / "cache"),
        "NUMBA_CACHE_DIR": str(cache_folder().parent),
    }


def test_the_tutorial_works_as_it_is_written(folder, environment):
    work = folder / "work"
    work.mkdir()
    commands = 0
    for block in blocks():
        if block.file:
            (work / block.file).write_text(block.text)
            continue
        for line in block.text.splitlines():
            commands += 1
            if block.killed:
                _start_and_kill(line, work, environment)
                continue
            done = subprocess.run(
                line, shell=True, cwd=work, env=environment, capture_output=True, text=True,
                timeout=_TIMEOUT, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr
    assert commands >= 9

    runs = pd.read_parquet(work / "results" / "mine" / "runs.parquet")
    assert set(runs["status"]) <= {"converged", "budget"}
    assert not runs.duplicated(["task", "solver", "seed"]).any()
    per_solver = runs.groupby("solver")["seed"].nunique()
    assert per_solver.to_dict() == {"SMO": 1, "Pegasos": 3, "KernelRidge": 1}
    assert runs["task"].nunique() == 6
    page = (work / "results" / "mine" / "report.html").read_text()
    for words in ("bank, C=10, gamma=0.5", "KernelRidge", "+1 = &#39;yes&#39;", "Findings"):
        assert words in page, words
    assert str(folder) not in page


def _start_and_kill(line, work, environment):
    """Start a command, kill it when a few records are there, and leave no time to tidy up."""
    started = subprocess.Popen(
        shlex.split(line), cwd=work, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    results = work / "results" / "mine"
    deadline = time.monotonic() + _TIMEOUT
    while len(Journal(results).entries) < 5:
        assert started.poll() is None, f"{line} ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    started.send_signal(signal.SIGKILL)
    started.wait()
