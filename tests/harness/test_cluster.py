"""From options to an engine, and what each mistake is told."""

import contextlib
import json
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from marginbench.harness.errors import EngineError, UserError
from marginbench.harness.execution import cluster
from marginbench.harness.execution.cluster import Engine, chosen_engine
from marginbench.harness.execution.runner import run_study
from marginbench.harness.results.journal import Journal

from .answers import FakeExecutor


@pytest.fixture(autouse=True)
def all_installed(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: name)


def test_a_scheduler_and_a_cluster(tmp_path):
    for address in ("tcp://node0:8786", "node0:8786", "tls://10.0.0.1:1", "tcp://[::1]:65535"):
        engine = chosen_engine(address, timing=True)
        assert (engine.scheduler, engine.timing) == (address, True)
    file = tmp_path / "slurm.toml"
    for text, workers in (("jobs = 20\n", 20), ("[cluster]\njobs = 1\n", 1), ("", 1)):
        file.write_text(text + 'memory = "4GB"\n')
        engine = chosen_engine(cluster="slurm", options=file)
        assert (engine.cluster, engine.workers) == ("slurm", workers)
        assert engine.options == {"memory": "4GB"}
    for text in ("jobs = 0", "jobs = true", "jobs = '3'", "cluster = 1", "jobs"):
        file.write_text(text)
        with pytest.raises(UserError, match=r"slurm\.toml: "):
            chosen_engine(cluster="slurm", options=file)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timing": True}, r"--timing chooses machines of a cluster"),
        ({"scheduler": "tcp://a:1", "cluster": "slurm"}, r"give one"),
        ({"scheduler": "tcp://a:1", "jobs": 2}, r"--jobs 2: is for runs on this machine"),
        ({"scheduler": ""}, r"--scheduler '': must be tcp://HOST:PORT"),
        ({"scheduler": "http://node0:8786"}, r"'http://node0:8786': must be tcp://HOST:PORT"),
        ({"scheduler": "tcp://node0:65536"}, r"'tcp://node0:65536': must be"),
        ({"scheduler": "tcp://node0:0"}, r"'tcp://node0:0': must be"),
        ({"scheduler": "tcp://me:secret@node0:1"}, r"'tcp://\.\.\.@node0:1': must be"),
        ({"cluster": "slrum"}, r"--cluster 'slrum' is not known.*slurm"),
        ({"options": Path("a.toml")}, r"--cluster-options a.toml: needs --cluster"),
        ({"cluster": "slurm", "options": Path("no.toml")}, r"no\.toml: cannot be read"),
        ({"scheduler": "tcp://a:1"}, r"^--scheduler needs the package distributed: pip install '"),
        ({"cluster": "kubernetes"}, r"kubernetes needs the package dask_kubernetes: .* dask-kub"),
    ],
)
def test_what_does_not_go_together_is_told(given, words, monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None if name in words else name)
    with pytest.raises(UserError, match=words):
        chosen_engine(**given)


@pytest.mark.slow
def test_the_classes_of_clusters_are_there_and_ctrl_c_stays_what_it_was():
    pytest.importorskip("distributed", reason="needs marginbench[dask]")
    code = """
import signal
from importlib import import_module
from marginbench.harness.execution import cluster as clusters
from marginbench.harness.errors import EngineError

before = signal.getsignal(signal.SIGINT)
try:
    # It takes no such option, but has been imported then.
    with clusters.started("slurm", 1, {"jbos": 1}):
        pass
except EngineError as error:
    print(error)
assert signal.getsignal(signal.SIGINT) is before
for module, name in clusters.CLUSTERS.values():
    assert module != "dask_jobqueue" or getattr(import_module(module), name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--cluster slurm: cannot be started" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"walltime": "01:00:00", "scheduler_options": {"host": "a"}, "config_name": None}, ""),
        ({"qeue": "batch"}, "--cluster slurm: its options are not valid .*'qeue'.*SLURMCluster"),
        ({"cores": "two"}, "its options are not valid"),
    ],
)
def test_options_are_checked_without_a_batch_system(options, words):
    pytest.importorskip("dask_jobqueue", reason="needs marginbench[dask]")
    engine = Engine(cluster="slurm", options={"cores": 1, "memory": "1GB", **options})
    if not words:
        engine.check_options()
        return
    with pytest.raises(UserError, match=words) as told:
        engine.check_options()
    assert told.value.exit_code == 2


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_told_in_one_line(monkeypatch):
    pytest.importorskip("distributed", reason="needs marginbench[dask]")
    from marginbench.harness.execution import dask

    monkeypatch.setattr(dask, "_ANSWER", 0.2)
    with socket.socket() as taken:
        # Bound and not listening: nobody answers, and nobody else can take the port.
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EngineError, match=f"^{address}: no Dask scheduler answers there"):
            Engine(scheduler=address).check()


SETTING = {"processor": "Xeon", "cores_logical": 8, "memory_mb": 32_000}


class Cluster(FakeExecutor):
    """Stands for workers on machines, and for the cluster itself."""

    opened_times = 0

    def check(self):
        """It can be opened."""

    @contextlib.contextmanager
    def opened(self, say):
        self.opened_times += 1
        yield self

    def answer(self, job):
        return replace(super().answer(job), setting={"environment": json.dumps(SETTING), "jobs": 3})


def test_records_are_of_the_machine_where_the_run_took_place(make_study, tmp_path):
    study = make_study(solver=[{"name": "Pegasos"}], seeds=2)
    engine = Cluster()
    summary = run_study(study, tmp_path / "a", executor=FakeExecutor(), engine=engine)
    assert summary.statuses == {"converged": 2}
    records = list(Journal(tmp_path / "a").records())
    assert [json.loads(record.environment) for record in records] == [SETTING] * 2
    assert {record.jobs for record in records} == {3}
    # Nothing is left to do: no cluster is started for it.
    run_study(study, tmp_path / "a", executor=FakeExecutor(), engine=engine)
    assert engine.opened_times == 1
    # What keeps it from opening is told before anything is planned.
    engine.check = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        run_study(study, tmp_path / "b", executor=FakeExecutor(), engine=engine)
    assert not (tmp_path / "b" / "study.json").exists()
