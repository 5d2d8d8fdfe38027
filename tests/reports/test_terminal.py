"""The summary in the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from marginbench.reports.analysis import Analysis
from marginbench.reports.frames import records
from marginbench.reports.results import load_results
from marginbench.reports.tables import measure_cell
from marginbench.reports.terminal import summary


def printed(analysis, width):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(summary(analysis))
    return console.file.getvalue()


@pytest.fixture(scope="module")
def analysis(realistic):
    return Analysis(load_results(realistic))


def test_failures_and_skips_are_listed_with_their_reason(analysis):
    text = " ".join(printed(analysis, 100).split())
    assert "timeout: digits, Pegasos, 1 run (seed 2): killed after 60.0 s of solving" in text
    assert "skipped: LIBSVM on adult, 3 runs: LIBSVM needs a dense kernel" in text


def test_it_fits_eighty_columns_without_cutting_words(analysis):
    text = printed(analysis, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_page_and_terminal_show_the_same_cells(analysis, realistic_page, make):
    terminal, page = printed(analysis, 200), make.page(realistic_page).text
    shown = [name for name, measure in analysis.shown.items() if measure.short]
    assert {"test_error", "evaluations", "evals_to_error", "cpu_s"} <= set(shown)
    for row in records(analysis.table[analysis.table["measure"].isin(shown)]):
        value = measure_cell(row, analysis.shown[row["measure"]]).value
        # Skipped solvers have a row on the page alone.
        assert value in terminal or (row["task"], row["solver"]) == ("adult", "LIBSVM")
        assert value.replace(chr(0x202F), " ") in page
