"""Runs on Dask workers: what travels, which worker gets what, and what becomes of lost ones.

The workers are threads of this process, and most runs take no time; tests/faults kills real ones.
"""

import asyncio
import json
import os
import pickle
from contextlib import closing
from dataclasses import replace

import pytest

pytest.importorskip("distributed", reason="needs marginbench[dask]")

from dask import config
from distributed import LocalCluster

from marginbench.harness.errors import EngineError, SolverError
from marginbench.harness.evaluation.feasibility import FeasibilityWork
from marginbench.harness.evaluation.svm import FitWork, Problem
from marginbench.harness.execution import dask
from marginbench.harness.execution.dask import DaskExecutor, Slot, packed
from marginbench.harness.jobs import Ended, Job, Limits, Outcome, Started
from marginbench.harness.loading import load_class
from marginbench.harness.planning.fingerprint import kernel_code
from marginbench.harness.planning.preflight import DescribeWork

from ..faults.clusters import DaskCluster
from ..faults.conftest import wait_for
from .conftest import write

PROBLEM = Problem("checkers", {}, {"name": "rbf", "gamma": 1.0}, 1.0, False)
OWN = """
from inner.helper import SCALE

class Own:
    scale = SCALE
"""


def job(solver, kind="svm"):
    fit = FitWork(PROBLEM, solver, {}, 2.0)
    work = {"svm": fit, "feasibility": FeasibilityWork({"generator": "ldfp"}, 0, solver, {})}
    return Job("tag", work[kind], Limits({}, 1.0), foreign=True)


@pytest.fixture
def own(tmp_path):
    package = {"inner/__init__.py": "PREPARED = True\n", "inner/helper.py": "SCALE = 3\n"}
    write(tmp_path / "mine", {"own.py": OWN, "unrelated.py": "SECRET = 1\n", **package})
    return tmp_path / "mine/own.py"


@pytest.mark.parametrize("kind", ["svm", "feasibility"])
def test_a_users_file_is_imported_from_what_travelled(own, tmp_path, kind):
    files, its_job = {}, job(f"{own}:Own", kind)
    sent = pickle.dumps(packed(its_job, files))
    assert b"SECRET" not in sent
    # Later edits do not count for the runs of a command, nor must the file still be there.
    for file in own.parent.rglob("*.py"):
        file.unlink()
    assert packed(its_job, files).files == pickle.loads(sent).files
    there = tmp_path / "there"
    for _ in range(2):
        found = pickle.loads(sent).unpacked(there)
        assert found.work.solver.startswith(str(there))
        assert found.work.solver.endswith("/own.py:Own")
        assert load_class(found.work.solver, kind=kind).scale == 3
        assert found.foreign
        paths = {path.name: path for path in there.rglob("*.py")}
        assert sorted(paths) == ["__init__.py", "helper.py", "own.py"]
        paths["own.py"].write_text("as a run may leave it")


def test_a_kernel_in_a_file_must_be_the_same_there(own, tmp_path):
    name = f"{own}:SCALE"
    problem = replace(PROBLEM, kernel={"name": name}, kernel_code=kernel_code(name))
    packed_job = packed(Job("tag", FitWork(problem, "SMO", {}, 2.0), Limits({}, 1.0)), {})
    assert packed_job.unpacked(tmp_path) == packed_job.job
    (own.parent / "inner/helper.py").write_text("SCALE = 4\n")
    with pytest.raises(SolverError, match=r"own\.py:SCALE is missing or not that of the command"):
        packed_job.unpacked(tmp_path)
    own.unlink()
    with pytest.raises(SolverError, match=r"own\.py:SCALE is missing"):
        packed_job.unpacked(tmp_path)


@pytest.mark.slow
def test_an_installed_module_must_be_the_same_there(tmp_path):
    packed_job = packed(job("sklearn.svm:SVC"), {})
    assert packed_job.needs["the module sklearn.svm"]
    assert packed_job.unpacked(tmp_path) == packed_job.job
    other = type(packed_job)(packed_job.job, needs={"the module sklearn.svm": "another"})
    with pytest.raises(SolverError, match=r"the module sklearn\.svm is missing or not that of"):
        other.unpacked(tmp_path)


# Which worker gets what.


