"""The summary in the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from marginbench.reports.results import load_results
from marginbench.reports.text import summary


def printed(results, width):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(summary(results))
    return console.file.getvalue()


def test_failures_and_skips_are_listed_with_their_reason(realistic):
    text = " ".join(printed(load_results(realistic), 100).split())
    assert "timeout: digits, Pegasos, 1 run (seed 2): killed after 60.0 s of solving" in text
    assert "skipped: LIBSVM on adult, 3 runs: LIBSVM needs a dense kernel" in text


def test_it_fits_eighty_columns_without_cutting_words(realistic):
    text = printed(load_results(realistic), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_names_are_no_markup(make, write_results):
    record = make.finished("[bold]a", "[red]SMO", 0, make.trace([10, 20], [0.4, 0.1]))
    folder = write_results([record], [make.task("[bold]a")], [make.solver("[red]SMO")])
    text = printed(load_results(folder), 100)
    assert "[bold]a" in text
    assert "[red]SMO" in text
