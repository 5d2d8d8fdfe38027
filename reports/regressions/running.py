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
from statistics import median
from typing import Any, NamedTuple

import psutil
from platformdirs import user_cache_dir

from ...data_loaders.cache import CACHE_VARIABLE
from ...harness.interrupts import interrupts_raised
from ...harness.storage import exclusive, storing
from ...harness.words import visible
from ..errors import ReportError
from .asv_files import Lane, Snapshot, Value, read_results
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
        if uncounted or untimed:
            wanted = both if untimed else uncounted
            sides = _installed(repository, wanted, head, Path(scratch), tell)
        if uncounted:
            tell(f"counting: {', '.join(each.short for each in uncounted)}")
            _run_together([sides[each] for each in uncounted], counts, plan.counts)
        if untimed:
            for turn in range(plan.turns):
                for each in both if turn % 2 == 0 else both[::-1]:
                    tell(f"timing {each.short}, turn {turn + 1} of {plan.turns}")
                    options = ("-a", "rounds=1", "-a", "repeat=1")
                    _run_together([sides[each]], times, plan.timed, *options, part=str(turn))
                if not any(_has_results(times / each.hash / str(turn)) for each in both):
                    # None of the benchmarks that were chosen is timed.
                    break
    return _snapshot(counts, times, base), _snapshot(counts, times, head)


def _is_whole(folder: Path, patterns: Sequence[str]) -> bool:
    """Whether asv has run all that it has listed in a folder of results."""
    return (folder / _LIST).is_file() and not without_row(folder, patterns)


