"""The tutorial, command by command: from data of one's own to a report, killed on the way."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from marginbench.harness.results.journal import Journal
from marginbench.solvers.numeric.compiling import cache_folder

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
# A block of the page, after a comment that says what it is: its note, language and text.
_BLOCK = re.compile(r"(?:<!-- ([^>]*?) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)
_TIMEOUT = 600

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(tmp_path):
    """The commands of this environment first, and nothing cached but machine code."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MARGINBENCH_CACHE": str(tmp_path / "cache"),
        "NUMBA_CACHE_DIR": str(cache_folder().parent),
    }


def test_the_tutorial_works_as_it_is_written(tmp_path, environment):
    work = tmp_path / "work"
    work.mkdir()
    commands = 0
    for note, language, text in _BLOCK.findall(PAGE.read_text()):
        if note.startswith("file: "):
            (work / note.removeprefix("file: ")).write_text(text)
        elif language == "sh" and note != "installed by the tests":
            for line in text.splitlines():
                commands += 1
                if note == "killed by the tests":
                    _start_and_kill(line, work, environment)
                else:
                    _run(line, work, environment)
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
    assert str(tmp_path) not in page


def _run(line, work, environment):
    done = subprocess.run(
        line, shell=True, cwd=work, env=environment, capture_output=True, text=True,
        timeout=_TIMEOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr


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
