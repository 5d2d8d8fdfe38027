"""Reports: statistics over run records, figures, the HTML page and the terminal summary.

Importing this package is light; pandas and matplotlib are imported when a report is written.
"""

from __future__ import annotations

from pathlib import Path

from .errors import ReportError as ReportError


def report(folder: Path | str, command: str = "", *, where: str = "") -> Path:
    """Read a results folder and write its page, ``report.html``, atomically.

    A page that would be the same stays as it is.

    Parameters
    ----------
    folder : Path or str
        A folder with ``study.json`` and ``journal/``, or the URL of one, to which the page is
        pushed.
    command : str, optional
        The command line that reproduces the results, shown on the page; by default the one that
        made them.
    where : str, optional
        An expression as of ``marginbench run --where``: only these runs are shown, and the page
        says so.

    Returns
    -------
    Path
        The page on this machine.

    Raises
    ------
    ReportError
        If the folder is not a results folder, or no run is chosen.
    """
    from ..harness.results.stores import local_folder, pushed_page
    from .page import write_page
    from .results import load_results, narrowed

    results = load_results(local_folder(folder), write=True)
    path = write_page(narrowed(results, where) if where else results, command).path
    pushed_page(path)
    return path
