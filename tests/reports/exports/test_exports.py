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
LABELS = ["a/b", "a b", "\N{ROCKET}"]


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_figure_and_table_of_the_page_and_all_data_are_written(results, done):
    page = render(load_results(results), "")
    files = digests(done.folder)
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
def test_the_same_records_give_the_same_bytes_and_touch_nothing(results, done, tmp_path):
    formats = ["svg", "csv", "tex", "parquet"]
    first = export(results, tmp_path, formats=formats)
    pdf = export(results, tmp_path, figures=[FIGURE], formats=["pdf"])
    names = [path.relative_to(tmp_path) for path in (*first.written, *pdf.written)]
    assert len(names) == len(done.written)
    for name in names:
        assert (tmp_path / name).read_bytes() == (done.folder / name).read_bytes()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = export(results, tmp_path, formats=formats)
    assert again.written == []
    assert again.unchanged == first.written
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times


def test_a_figure_as_csv_is_what_it_draws(results, done):
    curves = trace_curves(load_results(results), "evaluations", "test_error")
    read = pd.read_csv(done.folder / "figures" / f"{FIGURE}.csv")
    pd.testing.assert_frame_equal(read, curves.of_task("a/b").long(), check_dtype=False)


def test_a_table_as_csv_has_the_numbers_of_the_analysis(results, done):
    path = done.folder / "tables" / "results-a-b.csv"
    read = pd.read_csv(path, float_precision="round_trip")
    read = read.set_index(["solver", "measure"])
    table = analysis.table(load_results(results))
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
def test_labels_with_the_same_slug_and_strange_labels_have_files_of_their_own(small, tmp_path):
    folder = small(tmp_path / "r", *LABELS)
    drawn, listed = views_of(load_results(folder))
    tables = [name for name in listed if name.startswith("results-")]
    assert tables == [
        *("results-a-b", "results-a-b-2", "results-unnamed"),
    ]
    ours = [name for name in drawn if name.startswith("task-")]
    assert len(ours) == 2 * len(LABELS)
    assert all(re.fullmatch(r"[\w-]+", name) for name in [*drawn, *listed])
    page = render(load_results(folder), "")
    ids = re.findall(r'\bid="([^"]+)"', page)
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


def test_tables_across_tasks_have_the_numbers_of_their_cells(realistic, tmp_path):
    done = export(realistic, tmp_path, formats=["csv"])
    files = (done.folder / "tables").glob("across-*.csv")
    tables = {path.stem: pd.read_csv(path) for path in files}
    ranks, wins = tables["across-ranks"], tables["across-wins-error-evaluations"]
    assert ranks["rank"].between(ranks["low"], ranks["high"]).all()
    assert wins["share"].between(0, 1).all()
    # Who is not cheaper is dearer.
    shares = wins.set_index(["solver", "other"])["share"]
    assert all(shares[a, b] + shares[b, a] == pytest.approx(1) for a, b in shares.index)
    times = tables["across-running-time-error-evaluations"]
    assert (times["ert"] > 0).all()
    assert (times["n_reached"] <= times["n"]).all()


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
        ({"figures": [FIGURE[:-1]]}, f"unknown figure '{FIGURE[:-1]}' (did you mean '{FIGURE}'?)"),
        ({"figures": ["zzz"]}, "unknown figure 'zzz' (--list shows each figure)"),
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


def test_names_are_repeated_or_separated_by_commas():
    assert chosen("data", ["b,A", "c", "a"], ["a", "b", "c"]) == ["b", "a", "c"]
