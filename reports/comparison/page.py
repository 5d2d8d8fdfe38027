"""The page of a comparison: one self-contained HTML file without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...data_loaders.atomic import replacing
from ...harness.environment import version
from ...harness.errors import StorageError
from ...harness.interrupts import interrupts_deferred
from ...harness.storage import storing
from ..drawing.canvas import Drawing
from ..templating import environment, page
from . import settings, tables, words
from .figure import solver_figure

if TYPE_CHECKING:
    from .result import Comparison


@dataclass(frozen=True)
class _Panel:
    """The figure of a solver; without a drawing a sentence stands in its place."""

    anchor: str
    title: str
    drawing: Drawing | None


def write_page(comparison: Comparison, path: Path) -> Path:
    """Write the page, atomically.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    check_target(path, [side.results.folder for side in (comparison.before, comparison.after)])
    return write_html(path, render(comparison))


def write_html(path: Path, text: str, example: str = "comparison.html") -> Path:
    """Write a page, atomically.

    Raises
    ------
    StorageError
        If it cannot be written, or is no file.
    """
    if not path.name or path.is_dir():
        raise StorageError(f"{path}: is a folder; give the page a file, such as {example}")
    with interrupts_deferred(), storing(path), replacing(path) as sink:
        sink.write(text.encode())
    return path


def check_target(path: Path, folders: Iterable[Path]) -> None:
    """Refuse a page that is no file, or that would stand in place of what a study recorded.

    Raises
    ------
    StorageError
    """
    if not path.name or path.is_dir():
        raise StorageError(f"{path}: is a folder; give the page a file, such as comparison.html")
    target = path.resolve()
    for folder in map(Path.resolve, folders):
        recorded = [folder / name for name in ("study.json", "journal", "runs.parquet", "sources")]
        if any(target.is_relative_to(each) for each in recorded):
            raise StorageError(f"{path}: is part of the results in {folder}; give another file")


def render(comparison: Comparison) -> str:
    """The page as HTML text."""
    frame = comparison.frame
    told, means = words.told(frame), words.differing(comparison.solvers)
    rest = words.ordered(frame.drop(told.index))
    return page(
        environment().get_template("comparison.html"),
        version=version(),
        comparison=comparison,
        key_figures=_key_figures(comparison),
        findings=words.findings(comparison),
        notes=words.notes(comparison),
        panels=_panels(comparison),
        told=tables.measures_table(comparison, told, "Values that changed") if len(told) else None,
        rest=tables.measures_table(comparison, rest, "All other values") if len(rest) else None,
        means=tables.solvers_table(comparison, means) if len(means) else None,
        means_words=words.means_words(),
        outcomes=tables.outcomes_table(comparison),
        environment=tables.differences_table(comparison.environment, "Environments"),
        code=tables.differences_table(settings.merged(comparison.code), "Solvers"),
        bounds=tables.bounds_table(comparison),
    )


def _key_figures(comparison: Comparison) -> list[tuple[str, str]]:
    counts = comparison.frame["verdict"].value_counts()
    return [
        ("verdict", comparison.verdict),
        *((label, str(counts.get(verdict, 0))) for verdict, label in words.KEY_FIGURES),
        ("beyond bounds", str(comparison.n_beyond)),
        ("failed in B only", str(comparison.n_newly_failed)),
        ("pairs of runs", str(comparison.n_compared)),
    ]


def _panels(comparison: Comparison) -> list[_Panel]:
    solvers = dict.fromkeys(map(str, comparison.frame["solver"]))
    return [
        _Panel(f"changes-{place}", solver, solver_figure(comparison, solver))
        for place, solver in enumerate(solvers)
    ]
