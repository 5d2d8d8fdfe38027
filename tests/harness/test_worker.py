"""Workers and their guardians: what a worker has started does not outlive it."""

import math
import os
import pickle
import signal
import subprocess
import sys

import pytest

from marginbench.harness.execution import guardian
from marginbench.harness.execution.worker import WorkerProcess
from marginbench.harness.jobs import Job, Limits, Work

from ..faults.conftest import running, wait_for

TREE = """
import os, subprocess, sys, time
from pathlib import Path
from marginbench.harness.jobs import Work
from dataclasses import dataclass

def sleeper(**options):
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], **options)

@dataclass(frozen=True)
class Starts(Work):
    note: str
    how: str = ""

    def run(self, send):
        started = [sleeper().pid, sleeper(start_new_session=True, env={}).pid]
        pid = os.fork()
        if pid == 0:
            os.setsid()
            started = [sleeper().pid]
            Path(self.note + "-2").write_text(str(started[0]))
            os._exit(0)
        os.waitpid(pid, 0)
        Path(self.note).write_text(" ".join(map(str, [os.getpid(), *started])))
        if self.how == "crash":
            os.abort()
        time.sleep(600)
"""


@pytest.fixture
def begin(tmp_path):
    """Begins a worker."""
    processes = []

    def begun():
        processes.append(WorkerProcess(tmp_path / "log"))
        return processes[-1]

    yield begun
    for process in processes:
        process.kill()


@pytest.fixture
def started(begin, tmp_path, monkeypatch):
    """Begins a worker whose job leaves children of every sort; it and the process ids of all."""
    (tmp_path / "starts_children.py").write_text(TREE)
    monkeypatch.syspath_prepend(tmp_path)

    def start(how=""):
        import starts_children

        process, note = begin(), tmp_path / "note"
        job = Job("", starts_children.Starts(str(note), how), Limits({}, 1000.0))
        process.send(pickle.dumps(job))
        wait_for(lambda: note.is_file() and len(note.read_text().split()) == 3)
        pids = [int(word) for word in note.read_text().split()]
        return process, [*pids, int((tmp_path / "note-2").read_text())]

    yield start
    sys.modules.pop("starts_children", None)


def left(pids):
    """Those of the processes that run."""
    found = {int(words.split()[0]) for words in running(lambda process: process.pid in pids)}
    return [pid for pid in pids if pid in found]


def test_killing_a_worker_kills_all_that_it_has_started(started):
    process, pids = started()
    assert left(pids) == pids
    family = [member.pid for member in process.family()]
    assert set(pids) <= set(family)
    process.kill()
    assert left(pids) == []


@pytest.mark.slow
def test_where_orphans_are_not_adopted_sessions_and_marks_are_killed(
    started, tmp_path, monkeypatch
):
    """As on macOS: only what leaves the session and empties its environment gets away."""
    program = tmp_path / "guardian.py"
    program.write_text(
        "import runpy, sys; sys.platform = 'darwin'\n"
        f"runpy.run_path({guardian.__file__!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(guardian, "__file__", str(program))
    process, pids = started("crash")
    wait_for(lambda: not process.alive)
    process.kill()
    assert left(pids) == [pids[2]]
    os.kill(pids[2], signal.SIGKILL)
    assert process.exit_words == "the process was killed by SIGABRT"


def test_cpu_seconds_of_children_count(begin):
    process = begin()
    wait_for(lambda: any(True for _ in process.receive(math.inf)))
    process.family()
    before = process.cpu_s()  # its own start costs as much
    process.send(pickle.dumps(Job("", _Burns(), Limits({}, 1000.0))))
    wait_for(lambda: process.family() and process.cpu_s() - before > 0.35)


class _Burns(Work):
    def run(self, send):
        code = "import time\nwhile time.process_time() < 0.2: pass"
        for _ in range(2):
            subprocess.run([sys.executable, "-S", "-c", code], check=True)


def test_modules_beside_the_current_folder_are_not_imported(begin, tmp_path, monkeypatch):
    for name in ("json", "numpy", "marginbench", "psutil"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)  # it may name the current folder
    process = begin()
    wait_for(lambda: process.alive and any(True for _ in process.receive(math.inf)))
    assert (tmp_path / "log").read_text() == ""
