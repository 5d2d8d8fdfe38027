"""Have asv measure commits: the same suites, in the same environment, for both sides.

The suites are those of the newer commit. What was measured is kept in ``.asv/regressions``, by all
that determines it, and not measured again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from statistics import median

from ...harness.interrupts import interrupts_raised
from ...harness.storage import storing
from ..errors import ReportError
from .repository import Commit, Repository
from .sides import (
    CONFIG,
    MACHINE,
    Side,
    results_of,
    together,
    without_row,
)
from .values import Lane, Snapshot, Value

_KEPT = Path(".asv", "regressions")
#: The kinds of benchmarks, by how asv names them, that are the same at any load.
_STEADY = "(track|peakmem|mem)_"


@dataclass(frozen=True)
class Plan:
    """Which benchmarks are run, by regular expressions of their names.

    Attributes
    ----------
    counts : tuple of str
        What another load of the machine does not change, memory too: once a side, both sides side
        by side.
    timed : tuple of str
        In turns, one side at a time.
    turns : int
        How often each side has its turn. With five, an interval at 99 % is as wide as all that was
        seen.
    """

    counts: tuple[str, ...]
    timed: tuple[str, ...] = ()
    turns: int = 5


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
    """The plan for benchmarks that a user chose.

    Raises
    ------
    ReportError
        If one is no regular expression.
    """
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
    kept = repository.root / _KEPT
    counts = kept / _identity(repository, head, plan.counts)
    # Times compare only with those of the same session.
    turns = (*plan.timed, str(plan.turns))
    times = kept / _identity(repository, head, turns) / f"{base.short}-{head.short}"
    if again:
        for part in (counts, times):
            for each in (base, head):
                shutil.rmtree(part / each.hash, ignore_errors=True)
    both = tuple(dict.fromkeys((base, head)))
    uncounted = [each for each in both if plan.counts and not _is_kept(counts / each.hash)]
    untimed = plan.timed and any(not _is_kept(times / each.hash) for each in both)
    with interrupts_raised(), tempfile.TemporaryDirectory(prefix="marginbench-") as scratch:
        sides = _Sides(repository, head, Path(scratch), tell)
        if uncounted:
            sides.count(uncounted, plan.counts, counts)
        if untimed:
            sides.time(both, plan.timed, plan.turns, times)
    for each in both:
        if plan.counts and (lost := without_row(counts / each.hash, plan.counts)):
            raise ReportError(f"{counts / each.hash}: has lost {lost}; --again measures it again")
    return _snapshot(counts, times, base), _snapshot(counts, times, head)


def _is_kept(folder: Path) -> bool:
    """Whether there are results in a folder; one that is empty has lost them."""
    return folder.is_dir() and any(folder.iterdir())


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
    found = [
        *results_of([counts / commit.hash]),
        *_of_turns(results_of(sorted((times / commit.hash).glob("*")))),
    ]
    if not found:
        raise ReportError("no benchmark was run; --suite is to match names such as work.Work")
    # asv names an environment by the path of its interpreter, which is gone by now.
    environment = f"{platform.python_implementation()} {platform.python_version()}"
    return replace(
        found[0],
        lane=Lane(MACHINE, environment),
        machine={key: value for key, value in found[0].machine.items() if key != "python"},
        values={key: value for each in found for key, value in each.values.items()},
        versions={key: value for each in found for key, value in each.versions.items()},
        units={key: value for each in found for key, value in each.units.items()},
    )


def _of_turns(turns: Sequence[Snapshot]) -> list[Snapshot]:
    """One snapshot of several turns: the median, with the turns as its samples.

    What fails in one of them has failed.
    """
    if not turns:
        return []
    values = {}
    for key in {key for turn in turns for key in turn.values}:
        found = [turn.values[key].number for turn in turns if key in turn.values]
        numbers = [each for each in found if each is not None]
        failed = len(numbers) < len(found)
        values[key] = Value(None) if failed else Value(median(numbers), tuple(numbers))
    return [replace(turns[0], values=values)]


class _Sides:
    """The commits of a measurement, each installed when it is first asked for.

    Parameters
    ----------
    repository : Repository
    head : Commit
        Whose suites are run.
    scratch : Path
    tell : callable
    """

    def __init__(
        self, repository: Repository, head: Commit, scratch: Path, tell: Callable[[str], None]
    ) -> None:
        self._repository = repository
        self._head = head
        self._scratch = scratch
        self._tell = tell
        self._installed: dict[Commit, Side] = {}

    def count(self, commits: Sequence[Commit], patterns: Sequence[str], kept: Path) -> None:
        """Run deterministic benchmarks of all commits side by side."""
        sides = [self._side(each) for each in commits]
        self._tell(f"counting: {', '.join(each.short for each in commits)}")
        together([side.asv("counts", patterns) for side in sides])
        for side in sides:
            side.check("counts", patterns)
        self._keep(sides, "counts", kept)

    def time(
        self, commits: Sequence[Commit], patterns: Sequence[str], turns: int, kept: Path
    ) -> None:
        """Run benchmarks that depend on the machine in turns."""
        sides = [self._side(each) for each in commits]
        for turn in range(turns):
            part = f"times/{turn}"
            for side in sides if turn % 2 == 0 else sides[::-1]:
                self._tell(f"timing {side.commit.short}, turn {turn + 1} of {turns}")
                together([side.asv(part, patterns, "-a", "rounds=1", "-a", "repeat=1")])
                side.check(part, patterns)
            if not any(side.has_results(part) for side in sides):
                # None of the benchmarks that were chosen is timed.
                break
        self._keep(sides, "times", kept)

    def _side(self, commit: Commit) -> Side:
        if not self._installed:
            (self._scratch / "suite").mkdir()
            self._repository.export(self._head.hash, self._scratch / "suite")
        if commit not in self._installed:
            self._tell(f"installing {commit.short}")
            self._installed[commit] = Side(self._repository, commit, self._scratch)
        return self._installed[commit]

    def _keep(self, sides: Sequence[Side], what: str, kept: Path) -> None:
        with storing(kept):
            kept.mkdir(parents=True, exist_ok=True)
        for side in sides:
            _keep(side.results(what), kept / side.commit.hash)


def _keep(results: Path, folder: Path) -> None:
    """Move complete results to their place at once; another command may have been faster."""
    with storing(folder):
        beside = Path(tempfile.mkdtemp(prefix="new-", dir=folder.parent))
        try:
            shutil.copytree(results, beside, dirs_exist_ok=True)
            with contextlib.suppress(OSError):
                beside.rename(folder)
        finally:
            if beside.is_dir():
                shutil.rmtree(beside)
        folder.stat()
