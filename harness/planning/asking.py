"""What must be known before runs can be planned, found out in workers: none of it may hang."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ...data_loaders import suggest
from ..errors import SolverError, StudyError
from ..execution.jobs import Ended, Executor, Job, Limits, Outcome, Started
from ..hashing import canonical_json
from ..study.model import StudyBase
from ..study.parts import SolverEntry
from ..study.select import is_foreign
from .questions import DatasetInfo, DatasetWork, DescribeWork, SolverInfo

Say = Callable[[str], None]

# Seconds after which the user is told what is being waited for.
_A_MOMENT = 3.0


@dataclass(frozen=True)
class Ask:
    """Asks workers.

    Attributes
    ----------
    executor : Executor
    limits : Limits
        Those of a run of the study.
    say : callable
        Takes one line for the user: what takes long, what was put right.
    threads : int
    computes : bool
        Whether what takes long is computed (reference optima), or only looked up.
    """

    executor: Executor
    limits: Limits
    say: Say
    threads: int = 1
    computes: bool = True

    def __call__(self, jobs: Iterable[Job], words: str) -> Iterator[tuple[Job, Outcome]]:
        """Run jobs; what takes more than a moment is announced in these words.

        A worker that crashes may have been killed by someone else: its job is tried once again.
        """
        crashed: list[Job] = []
        for job, outcome in self._once(jobs, words):
            if outcome.status == "crashed":
                crashed.append(job)
            else:
                yield job, outcome
        if crashed:
            yield from self._once(crashed, words)

    def _once(self, jobs: Iterable[Job], words: str) -> Iterator[tuple[Job, Outcome]]:
        unannounced: dict[str, float] = {}
        for event in self.executor.execute(iter(jobs)):
            if isinstance(event, Started):
                unannounced[event.job.tag] = time.monotonic() + _A_MOMENT
            elif isinstance(event, Ended):
                unannounced.pop(event.job.tag, None)
                yield event.job, event.outcome
            else:
                for tag in [tag for tag, due in unannounced.items() if time.monotonic() > due]:
                    del unannounced[tag]
                    self.say(words.format(tag) + " ...")

    def solvers(self, entries: Sequence[SolverEntry], kind: str) -> dict[str, SolverInfo]:
        """The classes of the solvers, by label.

        Raises
        ------
        SolverError
            If one cannot be imported.
        """
        alike: dict[str, list[SolverEntry]] = {}
        for entry in entries:
            alike.setdefault(entry.name, []).append(entry)
        jobs = (
            Job(
                name,
                # Making an object of a class from outside may do anything: that comes later.
                DescribeWork(name, kind, () if is_foreign(name) else _params(named)),
                self.limits,
                self.threads,
                is_foreign(name),
            )
            for name, named in alike.items()
        )
        found: dict[str, SolverInfo] = {}
        for job, outcome in self(jobs, "importing {}"):
            if outcome.status == "user":
                raise SolverError(outcome.reason)
            if outcome.status != "done":
                raise SolverError(
                    f"{job.tag}: cannot be imported: {outcome.reason}{_hint(outcome)}"
                )
            found[job.tag] = outcome.value
        found |= self._refusals(alike, kind, found)
        return {
            entry.label: replace(found[name], refusals=found[name].refusals[number:][:1])
            for name, named in alike.items()
            for number, entry in enumerate(named)
        }

    def _refusals(
        self, alike: Mapping[str, list[SolverEntry]], kind: str, found: Mapping[str, SolverInfo]
    ) -> dict[str, SolverInfo]:
        """Which parameters classes from outside refuse; what goes wrong there, runs will tell."""
        jobs = (
            Job(name, DescribeWork(name, kind, _params(named)), self.limits, self.threads, True)
            for name, named in alike.items()
            if is_foreign(name) and any(entry.params for entry in named)
        )
        return {
            job.tag: replace(found[job.tag], refusals=outcome.value.refusals)
            for job, outcome in self._once(jobs, "checking the parameters of {}")
            if outcome.status == "done"
        }

    def datasets(self, tasks: Sequence[Any]) -> dict[str, DatasetInfo | str]:
        """The datasets of tasks by label, or why they cannot be loaded.

        Parameters
        ----------
        tasks : sequence
            With ``label``, ``dataset``, ``dataset_params``, ``folder`` and ``runs_code``.
        """
        tags = _dataset_tags(tasks)
        wanted = {tags[task.label]: task for task in tasks}
        jobs = (
            Job(
                tag,
                DatasetWork(task.dataset, dict(task.dataset_params), task.folder),
                self.limits,
                self.threads,
                task.runs_code,
            )
            for tag, task in wanted.items()
        )
        found: dict[str, DatasetInfo | str] = {}
        for job, outcome in self(jobs, "loading {}"):
            if outcome.status == "done":
                found[job.tag] = outcome.value
                for note in outcome.value.notes:
                    self.say(note)
            elif outcome.status == "data":
                found[job.tag] = outcome.reason
            else:
                found[job.tag] = f"{wanted[job.tag].dataset}: {outcome.reason}"
        return {task.label: found[tags[task.label]] for task in tasks}


def _params(entries: Sequence[SolverEntry]) -> tuple[dict[str, Any], ...]:
    return tuple(entry.params for entry in entries)


def check_parameters(
    study: StudyBase,
    entries: Sequence[SolverEntry],
    solvers: Mapping[str, SolverInfo],
    decides: str,
    decided: Sequence[str],
    given: Sequence[str] = (),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Check each solver's parameters against its class.

    Parameters
    ----------
    study : StudyBase
    entries : sequence of SolverEntry
        Those of its solvers that are to be checked.
    solvers : mapping
        The classes by label.
    decides : str
        What decides some parameters for all solvers: "task", "[[cell]]", ...
    decided : sequence of str
        The names of those.
    given : sequence of str
        Parameters that a run gets from elsewhere, so that the study may leave them out.
    refused : mapping
        Parameters that no study may set -> why.

    Raises
    ------
    StudyError
        For a parameter that the class does not have, one that is decided or refused, a missing
        one, and for values that the class itself refuses.
    """
    # A mistake in a grid is one, in however many of its entries it is found.
    wrong: dict[str, None] = {}
    for entry in entries:
        info = solvers[entry.label]
        for name in entry.params:
            place = study.place(entry.label, "params", name)
            if name not in info.accepted:
                free = sorted(info.accepted.difference(decided, refused))
                wrong[f"{place}unknown parameter {name!r}{suggest(name, free)}"] = None
            elif name in decided:
                wrong[
                    f"{place}{name!r} is decided by the {decides}, the same for all solvers; "
                    "remove it from params"
                ] = None
            elif name in refused:
                wrong[f"{place}{name!r} {refused[name]}; remove it from params"] = None
        missing = set(info.required).difference(entry.params, decided, given)
        if missing:
            names = ", ".join(sorted(missing))
            wrong[f"{study.place(entry.label)}give a value for {names} in params"] = None
        for refusal in filter(None, info.refusals):
            named = [name for name in entry.params if re.search(rf"\b{re.escape(name)}\b", refusal)]
            wrong[f"{study.place(entry.label, 'params', *named[:1])}{refusal}"] = None
    if wrong:
        raise StudyError(*wrong)


def _hint(outcome: Outcome) -> str:
    """What to do where a file needs longer than the study gives it."""
    return "; raise compile_timeout in [budget]" if outcome.status == "timeout" else ""


def _dataset_tags(tasks: Sequence[Any]) -> dict[str, str]:
    """Of each task by label the name of its data, with all that tells them from others."""
    folders: dict[str, list[str | None]] = {}
    tags = {}
    for task in tasks:
        tag = f"{task.dataset} {canonical_json(task.dataset_params)}".removesuffix(" {}")
        known = folders.setdefault(tag, [task.folder])
        tags[task.label] = tag if task.folder == known[0] else f"{tag} in {task.folder}"
    return tags
