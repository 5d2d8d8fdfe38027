"""Have asv measure commits: the same suites, in the same environment, for both sides.

The suites are those of the newer commit. What was measured is kept in ``.asv/regressions``, by all
that determines it, and not measured again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
from platformdirs import user_cache_dir

from ...data_loaders.cache import CACHE_VARIABLE
from ...harness.interrupts import interrupts_raised
from ...harness.storage import exclusive, storing
from ...harness.words import visible
from ..errors import ReportError
from .asv_files import Lane, Snapshot, benchmark, read_results
from .repository import Commit, Repository

#: asv's configuration in a repository, and what a measurement calls its machine.
CONFIG, MACHINE = "asv.conf.json", "here"
#: asv: everything ran; some benchmarks failed, which their values say.
_DONE = (0, 2)
_NONE_CHOSEN = "No benchmarks selected"
_KEPT = Path(".asv", "regressions")
_LIST = "benchmarks.json"
#: The kinds of benchmarks, by how asv names them, that are the same at any load.
_STEADY = "(track|peakmem|mem)_"


@dataclass(frozen=True)
class Plan:
    """Which benchmarks are run, by regular expressions of their names."""

    # What no other load of the machine changes, memory too: once, the sides side by side.
    counts: tuple[str, ...]
    timed: tuple[str, ...] = ()  # in turns, one side at a time
    turns: int = 3  # how often each side has its turn; of fewer than three there is no interval


#: What the command runs: all counts, and the memory and time of a fit of each solver.
FULL = Plan((r"^(work|shapes)\.", r"^solve\.Fit\.peakmem_"), (r"^solve\.Fit\.time_",))
#: In a fraction of the time: no times, and the counts and errors that most changes show in. The
#: error is one of them, as what costs less at the price of a larger error is no improvement.
SHORT = Plan(
    (
        r"^work\.\w+\.track_(failed|unsolved|evaluations|products|suboptimality|test_error)\b",
        r"^shapes\.\w+\.track_(failed|evaluations|pairs_moved|violation|suboptimality|test_error)\b",
    )
)


def plan_of(patterns: Sequence[str]) -> Plan:
    """The plan for benchmarks that a user chose."""
    for each in patterns:
        try:
            re.compile(each)
            # As asv gets it, within another one, where flags for the whole are not allowed.
            re.compile(rf".(?:{each})")
        except re.error as error:
            raise ReportError(f"--suite {each!r}: is no regular expression ({error})") from error
    return Plan(
        tuple(rf"^(?=.*\.{_STEADY})(?=.*(?:{each}))" for each in patterns),
        tuple(rf"^(?!.*\.{_STEADY})(?=.*(?:{each}))" for each in patterns),
    )


def measured(
    repository: Repository,
    base: Commit,
    head: Commit,
    plan: Plan,
    *,
    again: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Snapshot, Snapshot]:
    """The snapshots of two commits."""
    for module in ("asv", "virtualenv"):
        if importlib.util.find_spec(module) is None:
            raise ReportError(f"{module} is not installed; pip install 'marginbench[regressions]'")
    kept = repository.root / _KEPT
    counts = kept / _identity(repository, head, plan.counts)
    # Times compare only with those of the same session.
    turns = (*plan.timed, str(plan.turns))
    times = kept / _identity(repository, head, turns) / f"{base.short}-{head.short}"
    both = tuple(dict.fromkeys((base, head)))
    uncounted = [
        each
        for each in both
        if plan.counts and (again or not _is_whole(counts / each.hash, plan.counts))
    ]
    timed = [times / each.hash / str(turn) for each in both for turn in range(plan.turns)]
    untimed = plan.timed and (again or not all(_is_whole(each, plan.timed) for each in timed))
    scratch_folder = tempfile.TemporaryDirectory(prefix="marginbench-")
    with interrupts_raised(), exclusive(kept), scratch_folder as scratch:
        sides = {}
        if uncounted or untimed:
            suite = Path(scratch) / "suite"
            suite.mkdir()
            repository.export(head.hash, suite)
            for each in both if untimed else uncounted:
                tell(f"installing {each.short}")
                sides[each] = Side(repository, each, suite, Path(scratch) / each.short)
        if uncounted:
            tell(f"counting: {', '.join(each.short for each in uncounted)}")
            _run_asv([sides[each] for each in uncounted], counts, plan.counts)
        if untimed:
            for turn in range(plan.turns):
                for each in both if turn % 2 == 0 else both[::-1]:
                    tell(f"timing {each.short}, turn {turn + 1} of {plan.turns}")
                    options = ("-a", "rounds=1", "-a", "repeat=1")
                    _run_asv([sides[each]], times, plan.timed, *options, part=str(turn))
                if not any(_results_in(times / each.hash / str(turn)) for each in both):
                    # None of the benchmarks that were chosen is timed.
                    break
    return _snapshot(counts, times, base), _snapshot(counts, times, head)


def _is_whole(folder: Path, patterns: Sequence[str]) -> bool:
    """Whether asv has run all that it has listed in a folder of results."""
    return (folder / _LIST).is_file() and not without_row(folder, patterns)


def _identity(repository: Repository, head: Commit, patterns: Sequence[str]) -> str:
    """A hash of all that determines what is measured but the commit."""
    packages = {each.name: each.version for each in metadata.distributions()}
    packages.pop("marginbench", None)
    parts = [
        *(repository.tree(head.hash, path) for path in ("benchmarks", CONFIG)),
        *(platform.python_implementation(), platform.python_version()),
        *(platform.system(), platform.machine()),
        *sorted(packages.items()),
        *patterns,
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


def _snapshot(counts: Path, times: Path, commit: Commit) -> Snapshot:
    """What was measured of a commit."""
    turns = filter(None, map(_results_in, sorted((times / commit.hash).glob("*"))))
    snapshots = [replace(each, values=each.values.assign(seed=i)) for i, each in enumerate(turns)]
    if counted := _results_in(counts / commit.hash):
        snapshots.insert(0, counted)
    if not snapshots:
        raise ReportError("no benchmark was run; --suite is to match names such as work.Work")
    # asv names an environment by the path of its interpreter, which is gone by now.
    environment = f"{platform.python_implementation()} {platform.python_version()}"
    return replace(
        snapshots[0],
        lane=Lane(MACHINE, environment),
        machine={key: value for key, value in snapshots[0].machine.items() if key != "python"},
        values=pd.concat([each.values for each in snapshots], ignore_index=True),
        versions={key: value for each in snapshots for key, value in each.versions.items()},
    )


def _run_asv(
    sides: Sequence[Side], results: Path, patterns: Sequence[str], *options: str, part: str = ""
) -> None:
    """One run of asv for each side, side by side; each benchmark must have its row.

    If one cannot be done, or on an interruption, all end.
    """
    folders = [results / side.commit.hash / part for side in sides]
    runs: list[subprocess.Popen[bytes]] = []
    try:
        for side, folder in zip(sides, folders, strict=True):
            with storing(folder):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
            runs.append(side.asv(folder, patterns, *options))
        for run, side in zip(runs, sides, strict=True):
            code, output = run.wait(), side.log.read_text("utf-8", "replace")
            if code not in _DONE and _NONE_CHOSEN not in output:
                # The line in which asv says what is wrong: the last one that names an error.
                lines = [line.strip(" ·•") for line in output.splitlines()]
                errors = [line for line in lines if re.match(r"\w*(Error|Exception)\b", line)]
                reason = next(filter(None, [*errors[::-1], *lines[::-1]]), "it says nothing")
                raise ReportError(f"asv cannot run the benchmarks: {reason}")
    finally:
        for run in runs:
            _end(run)
    for side, folder in zip(sides, folders, strict=True):
        if name := without_row(folder, patterns):
            # asv leaves out what it cannot even start.
            raise ReportError(f"{side.commit.short}: asv has no result of {name}")


class Side:
    """A commit that is installed, and where asv puts its results."""

    def __init__(self, repository: Repository, commit: Commit, suite: Path, folder: Path) -> None:
        from asv.machine import Machine, MachineCollection

        self.commit, self.log = commit, folder / "log"
        self._folder, self._suite, self._root = folder, suite, repository.root
        source, home = folder / "source", folder / "home"
        for each in (source, home):
            each.mkdir(parents=True)
        repository.export(commit.hash, source)
        self._python = install(source, folder / "env")
        # A home of its own: a run of asv rewrites the file of machines that another one reads.
        machine = Machine.get_defaults() | {"machine": MACHINE}
        MachineCollection.save(MACHINE, machine, str(home / ".asv-machine.json"))
        # What these name would be measured on both sides, in place of what is installed.
        foreign = ("PYTHONPATH", "ASV_PYTHONPATH")
        self._environment = {name: each for name, each in os.environ.items() if name not in foreign}
        self._environment |= {"HOME": str(home), "USERPROFILE": str(home)}
        self._environment.setdefault(CACHE_VARIABLE, user_cache_dir("marginbench"))
        settings = Path.home() / ".gitconfig"
        if settings.is_file():
            self._environment.setdefault("GITCONFIG_GLOBAL", str(settings))

    def asv(self, results: Path, patterns: Sequence[str], *options: str) -> subprocess.Popen[bytes]:
        """A run of asv that has begun, which writes into this folder."""
        try:
            config: dict[str, Any] = json.loads((self._suite / CONFIG).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ReportError(f"{CONFIG}: cannot be read ({error})") from error
        # That of the newer commit, with the folders of this measurement.
        benchmarks = self._suite / str(config.get("benchmark_dir", "benchmarks"))
        config |= {"repo": str(self._root), "benchmark_dir": str(benchmarks)}
        config |= {"results_dir": str(results), "html_dir": str(self._folder / "html")}
        config |= {"env_dir": str(self._folder / "environments")}
        path = self._suite / f"{self.commit.short}.json"
        path.write_text(json.dumps(config), "utf-8")
        words = ["--config", str(path), "run", "-E", f"existing:{self._python}"]
        words += ["--machine", MACHINE, "--set-commit-hash", self.commit.hash, *options]
        words += [word for each in patterns for word in ("--bench", each)]
        # Not a pipe: nobody reads while another run is waited for.
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "asv", *words],
                cwd=self._suite,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Its benchmarks are processes, too, and end with it.
                start_new_session=True,
            )


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


def _results_in(folder: Path) -> Snapshot | None:
    """What asv has written into a folder, if anything."""
    return read_results(folder)[0] if any(folder.glob("*/*-*.json")) else None


def without_row(folder: Path, patterns: Sequence[str]) -> str:
    """The first of the chosen benchmarks that asv has listed and not run; empty if all ran."""
    run = _results_in(folder)
    ran = run.versions if run else ()
    listed = folder / _LIST
    try:
        benchmarks = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else {}
    except ValueError as error:
        raise ReportError(f"{listed}: cannot be read ({error})") from error
    for name in sorted(map(str, set(benchmarks) - {"version"})):
        if benchmark(name) not in ran and any(re.search(each, name) for each in patterns):
            return name
    return ""


def install(source: Path, folder: Path) -> Path:
    """Make an environment with the project in a new folder, and give its interpreter."""
    what = "an environment for the benchmarks"
    made = ["-m", "virtualenv", "--quiet", "--no-download", "--no-periodic-update", str(folder)]
    _run([sys.executable, *made], what)
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    # It imports what this one has, after what is installed in itself. A path in a .pth file is
    # searched without the .pth files there, so an editable installation of the project is not seen.
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    there = _run([python, "-I", "-c", code], what).strip()
    here = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    Path(there, "dependencies.pth").write_text("\n".join(here) + "\n", encoding="utf-8")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    _run([*pip, str(source)], f"the installation of {source.name}")
    return Path(python)


def _run(words: list[str], what: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise ReportError(f"{what}: cannot be made ({error})") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise ReportError(f"{what}: cannot be made ({visible(lines[-1])})")
    return done.stdout
