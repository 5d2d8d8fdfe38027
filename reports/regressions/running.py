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
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from platformdirs import user_cache_dir

from marginbench.data_loaders.cache import CACHE_VARIABLE
from marginbench.harness.interrupts import interrupts_raised
from marginbench.harness.storage import storing
from marginbench.reports.errors import ReportError
from marginbench.reports.regressions.asv_files import read_results
from marginbench.reports.regressions.installing import install
from marginbench.reports.regressions.repository import Commit, Repository
from marginbench.reports.regressions.values import Lane, Snapshot

_CONFIG = "asv.conf.json"
_KEPT = Path(".asv", "regressions")
_MACHINE = "here"
#: asv: everything ran; some benchmarks failed, which their values say.
_DONE = (0, 2)
_NONE_CHOSEN = "No benchmarks selected"


@dataclass(frozen=True)
class Plan:
    """Which benchmarks are run, by regular expressions of their names.

    Attributes
    ----------
    counts : tuple of str
        Deterministic: once a side, both sides side by side.
    timed : tuple of str
        In turns, one side at a time.
    turns : int
        How often each side has its turn.
    """

    counts: tuple[str, ...]
    timed: tuple[str, ...] = ()
    turns: int = 3


#: What the command runs: all counts, and the time of a fit of each solver.
FULL = Plan((r"^work\.",), (r"^solve\.Fit\.",))
#: In a fraction of the time: no times, and the counts that most changes show in.
SHORT = Plan((r"^work\.\w+\.track_(failed|unsolved|evaluations|products|suboptimality)\b",))