class Cluster:
    """Workers in this process; ``do(tag, address, is_wanted)`` stands for what they do."""

    def __init__(self, monkeypatch):
        self.said, self.done = [], []
        self.do = lambda tag, address, is_wanted: Outcome("done", tag)
        self.dask = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        )
        # No test waits for more workers.
        monkeypatch.setattr(dask, "_SETTLED", 0.2)
        monkeypatch.setattr(Slot, "do", self._do)

    def _do(self, packed_job, is_wanted):
        address = dask.get_worker().address
        self.done.append((packed_job.job.tag, address))
        return self.do(packed_job.job.tag, address, is_wanted)

    def executor(self, **options):
        """One that ends with the block."""
        return closing(DaskExecutor(self.dask.scheduler_address, self.said.append, **options))

    def addresses(self):
        return [worker.address for worker in self.dask.workers.values()]

    def lose(self, address):
        """The scheduler hears nothing of a worker any more."""
        scheduler = self.dask.scheduler
        self.dask.sync(scheduler.remove_worker, address, stimulus_id="lost", close=False)

    def outcomes(self, executor, tags):
        events = list(executor.execute(jobs(tags)))
        started = [event.job.tag for event in events if isinstance(event, Started)]
        ended = [event for event in events if isinstance(event, Ended)]
        assert sorted(started) == sorted(event.job.tag for event in ended) == sorted(tags)
        return {event.job.tag: event.outcome for event in ended}


def jobs(tags):
    return (Job(tag, DescribeWork("SMO", "svm"), Limits({}, 1000.0)) for tag in tags)


@pytest.fixture
def cluster(monkeypatch):
    cluster = Cluster(monkeypatch)
    yield cluster
    cluster.dask.close()


def test_every_job_ends_once_and_the_record_tells_of_its_machine(cluster):
    async def cell():
        """Of a notebook: an event loop runs."""
        dask.check_answers(cluster.dask.scheduler_address)
        with cluster.executor() as executor:
            # Of a study that several commands share, runs are put off and asked for again.
            for tags in ("abcdefgh", "", "i"):
                found = cluster.outcomes(executor, tags)
                for tag, outcome in found.items():
                    assert outcome.value == tag
                    assert json.loads(outcome.setting["environment"])["processor"]
                    # The second worker may answer after a run has ended on the first.
                    assert outcome.setting["jobs"] == 2 or tags == "abcdefgh"
                    assert outcome.setting["started_at"].endswith("+00:00")

    asyncio.run(cell())
    assert len(cluster.done) == 9
    assert len(set(dict(cluster.done).values())) == 2
    assert cluster.said == []


def test_the_processes_that_wait_on_the_workers_end_with_the_command(cluster, monkeypatch):
    ended = []
    monkeypatch.setattr(Slot, "close", lambda slot: ended.append(slot))
    with cluster.executor() as executor:
        cluster.outcomes(executor, "ab")
        assert ended == []
    wait_for(lambda: ended)


def test_a_file_that_cannot_be_read_is_one_failed_run(cluster, own, monkeypatch):
    def unreadable(path):
        raise PermissionError("denied")

    monkeypatch.setattr(type(own), "read_bytes", unreadable)
    with cluster.executor() as executor:
        (ended,) = (e for e in executor.execute(iter([job(f"{own}:Own")])) if isinstance(e, Ended))
    assert ended.outcome.status == "user"
    assert ended.outcome.reason == f"{own}: its code cannot be read (denied)"


def test_the_run_of_a_lost_worker_is_begun_again_elsewhere(cluster):
    losses = 1

    def do(tag, address, is_wanted):
        if tag == "b" and len([done for done, _ in cluster.done if done == "b"]) <= losses:
            cluster.lose(address)
        return Outcome("done", address)

    cluster.do = do
    with cluster.executor() as executor:
        found = cluster.outcomes(executor, "abcd")
    first, second = [address for tag, address in cluster.done if tag == "b"]
    assert first != second == found["b"].value
    (line,) = cluster.said
    assert line.startswith("worker ")
    assert line.endswith(f"({first}) was lost; its run is begun again")
    # One that loses more workers than Dask allows has crashed, and no other run.
    losses = 9
    cluster.dask.scale(4)
    allowed = config.set({"distributed.scheduler.allowed-failures": 0})
    with allowed, cluster.executor() as executor:
        found = cluster.outcomes(executor, "abcd")
    statuses = {tag: outcome.status for tag, outcome in found.items()}
    assert statuses == {"a": "done", "b": "crashed", "c": "done", "d": "done"}
    assert found["b"].reason.startswith("its workers were lost: ")


def test_runs_wait_for_workers_and_go_to_those_that_come(cluster, monkeypatch):
    monkeypatch.setattr(dask, "_A_MOMENT", 0.0)
    for address in cluster.addresses():
        cluster.lose(address)
    with cluster.executor() as executor:
        events = executor.execute(jobs("ab"))
        while not cluster.said:
            next(events)
        assert cluster.said[0].startswith("waiting for workers")
        cluster.dask.scale(3)
        assert sum(isinstance(event, Ended) for event in events) == 2


