"""Exports: the figures, tables and records of a results folder as files, for papers and programs.

Importing this package is light; pandas and matplotlib are imported when something is exported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import ReportError

#: All formats, and the default ones.
FORMATS = ("svg", "pdf", "png", "csv", "tex", "parquet")
DEFAULT_FORMATS = ("svg", "pdf", "csv", "tex", "parquet")
#: The width of a column in most journals of two columns.
WIDTH = "3.4in"


@dataclass(frozen=True)
class Exported:
    """What an export did.

    Attributes
    ----------
    folder : Path
    written : list of Path
        Files that are new or have changed.
    unchanged : list of Path
        Files that had the same bytes already.
    """

    folder: Path
    written: list[Path]
    unchanged: list[Path]


@dataclass(frozen=True)
class Listed:
    """Something that can be exported: a figure, a table or data, by name and with a title."""

    what: str
    name: str
    title: str


def export(
    results: Path | str,
    out: Path | str | None = None,
    *,
    figures: Iterable[str] = (),
    tables: Iterable[str] = (),
    data: Iterable[str] = (),
    formats: Iterable[str] = DEFAULT_FORMATS,
    width: str = WIDTH,
    tasks: Iterable[str] = (),
    solvers: Iterable[str] = (),
    transparent: bool = False,
    force: bool = False,
) -> Exported:
    """Write figures, tables and records of a results folder as files.

    Figures are in ``figures/``, tables in ``tables/``, runs and checkpoints in ``data/``, and
    ``manifest.json`` says of each file what it is and how to make it again. The same records give
    the same bytes. Files are written whole or not at all, and those that would not change are not
    touched.

    Parameters
    ----------
    results : Path or str
        A folder with ``study.json`` and ``journal/``.
    out : Path or str, optional
        The folder to write to; by default ``export`` in the results folder.
    figures, tables, data : iterable of str, optional
        Names as :func:`listed` gives them; everything if none is given.
    formats : iterable of str, optional
        "svg", "pdf" and "png" for figures, "csv" for everything, "tex" for tables, "parquet" for
        data.
    width : str, optional
        Of figures: "3.4in", "86mm", "8.6cm" or "245pt".
    tasks, solvers : iterable of str, optional
        Only these; they are compared among themselves, as in a study without the others.
    transparent : bool, optional
        Figures without a white ground.
    force : bool, optional
        Replace files that no export wrote.

    Returns
    -------
    Exported

    Raises
    ------
    ReportError
        If the folder is not a results folder, a name, format or width is unknown, or a file is in
        the way.
    StorageError
        If something cannot be written.
    """
    from ...harness.results.stores import is_url
    from .making import made
    from .writing import write_all

    if out is None and is_url(results):
        raise ReportError(f"{results}: is in a store; give --out, a folder of this machine")
    folder = Path(results) / "export" if out is None else Path(out)
    files = made(
        str(results),
        str(folder),
        {"figure": _strings(figures), "table": _strings(tables), "data": _strings(data)},
        {"task": _strings(tasks), "solver": _strings(solvers)},
        _strings(formats),
        width,
        transparent=transparent,
    )
    return Exported(folder, *write_all(folder, files, "marginbench export 1", force=force))


def listed(results: Path | str) -> list[Listed]:
    """All that :func:`export` can write of a results folder, in the order of its page.

    A ReportError if the folder is not a results folder.
    """
    from ...harness.results.stores import local_folder
    from ..results import load_results
    from .making import TITLES, views_of

    figures, tables = views_of(load_results(local_folder(results)))
    return [
        *(Listed("figure", name, title) for name, (title, _) in figures.items()),
        *(Listed("table", name, item.label) for name, item in tables.items()),
        *(Listed("data", name, title) for name, title in TITLES.items()),
    ]


def _strings(values: Iterable[str]) -> tuple[str, ...]:
    """The values; a single text is one of them, not its letters."""
    return (values,) if isinstance(values, str) else tuple(values)
