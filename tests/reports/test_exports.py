"""Exports: what the files hold, that the same records give the same bytes, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import marginbench
from marginbench.harness.cli import build_app, run_app
from marginbench.harness.errors import StorageError
from marginbench.reports.analysis import Analysis
from marginbench.reports.command import write_report
from marginbench.reports.commands.export import add as add_export
from marginbench.reports.errors import ReportError
from marginbench.reports.exports import FORMATS, Exported, export
from marginbench.reports.exports.choosing import chosen
from marginbench.reports.exports.contents import contents
from marginbench.reports.exports.figures import inches, rendered
from marginbench.reports.exports.tables import csv_bytes, frame_of
from marginbench.reports.page import render
from marginbench.reports.panels.traces import trace_curves
from marginbench.reports.results import load_results
from marginbench.reports.tables import Cell, Heading, Table

FIGURE = "task-a-b-test_error-evaluations"
LABELS = ["a/b", "a b", "κ=1.5", "\N{ROCKET}", "x" * 120]


def small(make, folder, *labels):
    """Results with a hostile name and a failed run.

    The tasks have no reference, and so two figures each: drawing takes most of the time.
    """
    records = [
        make.finished(label, solver, seed, make.trace([1e3, 1e4], [0.3, 0.1 + seed / 10]))
        for label in labels
        for solver in ("SMO", "$a_b$ & <c>")
        for seed in range(2)
    ]
    records.append(make.record(labels[0], "Lost", 0, status="crashed", reason="signal 11"))
    solvers = [make.solver(label) for label in ("SMO", "$a_b$ & <c>", "Lost")]
    folder.mkdir(exist_ok=True)
    return make.folder(
        folder, records, [make.task(label, reference=False) for label in labels], solvers
    )


@pytest.fixture(scope="module")
def results(make, tmp_path_factory):
    return small(make, tmp_path_factory.mktemp("exports") / "results", "a/b")


@pytest.fixture(scope="module")
def done(results):
    # Fonts take most of the time of a PDF.
    first = export(results, formats=["svg", "csv", "tex", "parquet"])
    pdf = export(results, figures=[FIGURE], formats=["pdf"])
    return Exported(first.folder, first.written + pdf.written, first.unchanged + pdf.unchanged)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_figure_and_table_of_the_page_and_all_data_are_written(results, done):
    page = render(Analysis(load_results(results)), "")
    files = digests(done.folder)
    drawn = re.findall(r'<figure id="([^"]+)">\n<figcaption>.*\n<svg', page)
    assert len(drawn) == 2
    for name in drawn:
        assert {f"figures/{name}.{ending}" for ending in ("svg", "csv")} <= set(files)
    n_tables = sum(path.startswith("tables/") and path.endswith(".tex") for path in files)
    assert n_tables == page.count('<div class="table"')
    assert {f"data/{n}.{e}" for n in ("runs", "traces", "columns") for e in ("csv", "parquet")} <= (
        set(files)
    )
    assert done.unchanged == []
    assert {path.relative_to(done.folder).as_posix() for path in done.written} | {
        "manifest.json"
    } == set(files)


def test_the_manifest_says_what_each_file_is_and_how_to_make_it(results, done):
    listed_files = json.loads((done.folder / "manifest.json").read_text())["files"]
    files = digests(done.folder)
    del files["manifest.json"]
    assert {path: entry["sha256"] for path, entry in listed_files.items()} == files
    entry = listed_files[f"figures/{FIGURE}.pdf"]
    assert entry["title"] == "a/b: Test error against kernel evaluations"
    assert entry["study"] == "example"
    assert entry["commits"] == ["0123456789abcdef0123456789abcdef01234567"]
    command = f"marginbench export {results} --figure {FIGURE} --format pdf --out {done.folder}"
    assert entry["command"] == command


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes_and_touch_nothing(results, tmp_path):
    one, two = (export(results, tmp_path / name, formats=FORMATS) for name in ("one", "two"))
    assert one.unchanged == two.unchanged == []
    for first, second in zip(one.written, two.written, strict=True):
        assert first.read_bytes() == second.read_bytes()
    times = {path: path.stat().st_mtime_ns for path in two.folder.rglob("*")}
    again = export(results, two.folder, formats=FORMATS)
    assert again.written == []
    assert again.unchanged == two.written
    assert {path: path.stat().st_mtime_ns for path in two.folder.rglob("*")} == times


def test_a_figure_as_csv_is_what_it_draws(results, done):
    curves = trace_curves(Analysis(load_results(results)), "evaluations", "test_error")
    read = pd.read_csv(done.folder / "figures" / f"{FIGURE}.csv")
    pd.testing.assert_frame_equal(read, curves.of_task("a/b").long(), check_dtype=False)


def test_a_table_as_csv_has_the_numbers_of_the_analysis(results, done):
    read = pd.read_csv(done.folder / "tables" / "results-a-b.csv")
    read = read.set_index(["solver", "measure"])
    table = Analysis(load_results(results)).table
    table = table[table["task"] == "a/b"].set_index(["solver", "measure"])
    assert list(read.index) == list(table.index)
    for name in ("median", "low", "high", "n", "best"):
        np.testing.assert_array_equal(read[name], table[name])
    error = read.loc[("SMO", "test_error")]
    assert (error["unit"], error["n"], error["n_planned"]) == ("fraction", 2, 2)
    assert error["spread"] == "95% interval of the mean"
    assert read.loc[("SMO", "cpu_s"), "unit"] == "s"
    assert read.loc[("SMO", "cpu_s"), "spread"] == "minimum to maximum"
    assert read.loc[("Lost", "test_error"), "absent"] == "no run"


def test_runs_and_checkpoints_read_back_and_each_column_has_a_meaning(results, done):
    loaded = marginbench.load_results(results)
    runs = pq.read_table(done.folder / "data" / "runs.parquet").to_pandas()
    names = ["task", "solver", "seed", "status"]
    assert runs[names].values.tolist() == loaded.runs[names].values.tolist()
    np.testing.assert_array_equal(runs["test_error"], loaded.runs["test_error"])
    traces = pd.read_csv(done.folder / "data" / "traces.csv")
    np.testing.assert_array_equal(traces["kernel_evals"], loaded.checkpoints["kernel_evals"])
    columns = pd.read_csv(done.folder / "data" / "columns.csv")
    assert columns[columns["meaning"].isna()].empty
    assert set(columns.loc[columns["table"] == "runs", "column"]) == set(runs.columns)
    assert set(columns.loc[columns["table"] == "traces", "column"]) == set(traces.columns)


def test_an_svg_stands_alone_in_light_colours(done):
    text = (done.folder / "figures" / f"{FIGURE}.svg").read_text()
    root = ElementTree.fromstring(text)
    assert root.get("width") == f"{3.4 * 72:g}pt"
    assert "var(" not in text
    assert "#0b6fb3" in text
    # A name that looks like a formula is no formula.
    words = " ".join(node.text or "" for node in root.iter() if node.tag.endswith("}text"))
    assert "$a_b$ & <c>" in words
    assert "Test error against kernel evaluations" in words
    sizes = re.findall(r"(?:font-size: |font: (?:\w+ )*)([\d.]+)px", text)
    assert min(map(float, sizes)) >= 8
    assert "DejaVu Sans', 'Bitstream" not in text


def test_a_pdf_embeds_its_fonts_with_text_and_without_a_date(done):
    content = (done.folder / "figures" / f"{FIGURE}.pdf").read_bytes()
    assert b"/CIDFontType2" in content or b"/TrueType" in content
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert b"/ToUnicode" in content
    assert b"CreationDate" not in content
    if shutil.which("pdftotext"):
        path = done.folder / "figures" / f"{FIGURE}.pdf"
        text = subprocess.run(["pdftotext", path, "-"], capture_output=True, text=True).stdout
        assert "kernel evaluations" in text
        assert "$a_b$ & <c>" in text


@pytest.mark.slow
def test_labels_with_the_same_slug_and_strange_labels_have_files_of_their_own(make, tmp_path):
    folder = small(make, tmp_path / "r", *LABELS)
    found = contents(Analysis(load_results(folder)))
    tables = [name for name in found.tables if name.startswith("results-")]
    assert tables == [
        *("results-a-b", "results-a-b-2", "results-kappa-1-5", "results-unnamed"),
        "results-" + "x" * 60,
    ]
    assert len(found.figures) == 2 * len(LABELS)
    assert all(re.fullmatch(r"[\w-]+", name) for name in [*found.figures, *found.tables])
    page = render(Analysis(load_results(folder)), "")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(found.figures) <= set(ids)


@pytest.mark.slow
def test_a_legend_says_how_many_runs_there_are_and_fits_a_narrow_figure(make, tmp_path):
    long = "A solver with a rather long name of many words"
    trace = make.trace([1e3, 1e4], [0.3, 0.2])
    records = [make.finished("t", name, 0, trace) for name in (long, "B", "C")]
    records.append(make.record("t", "B", 1, status="timeout", trace=trace))
    solvers = [make.solver(name) for name in (long, "B", "C")]
    analysis = Analysis(load_results(make.folder(tmp_path, records, [make.task("t")], solvers)))
    found = contents(analysis).figures["task-t-test_error-cpu_s"]
    before = found.panel.drawing.svg("p")
    text = rendered(found, analysis.styles, ("svg",), 2.0)["svg"].decode()
    assert "B (1 of 2 runs)" in text
    assert "A solver with a rather" in text
    # The page's own figure is as it was.
    assert found.panel.drawing.svg("p") == before


@pytest.mark.slow
def test_a_selection_is_compared_among_itself_in_the_colours_of_the_page(make, tmp_path):
    folder = small(make, tmp_path / "r", "a/b", "a b")
    export(
        folder, tmp_path, tasks=["a b"], solvers=["$a_b$ & <c>"], formats=["csv", "svg"],
        tables=["results-a-b"], figures=["task-a-b-test_error-cpu_s"],
    )  # fmt: skip
    read = pd.read_csv(tmp_path / "tables" / "results-a-b.csv")
    assert set(read["task"]) == {"a b"}
    assert set(read["solver"]) == {"$a_b$ & <c>"}
    svg = (tmp_path / "figures" / "task-a-b-test_error-cpu_s.svg").read_text()
    assert "#d55e00" in svg  # the second colour
    assert "#0b6fb3" not in svg


@pytest.mark.slow
def test_studies_of_feasibility_methods_are_exported_too(make, tmp_path):
    cells = [
        make.cell(f"kappa = {kappa}", kappa=kappa, published={"MPLFP": kappa})
        for kappa in (1.0, 2.0, 3.0)
    ]
    records = [make.method_record(cell["label"], "MPLFP", s) for cell in cells for s in range(2)]
    (tmp_path / "r").mkdir()
    folder = make.folder(tmp_path / "r", records, cells, [make.method("MPLFP")])
    done = export(folder, tmp_path / "out")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in done.written}
    assert {"figures/figures-cpu_s.pdf", "tables/results-kappa-1-0.tex"} <= names
    read = pd.read_csv(tmp_path / "out" / "tables" / "results-kappa-2-0.csv")
    iterations = read.set_index("measure").loc["n_iter"]
    assert (iterations["median"], iterations["n"]) == (100, 2)
    assert read.set_index("measure").loc["wall_s", "published_mean"] == 2.0


def test_a_table_of_texts_keeps_what_stands_below_its_values():
    headings = [Heading("Name"), Heading("Name"), Heading("Hash")]
    rows = [[Cell("a", note="b"), Cell("c"), Cell("0123", hint="012345")]]
    frame = frame_of(Table("t", headings, rows))
    expected = "Name,Name (note),Name 2,Hash\na,b,c,012345\n"
    assert csv_bytes(frame).decode() == expected


@pytest.mark.parametrize(
    ("text", "width"),
    [("3.4in", 3.4), ("86.36mm", 3.4), ("72.27pt", 1.0), (" 2.54 cm", 1.0), ("3", 3.0)],
)
def test_widths_have_the_units_of_latex(text, width):
    assert inches(text) == pytest.approx(width)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": ["run"]}, "unknown data 'run' (did you mean 'runs'?)"),
        ({"formats": ["pfd"]}, "unknown format 'pfd' (did you mean 'pdf'?)"),
        ({"formats": []}, "--format names none"),
        ({"formats": ["tex"], "data": ["runs"]}, "nothing to write as tex"),
        ({"width": "0.1in"}, "--width '0.1in': it must be from 1in to 30in"),
        ({"width": "wide"}, "--width 'wide': give a number"),
        ({"tasks": ["c"]}, "unknown task 'c'"),
        ({"solvers": ["Sm"]}, "unknown solver 'Sm' (did you mean 'SMO'?)"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(results, tmp_path, options, message):
    out = tmp_path / "out"
    with pytest.raises(ReportError, match=re.escape(message)) as error:
        export(results, out, **options)
    assert "\n" not in str(error.value)
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "task-a-b-test_error-evaluation",
            f"unknown figure 'task-a-b-test_error-evaluation' (did you mean '{FIGURE}'?)",
        ),
        ("zzz", "unknown figure 'zzz' (--list shows each figure)"),
    ],
)
def test_an_unknown_name_has_a_near_miss_or_a_way_to_list_them(name, message):
    with pytest.raises(ReportError) as error:
        chosen("figure", [name], [FIGURE, "scaling-covtype-cpu_s"])
    assert str(error.value) == message


def test_names_are_repeated_or_separated_by_commas():
    assert chosen("data", ["b,A", "c", "a"], ["a", "b", "c"]) == ["b", "a", "c"]


def test_a_folder_that_is_none_of_results_is_refused(tmp_path):
    with pytest.raises(ReportError, match="not a results folder"):
        export(tmp_path, tmp_path / "out")


def test_files_of_others_are_replaced_only_by_force(results, tmp_path):
    target = tmp_path / "data" / "columns.csv"
    target.parent.mkdir()
    target.write_text("mine")
    wanted = {"data": ["columns"], "formats": ["csv", "parquet"]}
    with pytest.raises(ReportError, match=r"no export wrote it.*--force"):
        export(results, tmp_path, **wanted)
    assert target.read_text() == "mine"
    assert not (tmp_path / "data" / "columns.parquet").exists()
    export(results, tmp_path, **wanted, force=True)
    assert target.read_text() != "mine"
    # Edited by hand since then:
    target.write_text("edited")
    with pytest.raises(ReportError, match="has been changed since it was exported"):
        export(results, tmp_path, **wanted)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ReportError, match="is not a manifest"):
        export(results, tmp_path, **wanted)


def test_another_study_does_not_replace_the_files_of_one(make, results, tmp_path):
    other = small(make, tmp_path / "other", "z")
    wanted = {"data": ["runs"], "formats": ["csv"]}
    export(results, tmp_path, **wanted)
    with pytest.raises(ReportError, match=f"is of other results \\({re.escape(str(results))}\\)"):
        export(other, tmp_path, **wanted)


def test_records_that_changed_replace_their_files_and_others_stay_listed(make, tmp_path):
    folder = small(make, tmp_path / "r", "a")
    out = tmp_path / "out"
    export(folder, out, data=["runs", "columns"], formats=["csv"])
    before = (out / "data" / "runs.csv").read_bytes()
    shutil.rmtree(folder)
    small(make, folder, "b")
    done = export(folder, out, data=["runs"], formats=["csv"])
    assert done.written == [out / "data" / "runs.csv"]
    assert done.written[0].read_bytes() != before
    assert set(json.loads((out / "manifest.json").read_text())["files"]) == {
        *("data/runs.csv", "data/columns.csv"),
    }


def test_what_cannot_be_written_is_one_line(results, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        export(results, tmp_path / "file" / "out", data=["columns"])
    (tmp_path / "data" / "columns.csv").mkdir(parents=True)
    with pytest.raises(ReportError, match="is in the way and no file"):
        export(results, tmp_path, data=["columns"])


def test_results_in_python_export_themselves(results, tmp_path):
    done = marginbench.load_results(results).export(tmp_path, data="columns", formats="csv")
    assert done.written == [tmp_path / "data" / "columns.csv"]
    assert marginbench.export is export


def command(*arguments: object) -> int | str | None:
    """The exit code of the command, run in this process."""
    app = build_app(write_report)
    add_export(app)
    with pytest.raises(SystemExit) as ended:
        run_app(app, ["export", *map(str, arguments)])
    return ended.value.code


@pytest.mark.slow
def test_the_command_lists_and_writes(results, done, tmp_path, capsys, monkeypatch):
    assert command(results, "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[1] for line in lines[1:]} == {path.stem for path in done.written}
    assert re.search(rf"figure +{FIGURE} +a/b: Test error against", "\n".join(lines))
    monkeypatch.chdir(tmp_path)
    one = [results, "--figure", FIGURE, "--format", "pdf,csv", "--out", "."]
    assert command(*one) == 0
    assert capsys.readouterr().out.splitlines() == [
        *(f"figures/{FIGURE}.pdf", f"figures/{FIGURE}.csv"),
        "2 files written, 0 unchanged: .",
    ]
    assert command(*one) == 0
    assert capsys.readouterr().out == "0 files written, 2 unchanged: .\n"


def test_mistakes_of_the_command_have_an_exit_code(results, tmp_path, capsys):
    for arguments, code, message in (
        ([results, "--data", "rums"], 2, "unknown data 'rums' (did you mean 'runs'?)"),
        ([tmp_path], 2, "not a results folder"),
        ([results, "--out", "/proc/nowhere", "--data", "columns"], 4, "cannot be written"),
        ([results, "--width", "3ft"], 2, "--width '3ft'"),
    ):
        assert command(*arguments) == code
        told = capsys.readouterr()
        assert told.out == ""
        assert message in told.err
        assert told.err.count("\n") == 1


@pytest.mark.slow
def test_a_killed_export_leaves_whole_files_and_can_be_repeated(results, done, tmp_path):
    out = tmp_path / "out"
    arguments = [sys.executable, "-m", "marginbench", "export", str(results), "--out", str(out)]
    with subprocess.Popen([*arguments, "--format", "csv,tex,svg,pdf"]) as process:
        while process.poll() is None and len(list(out.glob("figures/*.svg"))) < 2:
            pass
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
    whole = digests(done.folder)
    for path, digest in digests(out).items():
        if path != "manifest.json" and not Path(path).name.startswith(".writing-"):
            assert whole[path] == digest
    again = subprocess.run([*arguments, "--format", "csv,tex,svg,pdf"], capture_output=True)
    assert again.returncode == 0
    kept = digests(out)
    assert all(kept[path] == whole[path] for path in whole if path.endswith((".svg", ".tex")))
