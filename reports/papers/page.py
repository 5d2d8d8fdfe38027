"""Pages of the papers: tables as printed with ours beneath, claims, and a front page of all."""

from __future__ import annotations

import hashlib
import math
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...data_loaders.atomic import replacing
from ...harness.environment import version
from ...harness.results.journal import FOLDER, segments_in
from ...harness.storage import storing
from ..formatting import slug
from ..templating import environment, page
from .published import PAPERS, Paper, Row, read_paper
from .verdicts import VERDICTS, Verdict, answered, counts, number, shown, verdicts


class Judged(NamedTuple):
    """A paper with the verdicts on its rows."""

    paper: Paper
    found: Mapping[str, Verdict]


def judge(folders: Mapping[str, Path]) -> list[Judged]:
    """The papers with their verdicts, from results folders by the name of their study."""
    return [Judged(paper, verdicts(paper, folders)) for paper in map(read_paper, PAPERS)]


def paper_pages(
    judged: Sequence[Judged], links: Mapping[str, str], archive: str = ""
) -> dict[str, str]:
    """The pages by file name: the front page, and one for each paper.

    ``links`` has the address of a study's page, by its name, from these pages; ``archive`` is the
    SHA-256 of the journals beside them, empty if there are none.
    """
    shared = {
        "version": version(),
        "verdicts": VERDICTS,
        "links": links,
        "archive": archive,
        "slug": slug,
        "counts": counts,
        "answered": answered,
        "shown": shown,
        "printed": printed,
        "held": held,
    }
    templates = environment()
    pages = {"index.html": page(templates.get_template("papers.html"), papers=judged, **shared)}
    for each in judged:
        sections: dict[str, list[Row]] = {}
        for row in sorted(each.paper.claims, key=lambda row: row.is_ours):
            sections.setdefault(row.id.partition("/")[0], []).append(row)
        values = shared | {"found": each.found, "paper": each.paper, "sections": sections}
        pages[f"{each.paper.name}.html"] = page(templates.get_template("paper.html"), **values)
    return pages


def write_journals(path: Path, folders: Mapping[str, Path]) -> str:
    """Pack the journals behind the pages into a file that depends on them alone; its SHA-256."""
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink, tarfile.open(fileobj=sink, mode="w") as tar:
            for name, folder in sorted(folders.items()):
                for file in [folder / "study.json", *segments_in(folder / FOLDER)]:
                    member = tarfile.TarInfo(f"{name}/{file.relative_to(folder).as_posix()}")
                    member.size = file.stat().st_size
                    with file.open("rb") as source:
                        tar.addfile(member, source)
    with path.open("rb") as written:
        return hashlib.file_digest(written, "sha256").hexdigest()


def printed(row: Row) -> str:
    """What the paper prints, with its unit; of claims nothing."""
    if row.printed is None or isinstance(row.printed, str):
        return row.printed or ""
    digits = f"{row.printed:,}".removesuffix(".0") if row.printed >= 1e-3 else number(row.printed)
    deviation = f" ({number(row.sd)})" if row.sd is not None else ""
    return f"{digits}{deviation}{'' if row.unit in ('', 'ratio') else ' ' + row.unit}"


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
