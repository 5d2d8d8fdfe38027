"""What a results folder plans: the runs of a command beside those that were planned before.

A command may run a part of a study. The page of the folder must show all that its records hold of
the study, so ``study.json`` keeps earlier planned runs. A run that this command does not plan stays
planned if the study still has it, or an option once added it to the study and it could start, and
if its task and its solver are still configured as they were then. All others are dropped from the
plan; their records stay where they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..hashing import canonical_json
from ..loading import SolverSpec
from ..results.description import Cell, cell_of
from ..study.model import DatasetTask, StudyBase, is_users_file, table_type
from ..words import plural

# Keys of an entry that do not say what its runs are.
_NOT_CONFIGURING = frozenset({"seeds", "instances", "published", "reference", "added"})


@dataclass(frozen=True)
class Scope:
    """What a command runs of a study."""

    whole: StudyBase  # the study as its file has it
    part: StudyBase  # what the command runs, the study itself or a selection

    def words(self) -> str:
        """How much of the study the command runs: "1 of 3 tasks"; empty for all of it."""
        words = []
        for word in ("task", "solver"):
            in_study, labels = (
                {entry.label for entry in getattr(study, f"{word}s")}
                for study in (self.whole, self.part)
            )
            if in_study - labels:
                words.append(f"{len(labels & in_study)} of {len(in_study)} {word}s")
            if labels - in_study:
                words.append(plural(len(labels - in_study), f"more {word}"))
        seeds, chosen_seeds = self.whole.most_seeds, self.part.most_seeds
        if chosen_seeds < seeds:
            words.append(f"{chosen_seeds} of {seeds} seeds")
        if self.part.selection is not None:
            words.append(f"where {self.part.selection.text}")
        return ", ".join(words)

    def content(self, results: Path) -> dict[str, Any]:
        """The study, and what the command adds to it, as plain values."""
        tables = (*self.whole.task_tables, self.whole.solver_table)
        content: dict[str, Any] = {"settings": self.whole.model_dump(exclude=set(tables))}
        content |= {"tasks": {}, "solvers": {}}
        for study, added in ((self.whole, {}), (self.part, {"added": True})):
            for table in tables:
                kept = content["solvers" if table == study.solver_table else "tasks"]
                for entry in getattr(study, table):
                    values = {"table": table, **entry.model_dump(), **added}
                    kept.setdefault(entry.label, values | _portable(entry, results))
        return content


def _portable(entry: Any, results: Path) -> dict[str, Any]:
    """The fields that name files, or "file.py:name", with the way to them from the folder."""
    folder = getattr(entry, "folder", None)

    def way(name: str) -> str:
        before, _, after = name.rpartition(":")
        file, rest = (before, f":{after}") if before.endswith(".py") else (name, "")
        path = Path(folder or ".").joinpath(Path(file).expanduser()).resolve()
        return os.path.relpath(path, results.resolve()) + rest

    texts = {name: getattr(entry, name, "") for name in ("name", "kernel")}
    fields: dict[str, Any] = {name: way(text) for name, text in texts.items() if ".py:" in text}
    if isinstance(entry, DatasetTask) and is_users_file(entry.dataset, folder):
        fields |= {"dataset": way(entry.dataset), "dataset_params": dict(entry.dataset_params)}
        test = entry.dataset_params.get("test")
        if isinstance(test, str) and test and not test.startswith("last "):
            fields["dataset_params"]["test"] = way(test)
    return fields


def merged(
    now: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    whole: StudyBase,
    content: Mapping[str, Any],
) -> dict[str, Any]:
    """The description of a folder from that of a command's plan and from the one before.

    ``content`` is the study as plain values, with what the command adds to it.
    """
    before, described, content = before or {}, dict(now), dict(content)
    stored = before.get("study", {"tasks": {}, "solvers": {}})
    # The entries that are not configured as they were.
    changed = {
        (table, label)
        for table in ("tasks", "solvers")
        for label in stored[table].keys() & content[table].keys()
        if configuration(stored[table][label]) != configuration(content[table][label])
    }
    solvers = {entry["label"]: entry for entry in (*before.get("solvers", ()), *now["solvers"])}
    of_study = whole.runs(solvers)
    runs = [_marked(run, of_study) for run in now["planned"]]
    planned_now = {cell_of(run) for run in runs}
    kept = [
        _marked(run, of_study)
        for run in before.get("planned", ())
        if cell_of(run) not in planned_now
        and (cell_of(run) in of_study or (run.get("added") and not run.get("failed")))
        and not changed & {("tasks", run["task"]), ("solvers", run["solver"])}
    ]
    planned, order = [*runs, *kept], dict[str, dict[str, int]]()
    for what, table in (("task", "tasks"), ("solver", "solvers")):
        used = {run[what] for run in planned}
        of_others = {label: entry for label, entry in stored[table].items() if label in used}
        content[table] = content[table] | of_others | content[table]
        order[what] = {label: number for number, label in enumerate(content[table])}
        entries = {entry["label"]: entry for entry in (*before.get(table, ()), *now[table])}
        # Of what was planned before only that of which runs are left; and --where may have chosen
        # no run of an entry.
        described[table] = [entries[label] for label in order[what] if label in used]
    described["planned"] = sorted(
        planned,
        key=lambda run: (order["task"][run["task"]], order["solver"][run["solver"]], run["seed"]),
    )
    if "seeds" in now:
        described["seeds"] = sorted({*now["seeds"], *(run["seed"] for run in kept)})
    # The commands that have planned these runs, one in a line.
    commands = before.get("command", "").split("\n") if kept else []
    if not kept or planned_now - {cell_of(run) for run in before["planned"]}:
        commands += now["command"].split("\n")
    described["command"] = "\n".join(dict.fromkeys(filter(None, commands)))
    described["study"] = content
    # How many runs there are when all of the study was run.
    known = {entry["label"] for entry in described["solvers"]}
    cells = {cell for cell in of_study if cell[1] in known}
    described["of"] = {"runs": len(cells.union(map(cell_of, planned)))}
    return described


def restored(model: type[StudyBase], content: Mapping[str, Any], results: Path) -> Scope:
    """The study that :func:`merged` stored, and as a part of it with what options added."""
    names = (*model.task_tables, model.solver_table)
    tables: dict[str, list[Any]] = {name: [] for name in names}
    for entry in (*content["tasks"].values(), *content["solvers"].values()):
        values = {name: value for name, value in entry.items() if name not in ("table", "added")}
        table = entry["table"]
        code = "name" if table == model.solver_table else "kernel"
        if code in values:
            values[code] = SolverSpec.parse(values[code], results).text
        # As an object: a list among its parameters is a value, not a grid.
        made = table_type(model, table).model_validate(values)
        made = made.placed(str(results.resolve())) if isinstance(made, DatasetTask) else made
        tables[table].append(made)
    part = model.model_validate(content["settings"] | tables)

    def of_file(what: str) -> Sequence[Any]:
        entries = getattr(part, what)
        # All of them may have been added.
        return [each for each in entries if not content[what][each.label].get("added")] or entries

    return Scope(part.with_tasks(of_file("tasks")).with_solvers(of_file("solvers")), part)


def _marked(run: Mapping[str, Any], of_study: Set[Cell]) -> dict[str, Any]:
    """A planned run, which says if the study's file does not have it."""
    plain = {name: value for name, value in run.items() if name != "added"}
    return plain if cell_of(run) in of_study else plain | {"added": True}


def configuration(entry: Mapping[str, Any]) -> str:
    """What an entry of a study says of its runs, but for how many they are."""
    settings = {k: v for k, v in entry.items() if v not in (None, {}, [])}
    return canonical_json({k: v for k, v in settings.items() if k not in _NOT_CONFIGURING})
