"""The tutorial, command by command: from data of one's own to a report, killed on the way."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from marginbench.harness.results.journal import Journal
from marginbench.solvers.numeric.compiling import cache_folder

from ..faults.conftest import wait_for

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
# A block of the page, after a comment that says what it is: its note, language and text.
_BLOCK = re.compile(r"(?:<!-- ([^>]*?) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)
_TIMEOUT = 600


@pytest.mark.slow
def test_the_tutorial_works_as_it_is_written(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    # The commands of this environment first, and nothing cached but machine code.
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MARGINBENCH_CACHE": str(tmp_path / "cache"),
        "NUMBA_CACHE_DIR": str(cache_folder().parent),
    }
    results = work / "results" / "mine"
    commands = 0
    for note, language, text in _BLOCK.findall(PAGE.read_text()):
        if note.startswith("file: "):
            (work / note.removeprefix("file: ")).write_text(text)
        elif language == "sh" and note != "installed by the tests":
            for line in text.splitlines():
                commands += 1
                process = subprocess.Popen(
                    shlex.split(line) if note == "killed by the tests" else line,
                    shell=note != "killed by the tests",
                    cwd=work,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                if note == "killed by the tests":
                    # When a few records are there; it has no time to tidy up.
                    wait_for(
                        lambda end=process.poll: (
                            end() is not None or len(Journal(results).entries) >= 5
                        ),
                        _TIMEOUT,
                    )
                    assert process.poll() is None, f"{line} ended before it could be killed"
                    process.kill()
                said, _ = process.communicate(timeout=_TIMEOUT)
                assert (process.returncode == 0) == (note != "killed by the tests"), said
                assert "Traceback" not in said
    assert commands >= 9

    runs = pd.read_parquet(results / "runs.parquet")
    assert set(runs["status"]) <= {"converged", "budget"}
    assert not runs.duplicated(["task", "solver", "seed"]).any()
    per_solver = runs.groupby("solver")["seed"].nunique()
    assert per_solver.to_dict() == {"SMO": 1, "Pegasos": 3, "KernelRidge": 1}
    assert runs["task"].nunique() == 6
    page = (results / "report.html").read_text()
    for words in ("bank, C=10, gamma=0.5", "KernelRidge", "+1 = &#39;yes&#39;", "Findings"):
        assert words in page, words
    assert str(tmp_path) not in page
