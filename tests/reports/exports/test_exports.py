"""Exports: what the files hold, that the same records give the same bytes, and what is refused."""

import hashlib
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import marginbench
from marginbench.reports import analysis
from marginbench.reports.errors import ReportError
from marginbench.reports.exports import export
from marginbench.reports.exports.making import chosen, csv_bytes, inches, rendered, views_of
from marginbench.reports.page import render
from marginbench.reports.results import load_results
from marginbench.reports.tables import Cell, Heading, Table
from marginbench.reports.views.svm import trace_curves

FIGURE = "task-a-b-test_error-evaluations"


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_figure_and_table_and_all_data_are_written_and_listed(results, done):
    page = render(load_results(results), "")
    files = digests(done.folder)
    listed = json.loads((done.folder / "manifest.json").read_text())["files"]
    del files["manifest.json"]
    drawn = re.findall(r'<figure id="([^"]+)">\n<figcaption>.*\n<svg', page)
    assert len(drawn) == 2
    for name in drawn:
        assert {f"figures/{name}.{ending}" for ending in ("svg", "csv")} <= set(files)
    n_tables = sum(path.startswith("tables/") and path.endswith(".tex") for path in files)
    assert n_tables == len(re.findall(r'<div class="table[ "]', page))
    assert {f"data/{n}.{e}" for n in ("runs", "traces", "columns") for e in ("csv", "parquet")} <= (
        set(files)
    )
    assert done.unchanged == []
    assert {path.relative_to(done.folder).as_posix() for path in done.written} == set(files)
    assert {path: entry["sha256"] for path, entry in listed.items()} == files
    entry = listed[f"figures/{FIGURE}.pdf"]
    assert entry["title"] == "a/b: Test error against kernel evaluations"
    assert entry["study"] == "example"
    assert entry["commits"] == ["0123456789abcdef0123456789abcdef01234567"]
    command = f"marginbench export {results} --figure {FIGURE} --format pdf --out {done.folder}"
    assert entry["command"] == command


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes_and_touch_nothing(results, done, tmp_path):
    formats = ["svg", "csv", "tex", "parquet"]
    first = export(results, tmp_path, formats=formats)
    export(results, tmp_path, figures=[FIGURE], formats=["pdf"])
    before = digests(tmp_path)
    del before["manifest.json"]
    assert before == {
        name: digest for name, digest in digests(done.folder).items() if name in before
    }
    assert len(before) == len(done.written)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = export(results, tmp_path, formats=formats)
    assert again.written == []
    assert again.unchanged == first.written
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times


def test_numbers_as_csv_and_parquet_are_those_of_the_analysis(results, done):
    loaded = load_results(results)
    curves = trace_curves(loaded, "evaluations", "test_error")
    read = pd.read_csv(done.folder / "figures" / f"{FIGURE}.csv")
    pd.testing.assert_frame_equal(read, curves.of_task("a/b").long(), check_dtype=False)

    path = done.folder / "tables" / "results-a-b.csv"
    read = pd.read_csv(path, float_precision="round_trip").set_index(["solver", "measure"])
    table = analysis.table(loaded)
    table = table[table["task"] == "a/b"].set_index(["solver", "measure"])
    assert list(read.index) == list(table.index)
    for name in ("median", "low", "high", "n", "best"):
        np.testing.assert_array_equal(read[name], table[name])
    error, time = read.loc[("SMO", "test_error")], read.loc[("SMO", "cpu_s")]
    assert (error["unit"], error["n"], error["n_planned"]) == ("fraction", 2, 2)
    assert error["spread"] == "95% interval of the mean"
    assert (time["unit"], time["spread"]) == ("s", "minimum to maximum")
    assert read.loc[("Lost", "test_error"), "absent"] == "no run"

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
    path = done.folder / "figures" / f"{FIGURE}.pdf"
    content = path.read_bytes()
    assert b"/CIDFontType2" in content or b"/TrueType" in content
    assert b"/FontFile2" in content
    assert b"/ToUnicode" in content
    assert b"/Type3" not in content
    assert b"CreationDate" not in content
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", path, "-"], capture_output=True, text=True).stdout
        assert "kernel evaluations" in text
        assert "$a_b$ & <c>" in text


