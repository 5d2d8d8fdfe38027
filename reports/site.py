"""Write the report of a results folder: one self-contained HTML file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_report(results_dir: Path, command: str) -> Path:
    """Read a results folder and write its page, ``report.html``, atomically.

    Parameters
    ----------
    results_dir : Path
        A folder with ``study.json`` and ``runs/``.
    command : str
        The command line that reproduces the results, shown on the page.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ReportError
        If the folder is not a results folder.
    """
    # Imported here: pandas and matplotlib are slow to import, and most commands write no report.
    from reports.analysis import analyse
    from reports.pages import render
    from reports.results import load_results

    results_dir = Path(results_dir)
    page = render(analyse(load_results(results_dir)), command)
    path = results_dir / "report.html"
    _write_atomically(path, page)
    return path


def _write_atomically(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-", suffix=".html")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as sink:
            sink.write(text)
        os.chmod(temporary, 0o644)  # mkstemp makes it private; a report is to be shared
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
