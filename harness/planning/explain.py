"""Why each planned run would be reused or run again; nothing is run and the folder stays as it is.

The study is that of the folder's ``study.json``; solvers and data are those of today.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import RecordError, UserError
from ..execution.jobs import Executor
from ..results.description import read_description
from ..results.plans import added_labels, restored_study
from ..results.records import RecordBase
from ..results.store import RecordStore
from ..results.superseded import FOLDER, files_by_stem, stem_of
from ..study.model import StudyBase
from ..words import plural
from .fingerprint import read_sources
from .plan import Kind, Run, kind_named
from .preflight import SolverInfo, preflight
from .reuse import wider_limits

#: "recorded": reused; "superseded": reused, taken back from the records of earlier versions;
#: "repeated": its limit is wider now; "stale": recorded under another key; "missing": not recorded.
State = Literal["recorded", "superseded", "repeated", "stale", "damaged", "missing"]


@dataclass(frozen=True)
class Difference:
    """A part of the key that differs between a record and today's plan.

    Attributes
    ----------
    field : str
        "params.tol", "versions.numpy", "source.solvers/smo/smo.py".
    before, now : object
        The values; of a file what became of it is in ``now``.
    """

    field: str
    before: Any
    now: Any

    @property
    def words(self) -> str:
        """In a line."""
        if self.field.startswith("source.") and isinstance(self.now, str):
            return f"source: {self.field.removeprefix('source.')} {self.now}"
        return f"{self.field}: {_shown(self.before)} -> {_shown(self.now)}"


@dataclass(frozen=True)
class Explained:
    """What ``marginbench run`` would do about a planned run, and why.

    Attributes
    ----------
    task, solver : str
    seed : int
    state : str
    reason : str
        One line.
    key, file : str
        Of the run as it is planned today.
    record : str
        The file that it is compared with, from the results folder; empty if there is none.
    differences : tuple of Difference
        What the keys differ in.
    """

    task: str
    solver: str
    seed: int
    state: State
    reason: str
    key: str
    file: str
    record: str = ""
    differences: tuple[Difference, ...] = ()


def explain(
    results: Path, executor: Executor, say: Callable[[str], None] = lambda line: None
) -> list[Explained]:
    """Compare the records of a results folder with what the code of today would plan.

    Parameters
    ----------
    results : Path
    executor : Executor
        Where solvers are imported and datasets loaded.
    say : callable
        Takes one line for the user: what takes long.

    Returns
    -------
    list of Explained
        One for each run of the study, and for each that an option added, in the study's order.

    Raises
    ------
    UserError
        If the folder has no readable ``study.json``, or a solver cannot be imported.
    """
    described = read_description(results)
    if described is None:
        raise UserError(f"{results}: no results here (study.json is missing)")
    if "study" not in described:
        raise UserError(
            f"{results}: written by an earlier release, which did not store the study; run the "
            "study again first"
        )
    kind = kind_named(described["kind"])
    study = restored_study(kind.study, described["study"], results)
    return _explained(results, described, kind, study, executor, say)


def chosen(found: Sequence[Explained], name: str) -> list[Explained]:
    """The runs of a name: a record's file, the beginning of a key, or "task/solver/seed".

    Raises
    ------
    UserError
        If there is none.
    """
    file = Path(name).name
    runs = [
        item
        for item in found
        if file in (item.file, Path(item.record).name)
        or (len(name) > 3 and item.key.startswith(name))
        or name.replace(" ", "") == f"{item.task}/{item.solver}/{item.seed}".replace(" ", "")
    ]
    if not runs:
        raise UserError(
            f"no planned run {name!r}; give the name of a record's file, the beginning of a key, "
            "or TASK/SOLVER/SEED"
        )
    return runs


def in_words(found: Sequence[Explained]) -> Iterator[str]:
    """Lines for the terminal; runs that differ only in their seed share one."""
    counts = Counter(item.state for item in found)
    listed = ", ".join(f"{count} {state}" for state, count in counts.items())
    yield f"{plural(len(found), 'run')}: {listed}"
    alike: dict[tuple[Any, ...], list[Explained]] = {}
    for item in found:
        lines = tuple(difference.words for difference in item.differences)
        alike.setdefault((item.task, item.solver, item.state, item.reason, lines), []).append(item)
    for (task, solver, state, reason, lines), items in alike.items():
        seeds = ", ".join(_stretches(item.seed for item in items))
        word = "seed" if len(items) == 1 else "seeds"
        yield f"{state:<10}  {task} / {solver} / {word} {seeds}: {reason}"
        yield from (f"{'':<12}{line}" for line in lines)


def _stretches(numbers: Iterable[int]) -> Iterator[str]:
    """Numbers in words, three or more in a row as "0 to 2"."""
    places = enumerate(sorted(numbers))
    for _, found in itertools.groupby(places, lambda item: item[1] - item[0]):
        row = [number for _, number in found]
        yield from [f"{row[0]} to {row[-1]}"] if len(row) > 2 else map(str, row)


def as_json(found: Sequence[Explained]) -> str:
    """The same as JSON: a list of objects, one for each run."""
    return json.dumps([asdict(item) for item in found], indent=2, ensure_ascii=False)


def _explained(
    results: Path,
    described: Mapping[str, Any],
    kind: Kind,
    study: StudyBase,
    executor: Executor,
    say: Callable[[str], None],
) -> list[Explained]:
    planned = {(run["task"], run["solver"], run["seed"]) for run in described["planned"]}
    # Seeds that an option added are beyond those of the study.
    seeds = max((seed + 1 for _, _, seed in planned), default=1)
    wide = study.with_seeds(max(seeds, _most_seeds(study)))
    facts = preflight(wide, executor, say)
    added = added_labels(described["study"])
    finder = _Finder(results, kind, study, facts.solvers)
    of_study = study.runs()
    found = []
    for run in kind.plan(wide, facts):
        identity = (run.task, run.solver, run.seed)
        own = identity in of_study and not added & {run.task, run.solver}
        if own or identity in planned:
            found.append(finder.explain(run))
    return found


def _most_seeds(study: StudyBase) -> int:
    return max(study.n_seeds(task, entry) for task in study.tasks for entry in study.solvers)


class _Finder:
    """Finds the records of planned runs and what sets them apart."""

    def __init__(
        self, results: Path, kind: Kind, study: StudyBase, solvers: Mapping[str, SolverInfo]
    ) -> None:
        self.results, self.kind, self.study, self.solvers = results, kind, study, solvers
        self.runs = RecordStore(results / "runs")
        self.aside = RecordStore(results / FOLDER)
        self._files = {store: files_by_stem(store) for store in (self.runs, self.aside)}

    def explain(self, run: Run) -> Explained:
        """What would be done about a run, and why."""
        place = self.runs.place(run.file_name)
        record = _loaded(self.runs, run.file_name)
        if isinstance(record, RecordError):
            return self._told(run, "damaged", str(record).removeprefix(f"{place}: "), place)
        if record is not None and record.key == run.key:
            limits = wider_limits(self.kind, self.study.budget, record)
            if limits:
                raised = " and ".join(limits)
                reason = f"it ended with {record.status!r}, and {raised} is higher now"
                return self._told(run, "repeated", reason, place)
            reason = f"its record is current ({record.status})"
            return self._told(run, "recorded", reason, place)
        aside = _loaded(self.aside, run.file_name)
        if isinstance(aside, RecordBase) and aside.key == run.key:
            reason = f"its record is taken back from {FOLDER}"
            return self._told(run, "superseded", reason, self.aside.folder / run.file_name)
        return self._without_current_record(run)

    def _without_current_record(self, run: Run) -> Explained:
        places: tuple[tuple[State, RecordStore, str], ...] = (
            ("stale", self.runs, "its record has another key"),
            ("missing", self.aside, f"no record but one in {FOLDER}, which has another key"),
        )
        for state, store, words in places:
            latest = self._latest(store, run)
            if latest is not None:
                path, record = latest
                differences = tuple(self._differences(record, run))
                if not differences:
                    words += "; it is of an earlier release and does not say what it is made of"
                return self._told(run, state, words, path, differences)
        reason = f"no record; it cannot start: {run.failure}" if run.failure else "no record"
        return self._told(run, "missing", reason)

    def _latest(self, store: RecordStore, run: Run) -> tuple[Path, RecordBase] | None:
        """The newest record of the same task, solver and seed under another key."""
        found = []
        for name in self._files[store].get(stem_of(run.file_name), ()):
            record = _loaded(store, name)
            if isinstance(record, RecordBase) and (
                (record.task, record.solver, record.seed) == (run.task, run.solver, run.seed)
            ):
                found.append((store.place(name), record))
        return max(found, key=lambda item: item[1].started_at, default=None)

    def _differences(self, record: RecordBase, run: Run) -> Iterator[Difference]:
        before, now = json.loads(record.key_parts), json.loads(run.known["key_parts"])
        if not before:
            return
        sources = before.pop("source"), now.pop("source")
        if sources[0] != sources[1]:
            yield from self._changed_files(*sources, self.solvers[run.solver].files)
        flat, today = dict(_flat(before)), dict(_flat(now))
        for name in sorted(flat.keys() | today.keys()):
            if flat.get(name) != today.get(name):
                yield Difference(name, flat.get(name), today.get(name))

    def _changed_files(
        self, before: str, now: str, files: Mapping[str, str]
    ) -> Iterator[Difference]:
        old = read_sources(self.results, before)
        if old is None:
            yield Difference("source", before[:10], now[:10])
            return
        for name in sorted(old.keys() | files.keys()):
            if name not in files:
                yield Difference(f"source.{name}", old[name], "is no longer used")
            elif name not in old:
                yield Difference(f"source.{name}", None, "is used now")
            elif old[name] != files[name]:
                yield Difference(f"source.{name}", old[name], "has changed")

    def _told(
        self,
        run: Run,
        state: State,
        reason: str,
        record: Path | None = None,
        differences: tuple[Difference, ...] = (),
    ) -> Explained:
        return Explained(
            task=run.task,
            solver=run.solver,
            seed=run.seed,
            state=state,
            reason=reason,
            key=run.key,
            file=run.file_name,
            record="" if record is None else record.relative_to(self.results).as_posix(),
            differences=differences,
        )


def _loaded(store: RecordStore, name: str) -> RecordBase | RecordError | None:
    try:
        return store.load(name)
    except RecordError as error:
        return error


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values by dotted names."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _flat(item, f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, value


def _shown(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)