def test_a_worker_with_another_program_gets_no_run_and_is_named(cluster, monkeypatch):
    monkeypatch.setattr(dask, "_NONE_FITS", 0.3)

    def none_fits(words):
        with (
            cluster.executor() as executor,
            pytest.raises(EngineError, match=rf"none of 2 workers can be used: {words}"),
        ):
            list(executor.execute(jobs("b")))
        assert any("gets no runs: " in line for line in cluster.said)
        cluster.said.clear()

    cluster.do = lambda *_: Outcome("data", reason="mine.csv: no such file")
    none_fits(r"mine\.csv: no such file")
    cluster.done.clear()
    # That they fit another command does not make them fit for this one.
    ours = dask.program()
    wanted = property(lambda _: ours | {"code": "other"}, lambda *_: None)
    monkeypatch.setattr(DaskExecutor, "_program", wanted, raising=False)
    none_fits(r"\S+ has other code of marginbench .* than the command; install the same there")
    assert dask.difference(ours, ours) == ""
    assert dask.difference(ours, ours | {"numpy": "0.1"}).startswith("has numpy 0.1, the command ")
    assert dask.difference({"other": "1"}, ours) == "has other none, the command has 1"

    async def raising(ours, dask_worker):
        raise ModuleNotFoundError("No module named 'marginbench'")

    monkeypatch.setattr(dask, "welcome", raising)
    none_fits(".*ModuleNotFoundError: No module named 'marginbench'")
    assert cluster.done == []


def test_a_worker_that_lacks_something_gets_no_more_runs(cluster):
    lacking = cluster.addresses()[0]

    def refusals():
        # On a busy machine the command also says that it waits for workers.
        return [line for line in cluster.said if "gets no runs" in line]

    def do(tag, address, is_wanted):
        if address == lacking:
            return Outcome("storage", reason="mine.csv: no such file")
        # The next run comes once it is known.
        wait_for(refusals)
        return Outcome("done", tag)

    cluster.do = do
    with cluster.executor() as executor:
        found = cluster.outcomes(executor, "abcdef")
        assert {outcome.status for outcome in found.values()} == {"done"}
        (line,) = refusals()
        assert line.startswith(f"worker {lacking} gets no runs: mine.csv: no such file (on ")
        assert [address for _, address in cluster.done].count(lacking) == 1
        # Another command may use it.
        cluster.do = lambda tag, address, is_wanted: Outcome("done", tag)
        with cluster.executor() as other:
            cluster.outcomes(other, "ghij")
        assert lacking in {address for tag, address in cluster.done if tag in "ghij"}
        cluster.outcomes(executor, "klmn")
        assert lacking not in {address for tag, address in cluster.done if tag in "klmn"}


def test_what_nobody_wants_any_more_is_killed(cluster):
    killed = []

    def do(tag, address, is_wanted):
        wait_for(lambda: not is_wanted())
        killed.append(tag)
        return

    cluster.do = do
    with cluster.executor() as executor:
        events = executor.execute(jobs("ab"))
        # A run may be told to have started a moment before it is in this list.
        for _ in events:
            if len(cluster.done) == 2:
                break
        events.close()
    cluster.dask.close()
    assert sorted(killed) == ["a", "b"]


def test_a_scheduler_that_is_gone_ends_the_command(tmp_path):
    with (
        DaskCluster(tmp_path, dict(os.environ)) as killed,
        closing(DaskExecutor(killed.address, print)) as executor,
    ):
        events = executor.execute(jobs("ab"))
        next(events)
        killed.scheduler.kill()
        with pytest.raises(EngineError, match=r"the Dask scheduler is gone .* again to resume"):
            list(events)


def test_timing_takes_the_most_frequent_model_and_one_run_a_machine(cluster, monkeypatch):
    # Two workers on one machine, one on another of its model, one on a third of another model.
    machines = iter([("one", 8), ("one", 8), ("two", 8), ("big", 64), ("big", 64)])
    names = {}
    welcomed = DaskExecutor._welcomed

    def described(self, worker, answer):
        name, cores = next(machines)
        names[worker.address] = name
        setting = {"processor": "Xeon", "cores_logical": cores, "memory_mb": 32_010}
        welcomed(self, worker, replace(answer, name=name, environment=setting))

    monkeypatch.setattr(DaskExecutor, "_welcomed", described)
    monkeypatch.setattr(dask, "_SETTLED_QUEUE", 60.0)
    cluster.dask.scale(5)
    with cluster.executor(timing=True, expected=5) as executor:
        found = cluster.outcomes(executor, "abcdef")
    assert cluster.said == ["timing on 2 of 3 machines: Xeon, 8 cores, 32 GB"]
    assert {outcome.setting["jobs"] for outcome in found.values()} == {1}
    used = {address for _, address in cluster.done}
    assert sorted(names[address] for address in used) == ["one", "two"]