def _identity(repository: Repository, head: Commit, patterns: Sequence[str]) -> str:
    """A hash of all that determines what is measured but the commit."""
    packages = sorted(
        f"{each.name}=={each.version}"
        for each in metadata.distributions()
        if each.name != "marginbench"
    )
    parts = [
        repository.tree(head.hash, "benchmarks"),
        repository.tree(head.hash, CONFIG),
        platform.python_implementation() + platform.python_version(),
        *(platform.system(), platform.machine()),
        *packages,
        repr(patterns),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _snapshot(counts: Path, times: Path, commit: Commit) -> Snapshot:
    """What was measured of a commit."""
    snapshots = [
        *results_of([counts / commit.hash]),
        *_of_turns(results_of(sorted((times / commit.hash).glob("*")))),
    ]
    if not snapshots:
        raise ReportError("no benchmark was run; --suite is to match names such as work.Work")
    # asv names an environment by the path of its interpreter, which is gone by now.
    environment = f"{platform.python_implementation()} {platform.python_version()}"
    return replace(
        snapshots[0],
        lane=Lane(MACHINE, environment),
        machine={key: value for key, value in snapshots[0].machine.items() if key != "python"},
        values={key: value for each in snapshots for key, value in each.values.items()},
        versions={key: value for each in snapshots for key, value in each.versions.items()},
    )


def _of_turns(turns: Sequence[Snapshot]) -> list[Snapshot]:
    """One snapshot of several turns: the median, with the turns as its samples.

    What fails in one of them has failed.
    """
    if not turns:
        return []
    values = {}
    for key in {key for turn in turns for key in turn.values}:
        timed = [turn.values[key].number for turn in turns if key in turn.values]
        numbers = [each for each in timed if each is not None]
        failed = len(numbers) < len(timed)
        values[key] = Value(None) if failed else Value(median(numbers), tuple(numbers))
    return [replace(turns[0], values=values)]


def _installed(
    repository: Repository,
    commits: Sequence[Commit],
    head: Commit,
    scratch: Path,
    tell: Callable[[str], None],
) -> dict[Commit, Side]:
    """Both commits, each in an environment of its own, with the suites of the newer one."""
    suite = scratch / "suite"
    suite.mkdir()
    repository.export(head.hash, suite)
    sides = {}
    for each in commits:
        tell(f"installing {each.short}")
        sides[each] = Side(repository, each, scratch)
    return sides


def _run_together(
    sides: Sequence[Side], results: Path, patterns: Sequence[str], *options: str, part: str = ""
) -> None:
    """One run of asv for each side, side by side; each benchmark must have its row."""
    folders = [results / side.commit.hash / part for side in sides]
    for folder in folders:
        with storing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
    together(
        [side.asv(folder, patterns, *options) for side, folder in zip(sides, folders, strict=True)]
    )
    for side, folder in zip(sides, folders, strict=True):
        if name := without_row(folder, patterns):
            # asv leaves out what it cannot even start.
            raise ReportError(f"{side.commit.short}: asv has no result of {name}")


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

    def asv(self, results: Path, patterns: Sequence[str], *options: str) -> Run:
        """A run of asv that has begun, which writes into this folder."""
        chosen = [word for each in patterns for word in ("--bench", each)]
        words = ["run", "-E", f"existing:{self._python}", "--set-commit-hash", self.commit.hash]
        return self._begin(self._config(results), [*words, *options, *chosen], self._environment)

    def _config(self, results: Path) -> Path:
        """asv's configuration of the newer commit, with the folders of this measurement."""
        path = self._suite / CONFIG
        try:
            config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ReportError(f"{CONFIG}: cannot be read ({error})") from error
        benchmarks = self._suite / str(config.get("benchmark_dir", "benchmarks"))
        config |= {"repo": str(self._root), "benchmark_dir": str(benchmarks)}
        config |= {"results_dir": str(results), "html_dir": str(self._folder / "html")}
        config |= {"env_dir": str(self._folder / "environments")}
        handle, made = tempfile.mkstemp(suffix=".json", dir=self._suite)
        with os.fdopen(handle, "w", encoding="utf-8") as sink:
            json.dump(config, sink)
        return Path(made)

    def _with_machine(self) -> dict[str, str]:
        """Variables for asv, which keeps what it knows of a machine in the home folder.

        Each side has a home of its own: a run of asv rewrites the file that another one reads.
        """
        home = self._folder / "home"
        home.mkdir()
        settings = Path.home() / ".gitconfig"
        # What they name would be measured on both sides, in place of what is installed.
        foreign = ("PYTHONPATH", "ASV_PYTHONPATH")
        variables = {name: value for name, value in os.environ.items() if name not in foreign}
        variables |= {"HOME": str(home), "USERPROFILE": str(home)}
        variables.setdefault(CACHE_VARIABLE, user_cache_dir("marginbench"))
        if settings.is_file():
            variables.setdefault("GITCONFIG_GLOBAL", str(settings))
        words = ["machine", "--yes", "--machine", MACHINE]
        together([self._begin(self._config(home), words, variables)])
        return variables

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
                output = each.output.read_text(encoding="utf-8", errors="replace")
                if _NONE_CHOSEN in output:
                    continue
                raise ReportError(f"asv cannot run the benchmarks: {_reason(output)}")
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
    ran = {f"{each.suite}.{each.measure}" for run in results_of([folder]) for each in run.versions}
    listed = folder / _LIST
    try:
        benchmarks = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else {}
    except ValueError as error:
        raise ReportError(f"{listed}: cannot be read ({error})") from error
    for name in sorted(map(str, set(benchmarks) - {"version"})):
        suite, _, method = name.rpartition(".")
        if f"{suite}.{method.removeprefix('track_')}" not in ran and any(
            re.search(each, name) for each in patterns
        ):
            return name
    return ""


def _has_results(folder: Path) -> bool:
    return any(folder.glob("*/*-*.json"))


def install(source: Path, folder: Path) -> Path:
    """Make an environment with the project in a new folder, and give its interpreter."""
    made = ["-m", "virtualenv", "--quiet", "--no-download", "--no-periodic-update", str(folder)]
    _run([sys.executable, *made], "an environment for the benchmarks")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    _see_dependencies(python)
    words = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    _run([*map(str, words), str(source)], f"the installation of {source.name}")
    return python


def _see_dependencies(python: Path) -> None:
    """Let the environment import what this one has, after what is installed in itself.

    A path in a .pth file is searched without the .pth files there, so an editable installation of
    the project in this environment is not seen.
    """
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    there = _run([str(python), "-I", "-c", code], "an environment for the benchmarks").strip()
    here = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    Path(there, "dependencies.pth").write_text("\n".join(here) + "\n", encoding="utf-8")


def _run(words: list[str], what: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise ReportError(f"{what}: cannot be made ({error})") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise ReportError(f"{what}: cannot be made ({visible(lines[-1])})")
    return done.stdout
