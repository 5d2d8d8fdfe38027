"""The page of timings: a table and a figure for each group, files of one machine side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from ...harness.words import visible
from .. import formatting
from ..drawing.styles import solver_styles, swatch
from ..formatting import plural
from ..links import csv_link
from ..naming import slug, unused
from ..panels import LegendEntry
from ..tables import NONE, Cell, Heading, Table
from ..templating import environment, page
from .timings import Extra, Machine, Timing, TimingFile
from .timings_figure import draw_intervals

#: Its place in a site.
FOLDER, TITLE = "timings", "Timings"
_NO_GROUP = "Without a group"
#: Rows that a figure has room for.
_MOST_ROWS = 60
# Units by the shortest time that they are for.
_UNITS = ((1.0, 1.0, "s"), (1e-4, 1e3, "ms"), (0.0, 1e6, "\N{MICRO SIGN}s"))
_EXTRAS: Mapping[str, tuple[str, str]] = {
    "test_error": ("Test error", "percent"),
    "suboptimality": ("Relative suboptimality", "scientific"),
    "iterations": ("Iterations", "integer"),
    "support_vectors": ("Support vectors", "integer"),
    "evaluations": ("Evaluations asked for", "count"),
    "evaluations_computed": ("Evaluations computed", "count"),
    "products": ("Matrix-vector products", "integer"),
    "points": ("Points", "integer"),
    "margin": ("Margin", "scientific"),
}


@dataclass(frozen=True)
class _Row:
    """A benchmark in the files that have it."""

    label: str
    found: Mapping[int, Timing]


@dataclass(frozen=True)
class _Group:
    """A group of benchmarks on the page."""

    anchor: str
    title: str
    table: Table
    figure: Markup | None
    csv: str


@dataclass(frozen=True)
class _Section:
    """The files of a machine on the page."""

    anchor: str
    machine: Machine
    files: Table
    shared: str
    legend: Sequence[LegendEntry]
    groups: Sequence[_Group]


def timings_page(files: Sequence[TimingFile]) -> bytes:
    """The page.

    Parameters
    ----------
    files : sequence of TimingFile
        Of one machine, later ones are compared with the first.

    Returns
    -------
    bytes
        The same for the same files.
    """
    machines: dict[Machine, list[TimingFile]] = {}
    for item in files:
        machines.setdefault(item.machine, []).append(item)
    taken: set[str] = set()
    sections = [_section(machine, of, taken) for machine, of in machines.items()]
    benchmarks = len({item.fullname for each in files for item in each.timings})
    values = {
        "title": TITLE,
        "sections": sections,
        "counts": [plural(len(files), "file"), plural(benchmarks, "benchmark")],
        "several": len(sections) > 1,
        "compared": any(len(of) > 1 for of in machines.values()),
    }
    return page(environment().get_template("site_timings.html"), **values).encode()


def _section(machine: Machine, files: Sequence[TimingFile], taken: set[str]) -> _Section:
    anchor = _anchor("machine", taken)
    styles = solver_styles([str(place) for place in range(len(files))])
    legend = [
        LegendEntry(item.title, Markup(swatch(style)))
        for item, style in zip(files, styles.values(), strict=True)
    ]
    groups = [
        _group(title, rows, files, _anchor(f"{anchor}-{slug(title)}", taken))
        for title, rows in _grouped(files).items()
    ]
    return _Section(anchor, machine, _files_table(files), _shared(files), legend, groups)


def _anchor(wanted: str, taken: set[str]) -> str:
    found = unused(wanted, taken)
    taken.add(found)
    return found


def _grouped(files: Sequence[TimingFile]) -> dict[str, list[_Row]]:
    """The rows of each group, in the order of names; the fastest first, in the first file."""
    found: dict[str, dict[str, dict[int, Timing]]] = {}
    for place, item in enumerate(files):
        for timing in item.timings:
            rows = found.setdefault(timing.group or _NO_GROUP, {})
            rows.setdefault(timing.fullname, {})[place] = timing
    return {
        title: sorted(_rows(list(rows.values())), key=_speed)
        for title, rows in sorted(found.items())
    }


def _rows(found: Sequence[Mapping[int, Timing]]) -> list[_Row]:
    """With the whole names where files have different benchmarks of the same short name."""
    firsts = [timings[min(timings)] for timings in found]
    counts = Counter(first.label for first in firsts)
    return [
        _Row(first.label if counts[first.label] == 1 else visible(first.fullname, 200), timings)
        for first, timings in zip(firsts, found, strict=True)
    ]


def _speed(row: _Row) -> tuple[int, float, str]:
    first = min(row.found)
    return first, row.found[first].median, row.found[first].fullname


def _group(title: str, rows: Sequence[_Row], files: Sequence[TimingFile], anchor: str) -> _Group:
    scale, unit = _unit(timing for row in rows for timing in row.found.values())
    drawn = None
    if len(rows) <= _MOST_ROWS:
        drawn = draw_intervals(title, [(row.label, row.found) for row in rows], scale, unit)
    table = _table(title, rows, files, (scale, unit))
    figure = None if drawn is None else drawn.svg(f"figure-{anchor}")
    return _Group(anchor, title, table, figure, csv_link(_numbers(rows, files)))


def _unit(timings: Iterable[Timing]) -> tuple[float, str]:
    """The unit of a group, so that its figures compare: what a second is of it, and its name."""
    shortest = min(timing.median for timing in timings)
    return next((scale, name) for least, scale, name in _UNITS if shortest >= least)


def _table(
    title: str, rows: Sequence[_Row], files: Sequence[TimingFile], unit: tuple[float, str]
) -> Table:
    extras = list(
        dict.fromkeys(name for row in rows for item in row.found.values() for name in item.extra)
    )
    headings = [Heading("Benchmark")]
    for place, item in enumerate(files):
        group = item.title if len(files) > 1 else ""
        names = [f"Median, {unit[1]}", f"IQR, {unit[1]}", "Rounds", *(["Ratio"] if place else [])]
        headings += [Heading(name, "number", group) for name in names]
    headings += [Heading(_EXTRAS[name][0] if name in _EXTRAS else _spaced(name), "number")
                 for name in extras]  # fmt: skip
    cells = [
        [
            Cell(row.label),
            *(cell for place in range(len(files)) for cell in _times(row, place, unit[0])),
            *(_extra_cell(row, name, files) for name in extras),
        ]
        for row in rows
    ]
    return Table(title, headings, cells)


def _spaced(name: str) -> str:
    return name[:1].upper() + name[1:].replace("_", " ")


def _times(row: _Row, place: int, scale: float) -> list[Cell]:
    timing = row.found.get(place)
    if timing is None:
        return [NONE] * (4 if place else 3)
    cells = [
        Cell(_digits(scale * timing.median)),
        Cell(_digits(scale * (timing.q3 - timing.q1))),
        Cell(f"{timing.rounds:,}"),
    ]
    return [*cells, _ratio(row.found.get(0), timing)] if place else cells


def _digits(value: float) -> str:
    """Three digits, in full: "0.0123", "4.56", "1,234"."""
    if value >= 999.5:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(float(f"{value:.2e}")))
    return f"{value:.{min(max(2 - exponent, 0), 9)}f}"


def _ratio(first: Timing | None, timing: Timing) -> Cell:
    """A median over that of the first file; a change is named where the middle halves are apart."""
    if first is None or not first.median:
        return NONE
    change = _change(first, timing)
    return Cell(_digits(timing.median / first.median), note=change, incomplete=change == "slower")


def _change(first: Timing, timing: Timing) -> str:
    if timing.q1 > first.q3:
        return "slower"
    return "faster" if timing.q3 < first.q1 else ""


def _extra_cell(row: _Row, name: str, files: Sequence[TimingFile]) -> Cell:
    """What was stored beside the times; files in which it differs are named."""
    found = {place: item.extra[name] for place, item in row.found.items() if name in item.extra}
    if not found:
        return NONE
    first = min(found)
    others = [
        f"{files[place].title}: {_said(name, value)}"
        for place, value in found.items()
        if value != found[first]
    ]
    return Cell(_said(name, found[first]), note="; ".join(others), incomplete=bool(others))


def _said(name: str, value: Extra) -> str:
    if isinstance(value, str):
        return value
    if name in _EXTRAS:
        return _FORMATS[_EXTRAS[name][1]](value)
    return formatting.integer(value) if value == round(value) else f"{value:.4g}"


_FORMATS = {
    "percent": formatting.percent,
    "scientific": formatting.scientific,
    "integer": formatting.integer,
    "count": formatting.count,
}


def _numbers(rows: Sequence[_Row], files: Sequence[TimingFile]) -> pd.DataFrame:
    """What the table says, in seconds, a row for each benchmark and file."""
    return pd.DataFrame(
        [
            {
                "benchmark": item.fullname, "file": files[place].title, "rounds": item.rounds,
                "min": item.low, "q1": item.q1, "median": item.median, "q3": item.q3,
                "max": item.high, **item.extra,
            }
            for row in rows
            for place, item in row.found.items()
        ]
    )  # fmt: skip


def _files_table(files: Sequence[TimingFile]) -> Table:
    """What each file is, with the parts of its setting in which the files differ."""
    names = [name for name in _names(files) if len({item.setting.get(name) for item in files}) > 1]
    compared = ["Median ratio", "Slower, faster"] if len(files) > 1 else []
    headings = [
        *map(Heading, ("File", "Commit", "Date")),
        *(Heading(name, "number") for name in ("Benchmarks", *compared)),
        *map(Heading, names),
    ]
    rows = [
        [
            Cell(item.title),
            Cell(item.commit, code=True) if item.commit else NONE,
            Cell(item.date) if item.date else NONE,
            Cell(str(len(item.timings))),
            *(_overall(files[0], item) if compared else []),
            *(_setting(files[0], item, name) for name in names),
        ]
        for item in files
    ]
    return Table("The files", headings, rows, cards=True)


def _names(files: Sequence[TimingFile]) -> list[str]:
    return list(dict.fromkeys(name for item in files for name in item.setting))


def _shared(files: Sequence[TimingFile]) -> str:
    """The parts of the setting that are the same in all files: "numpy 2.4.6; numba 0.68.1"."""
    first = files[0].setting
    same = [
        f"{name} {first[name]}"
        for name in _names(files)
        if name in first and all(item.setting.get(name) == first[name] for item in files)
    ]
    return "; ".join(same)


def _setting(first: TimingFile, item: TimingFile, name: str) -> Cell:
    value = item.setting.get(name)
    return Cell(value, incomplete=value != first.setting.get(name)) if value else NONE


def _overall(first: TimingFile, item: TimingFile) -> list[Cell]:
    """The median of the ratios, and how many benchmarks have changed."""
    if item is first:
        return [NONE, NONE]
    known = {timing.fullname: timing for timing in first.timings if timing.median}
    pairs = [(known[each.fullname], each) for each in item.timings if each.fullname in known]
    if not pairs:
        return [NONE, NONE]
    ratios = pd.Series([after.median / before.median for before, after in pairs])
    changes = [_change(*pair) for pair in pairs]
    slower, faster = changes.count("slower"), changes.count("faster")
    return [
        Cell(_digits(float(ratios.median())), note=f"of {len(pairs)}"),
        Cell(f"{slower}, {faster}", incomplete=slower > 0),
    ]
