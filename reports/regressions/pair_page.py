"""The page of two commits: what changed from one to the other, whole in one HTML file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from marginbench.data_loaders.atomic import replacing
from marginbench.harness.environment import version
from marginbench.harness.errors import StorageError
from marginbench.harness.interrupts import interrupts_deferred
from marginbench.harness.storage import storing
from marginbench.reports.regressions import sentences
from marginbench.reports.regressions.annotations import Annotation
from marginbench.reports.regressions.history import Pair
from marginbench.reports.regressions.repository import Commit
from marginbench.reports.regressions.sentences import ratio_words
from marginbench.reports.regressions.values import Cell, Snapshot
from marginbench.reports.regressions.verdicts import CellVerdict, Change, Comparison
from marginbench.reports.tables import NONE, Cell as Entry, Heading, Table
from marginbench.reports.templating import environment, page, page_script, script_source

#: The command that measures a cell again, from the cell and the hash of a commit.
Reproduce = Callable[[Cell, str], str]
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


def reproduced(cell: Cell, commit: str) -> str:
    """The command that measures a cell at a commit."""
    suite = cell.suite.partition(".")[0]
    return f"git switch --detach {commit} && python -m benchmarks.{suite} {shlex.quote(cell.name)}"


def render_pair(
    comparison: Comparison,
    base: Commit,
    head: Commit,
    *,
    annotations: Sequence[Annotation] = (),
    reproduce: Reproduce = reproduced,
) -> str:
    """The page of two commits that stand alone, as HTML text.

    Parameters
    ----------
    comparison : Comparison
    base, head : Commit
    annotations : sequence of Annotation
        The known changes between them.
    reproduce : callable
        The command that measures a cell again, from the cell and the hash of a commit.
    """
    return render(Pair(base, head, comparison, tuple(annotations)), reproduce=reproduce)


def write_pair_page(
    path: Path,
    comparison: Comparison,
    base: Commit,
    head: Commit,
    *,
    annotations: Sequence[Annotation] = (),
    reproduce: Reproduce = reproduced,
) -> Path:
    """Write the page of two commits, atomically.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    if not path.name or path.is_dir():
        raise StorageError(f"{path}: is a folder; give the page a file, such as regressions.html")
    text = render_pair(comparison, base, head, annotations=annotations, reproduce=reproduce)
    with interrupts_deferred(), storing(path), replacing(path) as sink:
        sink.write(text.encode())
    return path


def render(
    pair: Pair, navigation: Navigation | None = None, reproduce: Reproduce = reproduced
) -> str:
    """The page of a pair of a history, as HTML text."""
    cells = pair.comparison.cells
    changed = [each for each in cells if each.told or each.verdict in _FAILING]
    advice = pair.comparison.advice
    return page_of(
        "regressions_pair.html",
        pair=pair,
        headline=sentences.headline(pair),
        bad=any(pair.kinds[kind] for kind in sentences.BAD),
        verdict=sentences.verdict_sentences(pair),
        key_figures=_key_figures(pair),
        notes=sentences.notes(pair),
        known=[(each, _covered(pair, each)) for each in pair.annotations],
        failures=_failures(pair, [each for each in cells if each.verdict in _FAILING]),
        groups=_groups(sentences.by_group(cells)),
        changes=_changes(pair, cells),
        advice=_advice(advice),
        commands=[reproduce(each.cell, pair.after.hash) for each in changed],
        unchanged=_unchanged(cells),
        n_unchanged=pair.kinds["unchanged"],
        bounds=_bounds(cells),
        machine=_machine(pair.comparison.before, pair.comparison.after),
        navigation=navigation or Navigation(),
    )


def page_of(template: str, **values: Any) -> str:
    """A page of regressions from its template, with the script of tables."""
    script = page_script(*SCRIPTS)
    return page(
        environment().get_template(template),
        script=Markup(script),
        script_source=script_source(script),
        version=version(),
        **values,
    )


def _key_figures(pair: Pair) -> list[tuple[str, int, bool]]:
    kinds = pair.kinds
    shown = [
        (words, kinds[kind], kind in sentences.BAD and kinds[kind] > 0)
        for kind, words in sentences.KINDS
        if kinds[kind] or kind in ("failed", "regression", "improvement")
    ]
    return [*shown, ("unchanged", kinds["unchanged"], False)]


def _covered(pair: Pair, annotation: Annotation) -> int:
    """How many cells are worse, fail or are gone by a known change."""
    return sum(
        annotation in {each.accepted, *(change.accepted for change in each.changes)}
        for each in pair.comparison.cells
    )


def _failures(pair: Pair, cells: Sequence[CellVerdict]) -> Table | None:
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


def _groups(groups: Sequence[sentences.GroupSummary]) -> Table | None:
    if not groups:
        return None
    rows = [
        [
            Entry(each.group),
            Entry(f"{each.changed} of {each.cells}", number=each.changed),
            Entry("; ".join(each.sentences)),
        ]
        for each in groups
    ]
    headings = [Heading("Solver"), Heading("Cells", "number"), Heading("What changed", "wide")]
    return Table("Changes by solver", headings, rows, cards=True)


def _changes(pair: Pair, cells: Iterable[CellVerdict]) -> Table | None:
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
    return Table("Changed values", headings, [_row(pair, each) for each in told], cards=True)


def _row(pair: Pair, change: Change) -> list[Entry]:
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
        *(
            Entry(change.measure.say(value), number=value) if value is not None else NONE
            for value in (before, after)
        ),
        Entry(ratio_words(change.ratio), number=change.ratio) if change.ratio else NONE,
        Entry(change.size) if change.size else NONE,
        Entry(change.outcome, incomplete=change.refused and not blip),
        Entry(remark) if remark else NONE,
    ]


def _advice(changes: Sequence[Change]) -> Table | None:
    if not changes:
        return None
    rows = []
    for each in changes:
        if each.estimate is None or each.before is None or each.after is None:
            continue
        low, high = ratio_words(each.estimate.low), ratio_words(each.estimate.high)
        rows.append(
            [
                Entry(each.key.cell.name or each.key.cell.suite),
                Entry(each.measure.title),
                Entry(each.measure.say(each.before), number=each.before),
                Entry(each.measure.say(each.after), number=each.after),
                Entry(
                    ratio_words(each.estimate.ratio),
                    range=f"{low} to {high}",
                    number=each.estimate.ratio,
                ),
            ]
        )
    names = ("Before", "After", "Ratio")
    headings = [Heading("Cell"), Heading("Measure"), *(Heading(name, "number") for name in names)]
    return Table("Times", headings, rows, cards=True)


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
