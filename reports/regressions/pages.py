"""The page of two commits and the page of a history, each whole in one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ...data_loaders.atomic import replacing
from ...harness.environment import version
from ...harness.errors import StorageError
from ...harness.interrupts import interrupts_deferred
from ...harness.storage import storing
from ..naming import slugs
from ..tables import NONE, Cell as Entry, Heading, Table
from ..templating import environment, page, page_script, script_source
from ..wording import capitalised
from . import words
from .annotations import Annotation
from .history import History
from .values import Snapshot
from .verdicts import EXIT_SAME, CellVerdict, Change
from .words import Pair

#: The scripts of these pages: tables sort and filter.
SCRIPTS = ("00_page", "10_hash", "20_tables")
_FAILING = ("failed", "gone", "still failing")


def write_pair_page(path: Path, pair: Pair) -> Path:
    """Write the page of two commits, atomically.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    if not path.name or path.is_dir():
        raise StorageError(f"{path}: is a folder; give the page a file, such as regressions.html")
    text = render_pair(pair).encode()
    with interrupts_deferred(), storing(path), replacing(path) as sink:
        sink.write(text)
    return path


def render_pair(pair: Pair) -> str:
    """The page of two commits, as HTML text."""
    comparison = pair.comparison
    cells = comparison.cells
    changed = [each for each in cells if each.told or each.verdict in _FAILING]
    return page_of(
        "regressions_pair.html",
        pair=pair,
        headline=capitalised(words.headline(comparison)),
        bad=comparison.exit_code != EXIT_SAME,
        verdict=words.gate_sentence(comparison),
        notes=[f"{capitalised(each)}." for each in (*pair.notes, *words.notes(comparison))],
        known=_known(cells),
        failures=_failures([each for each in cells if each.verdict in _FAILING]),
        groups=_groups(words.groups(comparison)),
        changes=_changes(cells),
        advice=_advice(comparison.advice),
        commands=[words.reproduce(each.cell, pair.head) for each in changed],
        unchanged=_unchanged(cells),
        n_unchanged=comparison.counts["unchanged"],
        bounds=_bounds(cells),
        machine=_machine(comparison.before, comparison.after),
    )


@dataclass(frozen=True)
class Surroundings:
    """What the page of a history belongs to; addresses are relative to its folder.

    Attributes
    ----------
    site : str
        The overview of the site; empty for none.
    solvers : mapping of str to str
        Pages of the site by names of solvers.
    commit_url : str
        What a hash is put behind to show the commit on the web; empty for none.
    """

    site: str = ""
    solvers: Mapping[str, str] = field(default_factory=dict)
    commit_url: str = ""


def anchors(history: History) -> dict[str, str]:
    """The place of each solver of which a value moved, on the page of the history."""
    return slugs(dict.fromkeys(each.key.cell.group for each in history.moved))


def render_history(lanes: Sequence[History], around: Surroundings | None = None) -> str:
    """The page of a history: what moved, when, and every commit.

    Parameters
    ----------
    lanes : sequence of History
        The one that is shown first comes first.
    around : Surroundings, optional
    """
    return page_of(
        "regressions_index.html",
        lanes=[(each, anchors(each) if each is lanes[0] else {}, _marks(each)) for each in lanes],
        around=around or Surroundings(),
        change_words=words.change_words,
    )


def _marks(history: History) -> list[Counter[str]]:
    """What came with each commit: how many values are better, worse or known, and cells fail."""
    found: list[Counter[str]] = [Counter() for _ in history.commits]
    for each in history.moved:
        for i, step in enumerate(each.steps):
            found[step.place][each.kind(i)] += 1
    for places in history.failures.values():
        for place in places:
            found[place]["failed"] += 1
    return found


def page_of(template: str, **values: Any) -> str:
    """A page of regressions from its template, with the script of tables."""
    script = page_script(*SCRIPTS)
    return page(
        _templates().get_template(template),
        script=Markup(script),
        script_source=script_source(script),
        version=version(),
        **values,
    )


@cache
def _templates() -> jinja2.Environment:
    """The templates, compiled once: a history has a page for each commit."""
    return environment()


def _known(cells: Iterable[CellVerdict]) -> list[tuple[Annotation, int]]:
    """The known changes, and how many cells are worse, fail or are gone by each."""
    accepted = [{each.accepted, *(change.accepted for change in each.changes)} for each in cells]
    used = sorted({one for each in accepted for one in each if one}, key=lambda one: one.why)
    return [(entry, sum(entry in each for each in accepted)) for entry in used]


