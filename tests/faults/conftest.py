"""Commands as their users run them: processes of their own, in a folder and a cache of their own.

The long form of these tests, with more seeds, is chosen by ``MARGINBENCH_FAULTS=long``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from marginbench.harness.results.journal import Journal
from marginbench.solvers.numeric.compiling import cache_folder

LONG = os.environ.get("MARGINBENCH_FAULTS") == "long"
only_long = pytest.mark.skipif(not LONG, reason="MARGINBENCH_FAULTS=long is not set")

#: Short runs with a reference optimum.
STUDY = """
name = "small"
seeds = SEEDS
[[task]]
dataset = "checkers"
dataset_params = { n_train = 80, n_test = 40 }
gamma = 10.0
C = 1.0
[[solver]]
name = "Pegasos"
params = { max_epochs = EPOCHS }
"""
#: Columns that differ between two runs of the same.
CLOCKS = {
    "started_at", "wall_s", "cpu_s", "system_s", "compile_s", "evaluation_s", "data_s",
    "peak_memory_mb", "environment",
}  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def said(self):
        """What the command itself complained of, without the lines of its progress."""
        return [line for line in self.err.splitlines() if line.startswith("marginbench: ")]


@dataclass
class Place:
    """A folder with a study, ``small.toml``, and a cache."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self.write_study()
        self.environment = {
            **os.environ,
            "MARGINBENCH_CACHE": str(self.folder / "cache"),
            "NUMBA_CACHE_DIR": str(cache_folder().parent),
            "PYTHONWARNINGS": "ignore",
        }
        self.environment.pop("COLUMNS", None)

    def write_study(self, epochs=3, seeds=3, more=""):
        text = STUDY.replace("EPOCHS", str(epochs)).replace("SEEDS", str(seeds)) + more
        (self.folder / "small.toml").write_text(text, encoding="utf-8")

    def start(self, *arguments, **options):
        """Start a command in a session of its own."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        environment = self.environment | options.pop("env", {})
        # Where these tests run in the background of a script, Ctrl-C is ignored.
        handler = options.pop("interrupts", signal.default_int_handler)
        program = options.pop("program", ("-m", "marginbench"))
        return subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=self.folder,
            env=environment,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
            **options,
        )

    def end(self, process):
        """Wait for a command; none of its processes outlives it."""
        out, err = process.communicate(timeout=120)
        deadline = time.monotonic() + 10
        while left := running(lambda each: os.getsid(each.pid) == process.pid):
            assert time.monotonic() < deadline, f"left behind: {left}"
            time.sleep(0.02)
        return Ended(process.returncode, out or "", err or "")

    def command(self, *arguments, **options):
        return self.end(self.start(*arguments, **options))

    def leftovers(self):
        """Unfinished files, anywhere."""
        found = self.folder.rglob("*")
        return [path for path in found if ".writing-" in path.name or ".partial-" in path.name]


def running(chosen):
    """What the processes of which this holds are called by; those that have ended do not count."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if process.status() != psutil.STATUS_ZOMBIE and chosen(process):
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
    return found


def marked(token):
    """The processes that have a token in their environment: guardians and all that they started."""
    return running(lambda process: process.environ().get("MARGINBENCH_TEST") == token)


def numbers(results, *others):
    """What the records of a folder say, without clocks and these others; by key."""

    def rest(row):
        return {name: value for name, value in vars(row).items() if name not in {*CLOCKS, *others}}

    return {
        record.key: rest(record) | {"trace": [rest(point) for point in record.trace]}
        for record in Journal(results).records()
    }


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """What the records of the study say where nothing happens."""
    place = Place(tmp_path_factory.mktemp("undisturbed"))
    ended = place.command("run", "small.toml")
    assert ended.code == 0, ended.err
    return numbers(place.folder / "results" / "small")
