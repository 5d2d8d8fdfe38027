"""Whether a command has nothing to do: the same as one that ended here, on the same records.

Then neither the solvers are imported nor the runs planned. What the command found is kept in the
cache folder, under a digest of all that it depended on; if anything differs, or cannot be told, the
command does all its work again. Every record is checked against its checksum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....solvers.registration import solver_names
from ...errors import RecordError
from ...execution.outcomes import RunSummary
from ...hashing import hash_json
from ...planning.fingerprint import numeric_versions
from ...planning.plan import Run
from ...study.names import dataset_names, is_foreign
from ..description import FILE_NAME
from ..plans import Scope
from ..store import RecordStore
from .stamps import (
    program_stamp,
    records_stamp,
    remember,
    remembered,
)

_WHAT = "commands"
# Commands that are kept for a results folder: the study, and parts of it.
_MOST_COMMANDS = 4
# Other files than records that a command writes, or that change what it does.
_WATCHED = (FILE_NAME,)
_LISTED = ("sources", "superseded")


@dataclass(frozen=True)
class Resumption:
    """A command on a results folder.

    Attributes
    ----------
    scope : Scope
        What it runs.
    results : Path
    options : mapping
        All else that was given.
    """

    scope: Scope
    results: Path
    options: Mapping[str, Any]

    @property
    def is_told_by_files(self) -> bool:
        """Whether files of the program determine its plan: solvers and data of its own only.

        Others are looked at in every command.
        """
        part, known = self.scope.part, solver_names(self.scope.part.kind)
        datasets = dataset_names()
        return all(
            not is_foreign(entry.name) and entry.name in known for entry in part.solvers
        ) and all(getattr(task, "dataset", datasets[0]) in datasets for task in part.tasks)

    def asked(self) -> str:
        """A digest of what is asked for, and of the program."""
        whole, part = self.scope.whole, self.scope.part
        selected = [study.selection and sorted(study.selection.runs) for study in (whole, part)]
        studies = [whole.model_dump(), part.model_dump(), self.scope.words(), selected]
        return hash_json([studies, dict(self.options), program_stamp(), numeric_versions()])

    def asked_if_told(self) -> str:
        """The same; empty if it does not tell the plan."""
        return self.asked() if self.is_told_by_files else ""

    def summary(self) -> RunSummary | None:
        """How the runs ended, if all are recorded and nothing has changed; otherwise None."""
        if not self.is_told_by_files:
            return None
        known = remembered(self.results, _WHAT).get(self.asked())
        if known is None or known["folder"] != self._folder():
            return None
        store = RecordStore(self.results / "runs")
        try:
            if known["records"] != _digest(records_stamp(store)):
                return None
        except RecordError:
            return None
        return RunSummary(
            results=self.results,
            planned=known["planned"],
            already_recorded=known["planned"],
            statuses=dict(known["statuses"]),
            unexpected=tuple(known["unexpected"]),
            part=self.scope.words(),
        )

    def kept(
        self, asked: str, runs: Sequence[Run], recorded: Container[str], ended: RunSummary
    ) -> RunSummary:
        """How the runs ended, which is kept if another command would find the same.

        Parameters
        ----------
        asked : str
            What :meth:`asked` was before they were planned.
        runs : sequence of Run
        recorded : container of str
            Keys of the runs that are recorded.
        ended : RunSummary
        """
        final = not ended.data_errors and self._is_final(runs, recorded)
        if not asked or not final or asked != self.asked():
            return ended
        try:
            stamp = records_stamp(RecordStore(self.results / "runs"))
        except RecordError:
            return ended
        found = {
            "folder": self._folder(),
            "records": _digest(stamp),
            "planned": len(runs),
            "statuses": ended.statuses,
            "unexpected": ended.unexpected,
        }
        kept = remembered(self.results, _WHAT)
        kept.pop(asked, None)
        recent = dict(list(kept.items())[1 - _MOST_COMMANDS :])
        remember(self.results, _WHAT, recent | {asked: found})
        return ended

    def _is_final(self, runs: Sequence[Run], recorded: Container[str]) -> bool:
        """Whether another command would find out nothing new: no optimum is missing, no library."""
        wanted = {
            task.label
            for task in self.scope.part.tasks
            if not getattr(task, "why_no_reference", "-")
        }
        return all(
            run.key in recorded
            and not run.failure
            and (run.reference is not None or run.task not in wanted)
            for run in runs
        )

    def _folder(self) -> str:
        """What the folder holds besides its records."""
        contents = [_digest_of_file(self.results / name) for name in _WATCHED]
        names = [
            sorted(path.name for path in self.results.glob(f"{folder}/*")) for folder in _LISTED
        ]
        others = sorted(
            path.name
            for path in (self.results / "runs").glob("*")
            if path.suffix != ".parquet" or path.name.startswith((".", "_"))
        )
        return hash_json([contents, names, others])


def _digest_of_file(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _digest(stamp: Mapping[str, str]) -> str:
    return hash_json(sorted(stamp.items()))