@pytest.mark.slow
def test_labels_with_the_same_slug_and_strange_labels_have_files_of_their_own(small, tmp_path):
    folder = small(tmp_path / "r", "a/b", "a b", "\N{ROCKET}")
    drawn, listed = views_of(load_results(folder))
    tables = [name for name in listed if name.startswith("results-")]
    assert tables == ["results-a-b", "results-a-b-2", "results-unnamed"]
    assert sum(name.startswith("task-") for name in drawn) == 6
    assert all(re.fullmatch(r"[\w-]+", name) for name in [*drawn, *listed])
    ids = re.findall(r'\bid="([^"]+)"', render(load_results(folder), ""))
    assert len(ids) == len(set(ids))
    assert set(drawn) <= set(ids)


@pytest.mark.slow
def test_a_legend_says_how_many_runs_there_are_and_fits_a_narrow_figure(make, results_of):
    long = "A solver with a rather long name of many words"
    trace = make.trace([1e3, 1e4], [0.3, 0.2])
    records = [make.finished("t", name, 0, trace) for name in (long, "B", "C")]
    records.append(make.record("t", "B", 1, status="timeout", trace=trace))
    results = results_of(records)
    _, found = views_of(results)[0]["task-t-test_error-cpu_s"]
    before = found.drawing.svg("p")
    text = rendered(found, analysis.styles(results), ("svg",), 2.0)["svg"].decode()
    assert "B (1 of 2 runs)" in text
    assert "A solver with a rather" in text
    # The page's own figure is as it was.
    assert found.drawing.svg("p") == before


@pytest.mark.slow
def test_a_selection_is_compared_among_itself_in_the_colours_of_the_page(small, tmp_path):
    folder = small(tmp_path / "r", "a/b", "a b")
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
def test_studies_of_feasibility_methods_are_exported_too(make, write_results, tmp_path):
    cells = [
        make.cell(f"kappa = {kappa}", kappa=kappa, published={"MPLFP": kappa})
        for kappa in (1.0, 2.0, 3.0)
    ]
    records = [make.method_record(cell["label"], "MPLFP", s) for cell in cells for s in range(2)]
    folder = write_results(records, cells)
    done = export(folder, tmp_path / "out", formats=["svg", "csv", "tex"])
    names = {path.relative_to(tmp_path / "out").as_posix() for path in done.written}
    assert {"figures/figures-cpu_s.svg", "tables/results-kappa-1-0.tex"} <= names
    read = pd.read_csv(tmp_path / "out" / "tables" / "results-kappa-2-0.csv")
    iterations = read.set_index("measure").loc["n_iter"]
    assert (iterations["median"], iterations["n"]) == (100, 2)
    assert read.set_index("measure").loc["wall_s", "published_mean"] == 2.0


def test_a_table_of_texts_has_them_in_full():
    headings = [Heading("Name"), Heading("Name"), Heading("Hash")]
    rows = [[Cell("a"), Cell("c"), Cell("0123", hint="012345")]]
    frame = Table("t", headings, rows).frame
    assert csv_bytes(frame).decode() == "Name,Name 2,Hash\na,c,012345\n"


@pytest.mark.parametrize(
    ("text", "width"),
    [("86.36mm", 3.4), ("72.27pt", 1.0), (" 2.54 cm", 1.0), ("3", 3.0)],
)
def test_widths_have_the_units_of_latex(text, width):
    assert inches(text) == pytest.approx(width)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": ["run"]}, "unknown data 'run' (did you mean 'runs'?)"),
        ({"formats": []}, "--format names none"),
        ({"formats": ["tex"], "data": ["runs"]}, "nothing to write as tex"),
        ({"width": "0.1in"}, "--width '0.1in': it must be from 1in to 30in"),
        ({"figures": [FIGURE[:-1]]}, f"unknown figure '{FIGURE[:-1]}' (did you mean '{FIGURE}'?)"),
        ({"figures": ["zzz"]}, "unknown figure 'zzz' (--list shows each figure)"),
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


def test_names_are_repeated_or_separated_by_commas():
    assert chosen("data", ["b,A", "c", "a"], ["a", "b", "c"]) == ["b", "a", "c"]