def _failures(cells: Sequence[CellVerdict]) -> Table | None:
    if not cells:
        return None
    rows = [
        [
            Entry(each.cell.name),
            Entry(each.cell.suite),
            Entry(each.verdict, incomplete=each.verdict != "still failing" and each.refused),
            Entry(each.accepted.why) if each.accepted else NONE,
        ]
        for each in cells
    ]
    headings = [Heading("Cell"), Heading("Suite"), Heading("What"), Heading("Known change", "wide")]
    return Table("Failures", headings, rows, cards=True)


def _groups(groups: Sequence[words.Group]) -> Table | None:
    if not groups:
        return None
    rows = [
        [
            Entry(each.name),
            Entry(", ".join(f"{n} of {each.n_cells} {verdict}" for verdict, n in each.verdicts)),
            Entry("; ".join(each.measures)) if each.measures else NONE,
        ]
        for each in groups
    ]
    headings = [Heading("Solver"), Heading("Cells"), Heading("What changed", "wide")]
    return Table("Changes by solver", headings, rows, cards=True)


def _changes(cells: Iterable[CellVerdict]) -> Table | None:
    """Every value beyond its bound, the most significant first."""
    told = sorted(
        (change for cell in cells for change in cell.told if change.outcome != "gone"),
        key=lambda each: (-abs(each.significance), each.key),
    )
    if not told:
        return None
    headings = [
        *(Heading("Solver"), Heading("Task"), Heading("Measure")),
        *(Heading(each, "number") for each in ("Before", "After", "Ratio")),
        *(Heading("Size"), Heading("Verdict"), Heading("Remark", "wide")),
    ]
    rows = [_row(each) for each in told]
    if all(row[-1] is NONE for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return Table("Changed values", headings, rows, cards=True)


def _row(change: Change) -> list[Entry]:
    before, after = change.before, change.after
    cell = change.key.cell
    return [
        Entry(cell.group),
        Entry(cell.name.partition(" ")[2] or cell.suite),
        Entry(change.measure.title),
        Entry(words.value_words(change, before), number=before, absent=before is None),
        Entry(words.value_words(change, after), number=after, absent=after is None),
        Entry(words.ratio_words(change), number=change.ratio),
        Entry(change.size) if change.size else NONE,
        Entry(change.outcome, incomplete=change.refused),
        Entry(change.accepted.why) if change.accepted else NONE,
    ]


def _advice(changes: Sequence[Change]) -> Table | None:
    if not changes:
        return None
    rows = [
        [
            Entry(each.key.cell.name or each.key.cell.suite),
            Entry(each.measure.title),
            Entry(words.value_words(each, each.before), number=each.before),
            Entry(words.value_words(each, each.after), number=each.after),
            Entry(words.estimate_words(each), number=each.ratio),
        ]
        for each in changes
    ]
    names = ("Before", "After", "Ratio")
    headings = [Heading("Cell"), Heading("Measure"), *(Heading(name, "number") for name in names)]
    return Table("Times and memory", headings, rows, cards=True)


def _unchanged(cells: Iterable[CellVerdict]) -> list[tuple[str, list[str]]]:
    """The tasks on which nothing changed, by solver."""
    found: dict[str, list[str]] = {}
    for each in cells:
        if each.verdict == "unchanged":
            task = each.cell.name.partition(" ")[2] or each.cell.suite
            found.setdefault(each.cell.group, []).append(task)
    return sorted(found.items(), key=lambda item: item[0].casefold())


def _bounds(cells: Iterable[CellVerdict]) -> Table | None:
    measures = {change.measure for each in cells for change in each.changes}
    if not measures:
        return None
    rows = [
        [Entry(each.title), Entry(each.bound_words)]
        for each in sorted(measures, key=lambda each: each.title)
    ]
    return Table("Bounds", [Heading("Measure"), Heading("Accepted change")], rows)


def _machine(before: Snapshot, after: Snapshot) -> Table:
    """The lane, and what asv recorded of the machine on both sides."""
    names = sorted(before.machine.keys() | after.machine.keys())
    rows = [[Entry("environment"), Entry(before.lane.environment), Entry(after.lane.environment)]]
    rows += [
        [Entry(name), *(Entry(side.machine.get(name, "")) for side in (before, after))]
        for name in names
    ]
    differing = frozenset(i for i, row in enumerate(rows) if row[1].value != row[2].value)
    headings = [Heading("Setting"), Heading("Before", "wide"), Heading("After", "wide")]
    return Table("Machine and environment", headings, rows, differing=differing)
