"""Write the report of a results folder: one self-contained HTML file."""

from __future__ import annotations

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
    from marginbench.data_loaders.atomic import replacing
    from marginbench.reports.feasibility import is_feasibility

    results_dir = Path(results_dir)
    if is_feasibility(results_dir):
        from marginbench.reports.feasibility_page import write_feasibility_report

        return write_feasibility_report(results_dir, command)
    from marginbench.reports.analysis import analyse
    from marginbench.reports.pages import render
    from marginbench.reports.results import load_results

    page = render(analyse(load_results(results_dir)), command)
    path = results_dir / "report.html"
    with replacing(path) as sink:
        sink.write(page.encode())
    return path