def plan_of(patterns: Sequence[str]) -> Plan:
    """The plan for benchmarks that a user chose.

    Raises
    ------
    ReportError
        If one is no regular expression.
    """
    for each in patterns:
        try:
            re.compile(each)
        except re.error as error:
            raise ReportError(f"--suite {each!r}: is no regular expression ({error})") from error
    # Counts are methods named track_.
    return Plan(
        tuple(rf"^(?=.*\.track_)(?=.*(?:{each}))" for each in patterns),
        tuple(rf"^(?!.*\.track_)(?=.*(?:{each}))" for each in patterns),
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
    """The snapshots of two commits.

    Parameters
    ----------
    repository : Repository
    base, head : Commit
    plan : Plan
    again : bool
        Measure also what was measured before.
    tell : callable
        Takes a line about what is going on.

    Raises
    ------
    ReportError
        If asv is missing, a commit cannot be installed, or its benchmarks cannot be run.
    """
    for module in ("asv", "virtualenv"):
        if importlib.util.find_spec(module) is None:
            raise ReportError(f"{module} is not installed; pip install 'marginbench[regressions]'")
    # Times compare only with those of the same session.
    kept = repository.root / _KEPT / _identity(repository, base, head, plan)
    folders = [kept / each.hash for each in (base, head)]
    if again:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    missing = [
        each for each, folder in zip((base, head), folders, strict=True) if not folder.is_dir()
    ]
    with interrupts_raised():
        _measure(repository, head, list(dict.fromkeys(missing)), plan, kept, tell)
    found = [_snapshot(folder) for folder in folders]
    return found[0], found[1]


def _identity(repository: Repository, base: Commit, head: Commit, plan: Plan) -> str:
    """A hash of all that determines what is measured but the commit."""
    packages = sorted(
        f"{each.name}=={each.version}"
        for each in metadata.distributions()
        if each.name != "marginbench"
    )
    parts = [
        repository.tree(head.hash, "benchmarks"),
        repository.tree(head.hash, _CONFIG),
        platform.python_implementation() + platform.python_version(),
        *(platform.system(), platform.machine()),
        *packages,
        repr(plan),
        # Times are taken in turns of both sides.
        *((base.hash, head.hash) if plan.timed else ()),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _snapshot(folder: Path) -> Snapshot:
    [found] = read_results(folder)
    # asv names an environment by the path of its interpreter, which is gone by now.
    environment = f"{platform.python_implementation()} {platform.python_version()}"
    machine = {key: value for key, value in found.machine.items() if key != "python"}
    return replace(found, lane=Lane(_MACHINE, environment), machine=machine)


def _measure(
    repository: Repository,
    head: Commit,
    commits: Sequence[Commit],
    plan: Plan,
    kept: Path,
    tell: Callable[[str], None],
) -> None:
    """Measure commits, and keep what is complete."""
    if not commits:
        return
    with storing(kept):
        kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="marginbench-regressions-") as name:
        scratch = Path(name)
        suite = scratch / "suite"
        suite.mkdir()
        repository.export(head.hash, suite)
        sides = []
        for commit in commits:
            tell(f"installing {commit.short}")
            sides.append(_Side(repository, commit, suite, scratch))
        tell(f"counting: {', '.join(each.commit.short for each in sides)}")
        _together([each.asv(plan.counts) for each in sides])
        for turn in range(plan.turns if plan.timed else 0):
            for side in sides if turn % 2 == 0 else sides[::-1]:
                tell(f"timing {side.commit.short}, turn {turn + 1} of {plan.turns}")
                _together([side.asv(plan.timed, "--append-samples", "-a", "rounds=1")])
        for side in sides:
            side.check(plan)
            _keep(side.results, kept / side.commit.hash)


def _keep(results: Path, folder: Path) -> None:
    """Move complete results to their place at once; another command may have been faster."""
    with storing(folder):
        beside = Path(tempfile.mkdtemp(prefix="new-", dir=folder.parent))
        shutil.copytree(results, beside, dirs_exist_ok=True)
        with contextlib.suppress(OSError):
            beside.rename(folder)
        if beside.is_dir():
            shutil.rmtree(beside)
        folder.stat()


class _Side:
    """A commit that is installed, and where asv puts its results."""

    def __init__(self, repository: Repository, commit: Commit, suite: Path, scratch: Path) -> None:
        self.commit = commit
        self.results = scratch / f"results-{commit.hash}"
        source = scratch / f"source-{commit.short}"
        source.mkdir()
        repository.export(commit.hash, source)
        self._python = install(source, scratch / f"{commit.short}")
        self._suite = suite
        self._config = _config(suite, repository.root, self.results, scratch)
        self._environment = _environment(scratch, self._config)

    def asv(self, patterns: Sequence[str], *options: str) -> _Run:
        """A run of asv that has begun."""
        chosen = [word for each in patterns for word in ("--bench", each)]
        words = ["run", "-E", f"existing:{self._python}", "--set-commit-hash", self.commit.hash]
        return _asv(
            ["--config", str(self._config), *words, *options, *chosen],
            self._suite,
            self._environment,
        )

    def check(self, plan: Plan) -> None:
        """Raise an error if a benchmark has no row: asv leaves out what it cannot even start."""
        if not any(self.results.glob(f"*/{self.commit.hash[:8]}*.json")):
            raise ReportError("no benchmark was run; --suite is to match names such as work.Work")
        [found] = read_results(self.results)
        known = json.loads((self.results / "benchmarks.json").read_text(encoding="utf-8"))
        ran = {f"{each.suite}.{each.measure}" for each in found.versions}
        patterns = [re.compile(each) for each in (*plan.counts, *plan.timed)]
        for name in sorted(set(known) - {"version"}):
            suite, _, method = name.rpartition(".")
            if f"{suite}.{method.removeprefix('track_')}" not in ran and any(
                each.search(name) for each in patterns
            ):
                raise ReportError(f"{self.commit.short}: asv has no result of {name}")


def _config(suite: Path, root: Path, results: Path, scratch: Path) -> Path:
    """asv's configuration of the newer commit, with the folders of this measurement."""
    path = suite / _CONFIG
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{_CONFIG}: cannot be read ({error})") from error
    benchmarks = suite / str(config.get("benchmark_dir", "benchmarks"))
    config |= {"repo": str(root), "results_dir": str(results), "benchmark_dir": str(benchmarks)}
    config |= {"env_dir": str(scratch / "env"), "html_dir": str(scratch / "html")}
    made = suite / f"{results.name}.json"
    made.write_text(json.dumps(config), encoding="utf-8")
    return made


def _environment(scratch: Path, config: Path) -> dict[str, str]:
    """Variables for asv, which keeps what it knows of a machine in the home folder."""
    home = scratch / "home"
    settings = Path.home() / ".gitconfig"
    found = {**os.environ, "HOME": str(home), "USERPROFILE": str(home)}
    found.setdefault(CACHE_VARIABLE, user_cache_dir("marginbench"))
    if settings.is_file():
        found.setdefault("GIT_CONFIG_GLOBAL", str(settings))
    if not home.is_dir():
        home.mkdir()
        words = ["--config", str(config), "machine", "--yes", "--machine", _MACHINE]
        _together([_asv(words, scratch, found)])
    return found


class _Run(NamedTuple):
    """A run of asv, and what it prints."""

    process: subprocess.Popen[bytes]
    output: Path


def _asv(words: Sequence[str], folder: Path, environment: dict[str, str]) -> _Run:
    # Not a pipe: nobody reads while another run is waited for.
    handle, output = tempfile.mkstemp(suffix=".log", dir=environment["HOME"])
    process = subprocess.Popen(
        [sys.executable, "-m", "asv", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=handle,
        stderr=subprocess.STDOUT,
        # Its benchmarks are processes, too, and end with it.
        start_new_session=True,
    )
    os.close(handle)
    return _Run(process, Path(output))


def _together(runs: Sequence[_Run]) -> None:
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
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _reason(output: str) -> str:
    """The line in which asv says what is wrong: the last one that names an error."""
    lines = [line.strip(" ·•") for line in output.splitlines() if line.strip(" ·•")]
    errors = [line for line in lines if re.match(r"\w*(Error|Exception)\b", line)]
    return (errors or lines or ["it says nothing"])[-1]
