"""The summary in the terminal."""

import io
import json
import sys

import pytest
from rich.cells import cell_len
from rich.console import Console

from marginbench.harness.cli.app import build_app, run_app
from marginbench.reports.command import print_tables, write_report
from marginbench.reports.tables import Cell, Heading, Table, TerminalTable
from marginbench.reports.terminal import summary


def printed(results, width, **options):
    console = Console(**{"width": width, "file": io.StringIO(), "force_terminal": False} | options)
    console.print(summary(results))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [24, 80])
def test_it_fits_without_cutting_a_value(realistic_results, width):
    text = printed(realistic_results, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    values = {word for line in text.split("note:")[0].splitlines() for word in line.split()}
    numbers = {word for word in values if word[0].isdigit() and word[-1].isalnum()}
    assert numbers <= set(printed(realistic_results, 300).split())
    words = " ".join(text.split())
    if width > 24:
        assert "timeout: digits, Pegasos, 1 run (seed 2): killed after 60.0 s of solving" in words
        assert "skipped: LIBSVM on adult, 3 runs: LIBSVM needs a dense kernel" in words


def test_ranges_leave_first():
    numbers = [Heading("", "number", short=name) for name in ("first", "last")]
    headings = [Heading("", short="name"), *numbers]
    rows = [[Cell("one"), Cell("12345", "123-45-7"), Cell("12345", "12-34-56")] for _ in range(2)]

    def shown(width):
        console = Console(width=width, file=io.StringIO())
        console.print(TerminalTable(Table("t", headings, rows), "t"))
        return console.file.getvalue()

    assert "123-45-7  12-34-56" in shown(24)
    assert shown(23) == shown(18)
    assert shown(18).splitlines()[1:3] == ["name  first   last", "one   12345  12345"]
    assert " ".join(shown(17).split()) == "t" + 2 * " one: first 12345; last 12345"


@pytest.mark.parametrize("width", [40, 110])
def test_long_names_fold(make, results_of, width):
    task, solver, reason = "Task" * 30, "Solver" * 20, "Reason" * 20
    made = [make.finished(task, solver, s, make.trace([10, 20], [0.4, 0.1])) for s in range(2)]
    made += [make.record(task, "SMO", 0, status="failed", reason=reason)]
    text = printed(results_of(made), width)
    assert max(map(cell_len, text.splitlines())) <= width
    joined = "".join(text.split())
    assert task in joined
    assert reason in joined
    # The name goes on below itself, in the first column.
    assert solver in "".join(line.split()[0] for line in text.splitlines() if line.strip())
    assert f"10.00{chr(0x202F)}%" in text


def test_colours_are_for_a_terminal_and_can_be_declined(realistic_results, monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    print_tables(summary(realistic_results))  # a pipe has a fixed width and no colour
    text = capsys.readouterr().out
    assert 80 < max(map(cell_len, text.splitlines())) <= 110
    assert "\x1b" not in text
    terminal = {"force_terminal": True, "color_system": "standard"}
    assert "\x1b[33m" in printed(realistic_results, 80, **terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in printed(realistic_results, 80, **terminal)


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_output_that_lacks_letters_gets_codes(make, write_results, monkeypatch, encoding):
    near = make.trace([10, 200], [0.3, 0.01], [200.0, 100.5])
    label = "SMO \N{SNOWMAN}"
    folder = write_results(
        [make.finished("a", label, 0, near), make.finished("a", "Late", 0, near[1:])],
    )
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as ended:
        run_app(build_app(write_report), ["report", str(folder)])
    assert ended.value.code == 0
    words = out.buffer.getvalue().decode(encoding)
    for part in ("1\\u202f%", "\\u2264", "SMO \\u2603"):
        assert part in words, part


@pytest.mark.usefixtures("unwritten")
def test_a_report_says_no_more_than_it_is_asked_to(make, write_results, command):
    folder = write_results([make.finished("a", "SMO", 0, make.trace([10, 200], [0.3, 0.01]))])
    page = folder / "report.html"
    shown = {"--json": json.dumps({"report": str(page)}), "--quiet": f"report: {page}"}
    for option, words in shown.items():
        assert command("report", folder, option) == (0, f"{words}\n", "")
