"""From options to an engine, and what each mistake is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.engines import choosing
from marginbench.harness.engines.choosing import chosen_engine
from marginbench.harness.errors import UserError


@pytest.fixture(autouse=True)
def all_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "find_spec", lambda name: name)


def test_without_options_runs_take_place_here() -> None:
    assert chosen_engine(jobs=4) is None


def test_a_scheduler_and_a_cluster(tmp_path: Path) -> None:
    engine = chosen_engine("tcp://node0:8786", timing=True)
    assert engine is not None
    assert (engine.scheduler, engine.timing) == ("tcp://node0:8786", True)
    file = tmp_path / "slurm.toml"
    for text in (
        'jobs = 20\nmemory = "4GB"\n',
        'other = 1\n[cluster]\njobs = 20\nmemory = "4GB"\n',
    ):
        file.write_text(text)
        engine = chosen_engine(cluster="slurm", options=file)
        assert engine is not None
        assert (engine.cluster, engine.workers) == ("slurm", 20)
        assert engine.options == {"memory": "4GB"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timing": True}, r"--timing chooses machines of a cluster"),
        ({"scheduler": "tcp://a:1", "cluster": "slurm"}, r"give one"),
        ({"scheduler": "tcp://a:1", "jobs": 2}, r"--jobs 2: is for runs on this machine"),
        ({"cluster": "slrum"}, r"--cluster 'slrum' is not known.*slurm"),
        ({"options": Path("a.toml")}, r"--cluster-options a.toml: needs --cluster"),
        ({"cluster": "slurm", "options": Path("no.toml")}, r"no\.toml: cannot be read"),
    ],
)
def test_what_does_not_go_together_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        chosen_engine(**given)


@pytest.mark.parametrize("text", ["jobs = 0", "jobs = true", "jobs = '3'", "cluster = 1", "jobs"])
def test_options_that_make_no_sense(text: str, tmp_path: Path) -> None:
    file = tmp_path / "options.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"options\.toml: "):
        chosen_engine(cluster="slurm", options=file)


def test_a_package_that_is_missing_is_named_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choosing, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"--scheduler needs the package distributed: pip install"):
        chosen_engine("tcp://a:1")


@pytest.mark.slow
def test_the_classes_of_clusters_are_there_and_ctrl_c_stays_what_it_was() -> None:
    pytest.importorskip("distributed", reason="needs marginbench[dask]")
    code = """
import signal
from importlib import import_module
from marginbench.harness.engines import clusters
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
def test_nothing_of_dask_is_imported_until_it_is_asked_for() -> None:
    code = (
        "import sys, marginbench.harness.session, marginbench.harness.engines.choosing; "
        "print(sorted({'dask', 'distributed', 'tornado'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
