"""Pages of the papers: tables as printed with ours beneath, claims, and a front page of all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...data_loaders.atomic import replacing
from ...harness.environment import version
from ...harness.interrupts import interrupts_deferred
from ...harness.storage import storing
from .. import formatting
from ..formatting import slug
from ..templating import environment, page
from .published import PAPERS, Paper, Row, read_paper
from .verdicts import (
    ELSEWHERE,
    FAILED,
    INCOMPARABLE,
    NOT_RUN,
    OPEN,
    REPRODUCED,
    VERDICTS,
    Verdict,
    counts,
    verdicts,
)

#: A sign for each verdict, so that colour is not all that tells them apart.
SIGNS: Mapping[str, str] = {
    REPRODUCED: "✓",
    ELSEWHERE: "≈",
    FAILED: "✗",
    OPEN: "?",
    NOT_RUN: formatting.DASH,
    INCOMPARABLE: "∅",
}
MINUS = "\N{MINUS SIGN}"
_MEANINGS = {
    REPRODUCED: "the whole 95 % interval agrees with what is printed",
    ELSEWHERE: "the same, of other data, sizes or limits, which the row names",
    FAILED: "no part of the interval agrees",
    OPEN: "a part of the interval agrees; more seeds would tell",
    NOT_RUN: "no record, and why",
    INCOMPARABLE: "seconds of another machine; ratios of times have rows of their own",
}


@dataclass(frozen=True)
class Judged:
    """A paper with the verdicts on its rows."""

    paper: Paper
    found: Mapping[str, Verdict]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        return counts(self.found.values())


def judge(folders: Mapping[str, Path], names: Sequence[str] = PAPERS) -> list[Judged]:
    """The papers with their verdicts, from results folders by the name of their study."""
    papers = map(read_paper, names)
    return [Judged(paper, verdicts(paper, folders)) for paper in papers]


def paper_pages(found: Sequence[Judged], links: Mapping[str, str]) -> dict[str, str]:
    """The pages by file name: the front page, and one for each paper.

    Parameters
    ----------
    found : sequence of Judged
    links : mapping of str to str
        The address of a study's page, by its name, from these pages.
    """
    shared = {
        "version": version(),
        "signs": SIGNS,
        "meanings": _MEANINGS,
        "order": VERDICTS,
        "slug": slug,
        "links": links,
        "shown": shown,
        "printed": printed,
        "held": held,
    }
    templates = environment()
    pages = {"index.html": page(templates.get_template("papers.html"), papers=found, **shared)}
    for each in found:
        sections: dict[str, list[Row]] = {}
        for row in each.paper.claims:
            sections.setdefault(row.id.partition("/")[0], []).append(row)
        values: dict[str, Any] = {"judged": each, "paper": each.paper, "sections": sections}
        text = page(templates.get_template("paper.html"), **values, **shared)
        pages[f"{each.paper.name}.html"] = text
    return pages


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Write pages into a folder, each atomically."""
    for name, text in pages.items():
        path = folder / name
        with interrupts_deferred(), storing(path):
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as sink:
                sink.write(text.encode())


def shown(found: Verdict, *, interval: bool = False) -> str:
    """Our value in the unit of what is printed, with its interval and number of seeds if asked."""
    each = found.estimate
    if each is None:
        return ""
    row = found.row
    unit = (
        formatting.TIMES
        if row.by == "ratio"
        else ""
        if row.unit in ("", "ratio")
        else f" {row.unit}"
    )
    text = f"{number(each.value)}{unit}"
    if not interval:
        expected = "" if row.expected is None else f", printed {number(row.expected)}{unit}"
        return f"{text}{expected}"
    words = "sizes" if row.by == "slope" else "runs" if each.n > 1 else "run"
    if each.low == each.high:
        return f"{text} ({each.n} {words})"
    if math.isinf(each.low) and math.isinf(each.high):
        return f"{text} (no interval, {each.n} {words})"
    return f"{text} [{number(each.low)}, {number(each.high)}] ({each.n} {words})"


def printed(row: Row) -> str:
    """What the paper prints, with its unit; of claims nothing."""
    if row.printed is None or isinstance(row.printed, str):
        return row.printed or ""
    deviation = f" ({number(row.sd)})" if row.sd is not None else ""
    return f"{number(row.printed)}{deviation}{'' if row.unit in ('', 'ratio') else ' ' + row.unit}"


def held(row: Row) -> str:
    """What the measured value must be."""
    low, high = row.band
    if row.is_time or not row.measure:
        return ""
    if math.isinf(low):
        return f"below {number(high)}"
    if math.isinf(high):
        return f"above {number(low)}"
    return f"{number(low)} to {number(high)}" if low < high else number(low)


def number(value: float) -> str:
    """A number of any size to four digits: 0.000634 is "6.34e-4"."""
    if math.isinf(value):
        return f"{MINUS}∞" if value < 0 else "∞"
    if value == round(value) and abs(value) < 1e7:
        text = f"{value:,.0f}"
    elif 1e-3 <= abs(value) < 1e5:
        text = f"{value:,.4g}"
    else:
        mantissa, exponent = f"{value:.3g}".partition("e")[::2]
        if not exponent:
            mantissa, exponent = f"{value:.2e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    return f"{MINUS}{text[1:]}" if text.startswith("-") else text
