"""The page of two commits: what changed from one to the other, whole in one HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from ..tables import NONE, Cell as Entry, Heading, Table
from ..templating import environment, page, page_script, script_source
from . import sentences, words
from .annotations import Annotation
from .history import Neighbours
from .values import Snapshot
from .verdicts import CellVerdict, Change
from .words import Pair

#: The scripts of these pages: tables sort and filter.
SCRIPTS = ("00_page", "10_hash", "20_tables")
_FAILING = ("failed", "gone", "still failing")


@dataclass(frozen=True)
class Navigation:
    """Where a page of a pair leads to, as part of a site.

    Attributes
    ----------
    overview, site : str
        The overview of regressions, and of the site; empty for none.
    earlier, later : str
        The pages of the neighbouring pairs.
    solvers : mapping of str to str
        Pages of solvers by their names.
    commit : str
        The commit where the repository is on the web.
    """

    overview: str = ""
    site: str = ""
    earlier: str = ""
    later: str = ""
    solvers: tuple[tuple[str, str], ...] = ()
    commit: str = ""


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


def render_pair(pair: Pair, navigation: Navigation | None = None) -> str:
    """The page of two commits, as HTML text.

    Parameters
    ----------
    pair : Pair
        Of a history, or alone.
    navigation : Navigation, optional
        Where it leads to as part of a site.
    """
    near = pair if isinstance(pair, Neighbours) else Neighbours.alone(pair)
    cells = near.comparison.cells
    changed = [each for each in cells if each.told or each.verdict in _FAILING]
    return page_of(
        "regressions_pair.html",
        pair=near,
        headline=sentences.headline(near),
        bad=any(near.kinds[kind] for kind in sentences.BAD),
        verdict=sentences.verdict_sentences(near),
        key_figures=_key_figures(near),
        notes=sentences.notes(near),
        known=_known(near),
        failures=_failures([each for each in cells if each.verdict in _FAILING]),
        groups=_groups(words.groups(near.comparison)),
        changes=_changes(near, cells),
        advice=_advice(near.comparison.advice),
        commands=[words.reproduce(each.cell, near.head) for each in changed],
        unchanged=_unchanged(cells),
        n_unchanged=near.kinds["unchanged"],
        bounds=_bounds(cells),
        machine=_machine(near.comparison.before, near.comparison.after),
        navigation=navigation or Navigation(),
    )


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


def _key_figures(pair: Neighbours) -> list[tuple[str, int, bool]]:
    kinds = pair.kinds
    shown = [
        (words, kinds[kind], kind in sentences.BAD and kinds[kind] > 0)
        for kind, words in sentences.KINDS
        if kinds[kind] or kind in ("failed", "regression", "improvement")
    ]
    return [*shown, ("unchanged", kinds["unchanged"], False)]


def _known(pair: Neighbours) -> list[tuple[Annotation, int]]:
    """The known changes, and how many cells are worse, fail or are gone by each."""
    accepted = [
        {each.accepted, *(change.accepted for change in each.changes)}
        for each in pair.comparison.cells
    ]
    used = sorted({one for each in accepted for one in each if one}, key=lambda one: one.why)
    entries = dict.fromkeys([*pair.annotations, *used])
    return [(entry, sum(entry in each for each in accepted)) for entry in entries]


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


def _changes(pair: Neighbours, cells: Iterable[CellVerdict]) -> Table | None:
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
    rows = [_row(pair, each) for each in told]
    if all(row[-1] is NONE for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return Table("Changed values", headings, rows, cards=True)


def _row(pair: Neighbours, change: Change) -> list[Entry]:
    before, after = change.before, change.after
    cell = change.key.cell
    blip = (
        "blip: back with the next commit"
        if change.key in pair.left
        else "back from a blip"
        if change.key in pair.back
        else ""
    )
    remark = "; ".join(filter(None, [blip, change.accepted.why if change.accepted else ""]))
    return [
        Entry(cell.group),
        Entry(cell.name.partition(" ")[2] or cell.suite),
        Entry(change.measure.title),
        Entry(words.value_words(change, before), number=before, absent=before is None),
        Entry(words.value_words(change, after), number=after, absent=after is None),
        Entry(words.ratio_words(change), number=change.ratio),
        Entry(change.size) if change.size else NONE,
        Entry(change.outcome, incomplete=change.refused and not blip),
        Entry(remark) if remark else NONE,
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
