"""A commit that is installed for a measurement, and asv's runs of benchmarks on it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from platformdirs import user_cache_dir

from ...data_loaders.cache import CACHE_VARIABLE
from ..errors import ReportError
from .asv_files import read_results
from .installing import install
from .repository import Commit, Repository
from .values import Snapshot

#: asv's configuration in a repository, and what a measurement calls its machine.
CONFIG, MACHINE = "asv.conf.json", "here"
#: asv: everything ran; some benchmarks failed, which their values say.
_DONE = (0, 2)
_NONE_CHOSEN = "No benchmarks selected"


class Side:
    """A commit that is installed, and where asv puts its results."""

    def __init__(self, repository: Repository, commit: Commit, scratch: Path) -> None:
        self.commit = commit
        self._folder = scratch / commit.short
        self._suite = scratch / "suite"
        self._root = repository.root
        source = self._folder / "source"
        source.mkdir(parents=True)
        repository.export(commit.hash, source)
        self._python = install(source, self._folder / "env")
        self._environment = self._with_machine()

    def results(self, what: str) -> Path:
        """asv's folder of results of one part of the measurement."""
        return self._folder / what

    def has_results(self, what: str) -> bool:
        """Whether asv has measured something in one part of the measurement."""
        return _has_results(self.results(what))

    def asv(self, what: str, patterns: Sequence[str], *options: str) -> Run:
        """A run of asv that has begun."""
        chosen = [word for each in patterns for word in ("--bench", each)]
        words = ["run", "-E", f"existing:{self._python}", "--set-commit-hash", self.commit.hash]
        return self._begin(self._config(what), [*words, *options, *chosen], self._environment)

    def check(self, what: str, patterns: Sequence[str]) -> None:
        """Raise an error if a benchmark has no row: asv leaves out what it cannot even start."""
        folder = self.results(what)
        folder.mkdir(parents=True, exist_ok=True)
        if name := without_row(folder, patterns):
            raise ReportError(f"{self.commit.short}: asv has no result of {name}")

    def _config(self, what: str) -> Path:
        """asv's configuration of the newer commit, with the folders of this measurement."""
        path = self._suite / CONFIG
        try:
            config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ReportError(f"{CONFIG}: cannot be read ({error})") from error
        benchmarks = self._suite / str(config.get("benchmark_dir", "benchmarks"))
        config |= {"repo": str(self._root), "benchmark_dir": str(benchmarks)}
        for name, folder in (("results", what), ("env", "environments"), ("html", "html")):
            config[f"{name}_dir"] = str(self._folder / folder)
        made = self._suite / f"{self.commit.hash}-{what.replace('/', '-')}.json"
        made.write_text(json.dumps(config), encoding="utf-8")
        return made

    def _with_machine(self) -> dict[str, str]:
        """Variables for asv, which keeps what it knows of a machine in the home folder.

        Each side has a home of its own: a run of asv rewrites the file that another one reads.
        """
        home = self._folder / "home"
        home.mkdir()
        settings = Path.home() / ".gitconfig"
        # What they name would be measured on both sides, in place of what is installed.
        foreign = ("PYTHONPATH", "ASV_PYTHONPATH")
        found = {name: value for name, value in os.environ.items() if name not in foreign}
        found |= {"HOME": str(home), "USERPROFILE": str(home)}
        found.setdefault(CACHE_VARIABLE, user_cache_dir("marginbench"))
        if settings.is_file():
            found.setdefault("GITCONFIG_GLOBAL", str(settings))
        words = ["machine", "--yes", "--machine", MACHINE]
        together([self._begin(self._config("counts"), words, found)])
        return found

    def _begin(self, config: Path, words: Sequence[str], environment: dict[str, str]) -> Run:
        handle, output = tempfile.mkstemp(suffix=".log", dir=self._folder)
        process = subprocess.Popen(
            [sys.executable, "-m", "asv", "--config", str(config), *words],
            cwd=self._suite,
            env=environment,
            stdin=subprocess.DEVNULL,
            # Not a pipe: nobody reads while another run is waited for.
            stdout=handle,
            stderr=subprocess.STDOUT,
            # Its benchmarks are processes, too, and end with it.
            start_new_session=True,
        )
        os.close(handle)
        return Run(process, Path(output))


class Run(NamedTuple):
    """A run of asv, and what it prints."""

    process: subprocess.Popen[bytes]
    output: Path


def together(runs: Sequence[Run]) -> None:
    """Wait for runs of asv; if one cannot be done, or on an interruption, end all."""
    try:
        for each in runs:
            if each.process.wait() not in _DONE:
                said = each.output.read_text(encoding="utf-8", errors="replace")
                if _NONE_CHOSEN in said:
                    continue
                raise ReportError(f"asv cannot run the benchmarks: {_reason(said)}")
    finally:
        for each in runs:
            _end(each.process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a run with all of its processes, if it still goes on."""
    if process.poll() is not None:
        return
    process.kill()
    if hasattr(os, "getsid"):
        # asv gives what it starts process groups of their own; the session remains.
        for each in psutil.pids():
            with contextlib.suppress(OSError):
                if os.getsid(each) == process.pid:
                    os.kill(each, signal.SIGKILL)
    process.wait()


def _reason(output: str) -> str:
    """The line in which asv says what is wrong: the last one that names an error."""
    lines = [line.strip(" ·•") for line in output.splitlines() if line.strip(" ·•")]
    errors = [line for line in lines if re.match(r"\w*(Error|Exception)\b", line)]
    return (errors or lines or ["it says nothing"])[-1]


def results_of(folders: Sequence[Path]) -> list[Snapshot]:
    """What asv has written into each of these folders, if anything."""
    return [read_results(each)[0] for each in folders if _has_results(each)]


def without_row(folder: Path, patterns: Sequence[str]) -> str:
    """The first of the chosen benchmarks that asv has listed and not run; empty if all ran."""
    ran = {
        f"{each.suite}.{each.measure}" for found in results_of([folder]) for each in found.versions
    }
    listed = folder / "benchmarks.json"
    try:
        known = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else {}
    except ValueError as error:
        raise ReportError(f"{listed}: cannot be read ({error})") from error
    for name in sorted(map(str, set(known) - {"version"})):
        suite, _, method = name.rpartition(".")
        if f"{suite}.{method.removeprefix('track_')}" not in ran and any(
            re.search(each, name) for each in patterns
        ):
            return name
    return ""


def _has_results(folder: Path) -> bool:
    return any(folder.glob("*/*-*.json"))
