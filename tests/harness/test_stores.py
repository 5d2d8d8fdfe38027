"""Commands and studies on stores, and looks at them while they go on."""

import json
import random
import re
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from marginbench.harness.errors import InterruptedRunError
from marginbench.harness.execution import runner
from marginbench.harness.execution.runner import run_study
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.jobs import Started
from marginbench.harness.planning import status
from marginbench.harness.planning.merging import OF_THE_MACHINE
from marginbench.harness.planning.status import Monitor
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.stores import synced

from .conftest import board_study

pytest.importorskip("obstore", reason="of the extra 'cloud' and the group 'dev'")

_ONE_RUN = threading.Lock()


class Counting(InProcess):
    """Counts the runs; may wait before one, or end there; each may take a while."""

    def __init__(self, seen, before=lambda number: None, longest=0.0):
        self.seen, self.before, self.longest = seen, before, longest

    def execute(self, jobs):
        events = super().execute(jobs)
        while True:
            # The harness takes a process to do one run at a time.
            with _ONE_RUN:
                event = next(events, None)
            if event is None:
                return
            is_run = isinstance(event, Started) and len(event.job.tag) == 64
            if is_run:
                self.seen[event.job.tag] += 1
                self.before(self.seen.total())
            yield event
            time.sleep(is_run * random.uniform(0.1, 1.0) * self.longest)


@pytest.fixture(scope="module")
def board():
    """Two solvers on one task with three seeds."""
    solvers = [{"name": "Perceptron"}, {"name": "Pegasos", "params": {"max_epochs": 1}}]
    return board_study(seeds=3, solver=solvers)


@pytest.fixture(scope="module")
def alone(board, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "results"
    run_study(board, folder, executor=InProcess())
    return folder


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def begun(store, tmp_path, monkeypatch):
    """Begins a command on a machine with a mirror of its own: what runs a study there."""

    def begin(machine):
        monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / machine))
        command = ExitStack()
        folder, exchange = command.enter_context(synced(f"file://{store}", print))

        def run(study, executor):
            with command:
                options = {"executor": executor, "exchange": exchange}
                return run_study(study, folder, command="the command", **options)

        return run, folder

    return begin


def values(folder):
    """What the records that count say, without clocks and machines."""
    journal = Journal(folder)
    assert not journal.damages
    return {
        record.key: {
            k: repr(v) for k, v in vars(record).items() if k not in {*OF_THE_MACHINE, "trace"}
        }
        for record in journal.records()
    }


def test_two_machines_share_a_study(board, store, alone, begun, monkeypatch):
    monkeypatch.setattr(runner, "LOOK_S", 0.0)
    seen = Counter()
    together = threading.Barrier(2, timeout=60)

    def before(number):
        if number <= 2:
            together.wait()  # both are in the middle of it

    commands = [begun("here"), begun("there")]
    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(run, board, Counting(seen, before, 0.4)) for run, _ in commands]
    for summary in (each.result() for each in ended):
        assert sum(summary.statuses.values()) == summary.planned == 6
    assert len(seen) == 6
    assert seen.total() <= 8  # what both begin at the same moment
    for folder in (store, *(folder for _, folder in commands)):
        assert values(folder) == values(alone)


def test_an_interrupted_command_pushes_what_it_has(board, store, alone, begun):
    def before(number):
        if number == 4:
            raise KeyboardInterrupt

    seen = Counter()
    run, _ = begun("here")
    with pytest.raises(InterruptedRunError) as caught:
        run(board, Counting(seen, before))
    words = r"interrupted; 3 of 6 runs are recorded in .*; run the same .* resume: the command"
    assert re.fullmatch(words, str(caught.value))
    assert sum(caught.value.summary.statuses.values()) == 3
    assert len(values(store)) == 3
    # Nothing is done again, also by who has no mirror yet.
    run, _ = begun("there")
    assert run(board, Counting(seen)).already_recorded == 3
    # A store is a results folder.
    assert values(store) == values(alone)
    assert {path.name for path in store.iterdir()} == {"study.json", "journal", "sources"}


def test_a_look_reads_only_what_is_new_and_shows_what_runs(board, tmp_path, monkeypatch):
    looks, read = [], []
    environment_of = status._environment

    def counted(folder, entry):
        read.append(entry)
        return environment_of(folder, entry)

    monkeypatch.setattr(status, "_environment", counted)
    folder = tmp_path / "results"
    monitor = Monitor(folder)
    executor = Counting(Counter(), lambda number: looks.append(monitor.look()))
    run_study(board, folder, executor=executor)
    assert [(look.done, look.left, len(look.running)) for look in looks] == [
        (number, 6 - number, 1) for number in range(6)
    ]
    assert all(look.commands == 1 for look in looks)
    assert len(read) == 5
    look = monitor.look()
    assert (look.done, look.running, look.left_words) == (6, (), "")
    (machine,) = look.machines.values()
    assert (machine.done, machine.failed, machine.running) == (6, 0, 0)
    assert [*look.in_words()][:2] == ["board: 6 of 6 runs recorded", "3 converged, 3 budget"]


@pytest.fixture
def stored(alone, store):
    """A store with the results of the study."""
    return shutil.copytree(alone, store, ignore=shutil.ignore_patterns("runs.parquet", ".*"))


def test_the_commands_about_results_take_stores(stored, run, tmp_path):
    code, out, _ = run("report", f"file://{stored}")
    assert (code, out) == (0, f"report: {stored}/report.html\n")
    assert (stored / "report.html").is_file()
    page = tmp_path / "page.html"
    for place in (str(stored), f"file://{stored}"):
        code, out, _ = run("watch", place, "--once", "--json", "--html", str(page))
        found = json.loads(out)
        assert (code, found["planned"], found["done"], found["left"]) == (0, 6, 6, 0)
    assert "<dt>recorded</dt><dd>6</dd>" in page.read_text()


def test_merging_stores_and_folders(stored, run, tmp_path):
    both = tmp_path / "both"
    second = shutil.copytree(stored, tmp_path / "second")
    sides = (f"file://{stored}", str(second))
    code, out, _ = run("merge", *sides, "--out", f"file://{both}", "--json")
    done = json.loads(out)
    assert (code, done["out"], done["records"]) == (0, f"file://{both}", 6)
    assert values(both) == values(stored)
    # Into one of them.
    code, out, _ = run("merge", f"file://{both}", str(second), "--out", f"file://{both}")
    assert (code, out.partition(":")[0]) == (0, "6 records in file")
