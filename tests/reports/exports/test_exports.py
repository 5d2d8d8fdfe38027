"""Exports: what the files hold, how they are written, and what is refused."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import marginbench
from marginbench.harness.errors import StorageError, UserError
from marginbench.harness.storage import exclusive
from marginbench.reports import analysis
from marginbench.reports.errors import ReportError
from marginbench.reports.exports import Exported, export
from marginbench.reports.exports.making import chosen, csv_bytes, inches, rendered, views_of
from marginbench.reports.exports.writing import File, write_all
from marginbench.reports.page import render
from marginbench.reports.results import load_results
from marginbench.reports.tables import Cell, Heading, Table
from marginbench.reports.views.svm import trace_curves

FIGURE = "task-a-b-test_error-evaluations"
WIDE = {"width": "17cm", "transparent": True}


def exported(folder):
    """The digests of the files that are there, which are those of the manifest, and its entries."""
    files = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
    del files["manifest.json"]
    listed = json.loads((folder / "manifest.json").read_text())["files"]
    assert {path: entry["sha256"] for path, entry in listed.items()} == files
    return files, listed


@pytest.fixture(scope="module")
def small(make):
    """Writes results with a hostile name and a failed run, on a task of each label.

    The tasks have no reference, and so two figures each: drawing takes most of the time.
    """

    def write(folder, *labels):
        records = [
            make.finished(label, solver, seed, make.trace([1e3, 1e4], [0.3, 0.1 + seed / 10]))
            for label in labels
            for solver in ("SMO", "$a_b$ & <c>")
            for seed in range(2)
        ]
        records.append(make.record(labels[0], "Lost", 0, status="crashed", reason="signal 11"))
        tasks = [make.task(label, reference=False) for label in labels]
        return make.folder(folder, records, tasks)

    return write


@pytest.fixture(scope="module")
def results(small, tmp_path_factory):
    return small(tmp_path_factory.mktemp("exports") / "results", "a/b")


@pytest.fixture(scope="module")
def done(results):
    """What of these results is exported, to a folder in them: one figure as PDF, too."""
    # Fonts take most of the time of a PDF.
    first = export(results, formats=["svg", "csv", "tex", "parquet"])
    pdf = export(results, figures=[FIGURE], formats=["pdf"], **WIDE)
    return Exported(first.folder, first.written + pdf.written, first.unchanged + pdf.unchanged)


def test_every_figure_and_table_and_all_data_are_written_and_listed(results, done):
    page = render(load_results(results), "")
    files, listed = exported(done.folder)
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
    entry, commit = listed[f"figures/{FIGURE}.pdf"], "0123456789abcdef0123456789abcdef01234567"
    assert entry["title"] == "a/b: Test error against kernel evaluations"
    assert entry["study"] == "example"
    assert entry["commits"] == [commit]
    # A column of a table has room for the beginning.
    text = (done.folder / "tables" / "environment.tex").read_text()
    assert f"\ncommit & \\texttt{{{commit[:12]}}} \\\\\n" in text
    assert commit in (done.folder / "tables" / "environment.csv").read_text()
    options = f"--figure {FIGURE} --format pdf --width 17cm --transparent --out {done.folder}"
    assert entry["command"] == f"marginbench export {results} {options}"
    assert "--width" not in listed["data/runs.csv"]["command"]


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes_and_touch_nothing(results, done, tmp_path):
    formats = ["svg", "csv", "tex", "parquet"]
    first = export(results, tmp_path, formats=formats)
    export(results, tmp_path, figures=[FIGURE], formats=["pdf"], **WIDE)
    assert exported(tmp_path)[0] == exported(done.folder)[0]
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = export(results, tmp_path, formats=formats)
    assert again.written == []
    assert again.unchanged == first.written
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times


def test_numbers_as_csv_and_parquet_are_those_of_the_analysis(results, done):
    loaded = load_results(results)
    curves = trace_curves(loaded, "evaluations", "test_error")
    read = pd.read_csv(done.folder / "figures" / f"{FIGURE}.csv")
    expected = curves[curves["task"] == "a/b"].dropna(axis="columns", how="all")
    expected = expected.reset_index(drop=True)
    pd.testing.assert_frame_equal(read.astype(expected.dtypes), expected)

    path = done.folder / "tables" / "results-a-b.csv"
    read = pd.read_csv(path, engine="python").set_index(["solver", "measure"])
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
    types = columns[columns["table"] == "runs"].set_index("column")["type"]
    assert list(types[["ok", "seed", "task"]]) == ["boolean", "number", "text"]
    for name, table in (("runs", runs), ("traces", traces)):
        assert set(columns.loc[columns["table"] == name, "column"]) == set(table.columns)


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
def test_strange_labels_have_files_of_their_own_and_a_selection_the_colours_of_the_page(
    small, tmp_path
):
    folder = small(tmp_path / "r", "a/b", "a b", "\N{ROCKET}")
    drawn, listed = views_of(load_results(folder))
    tables = [name for name in listed if name.startswith("results-")]
    assert tables == ["results-a-b", "results-a-b-2", "results-unnamed"]
    assert sum(name.startswith("task-") for name in drawn) == 6
    assert all(re.fullmatch(r"[\w-]+", name) for name in [*drawn, *listed])
    ids = re.findall(r'\bid="([^"]+)"', render(load_results(folder), ""))
    assert len(ids) == len(set(ids))
    assert set(drawn) <= set(ids)
    # A selection is compared among itself.
    export(
        folder, tmp_path, tasks=["a b"], solvers=["$a_b$ & <c>"], formats=["csv", "svg"],
        tables=["results-a-b"], figures=["task-a-b-test_error-cpu_s"],
    )  # fmt: skip
    read = pd.read_csv(tmp_path / "tables" / "results-a-b.csv")
    assert (set(read["task"]), set(read["solver"])) == ({"a b"}, {"$a_b$ & <c>"})
    svg = (tmp_path / "figures" / "task-a-b-test_error-cpu_s.svg").read_text()
    assert "#d55e00" in svg  # the second colour
    assert "#0b6fb3" not in svg


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
def test_studies_of_feasibility_methods_are_exported_too(make, write_results, tmp_path):
    cells = [make.cell(f"kappa = {k}", kappa=k, published={"MPLFP": k}) for k in (1.0, 2.0, 3.0)]
    records = [make.method_record(cell["label"], "MPLFP", s) for cell in cells for s in range(2)]
    done = export(write_results(records, cells), tmp_path, formats=["svg", "csv", "tex"])
    names = {path.relative_to(tmp_path).as_posix() for path in done.written}
    assert {"figures/figures-cpu_s.svg", "tables/results-kappa-1-0.tex"} <= names
    read = pd.read_csv(tmp_path / "tables" / "results-kappa-2-0.csv").set_index("measure")
    assert read.loc["n_iter", ["median", "n"]].tolist() == [100, 2]
    assert read.loc["wall_s", "published_mean"] == 2.0


def test_texts_are_whole_widths_have_units_of_latex_and_names_are_repeated_or_separated():
    headings = [Heading("Name"), Heading("Name"), Heading("Hash")]
    rows = [[Cell("a"), Cell("c"), Cell("0123", hint="012345")]]
    frame = Table("t", headings, rows).frame
    assert csv_bytes(frame).decode() == "Name,Name 2,Hash\na,c,012345\n"
    for text, width in (("86.36mm", 3.4), ("72.27pt", 1.0), (" 2.54 cm", 1.0), ("3", 3.0)):
        assert inches(text) == pytest.approx(width)
    assert chosen("data", ["b,A", "c", "a"], ["a", "b", "c"]) == ["b", "a", "c"]


def test_mistakes_are_one_line_with_an_exit_code_and_write_nothing(results, command, tmp_path):
    out = tmp_path / "out"
    for words, code, message in (
        (["--data", "run"], 2, "unknown data 'run' (did you mean 'runs'?)"),
        (["--format", "tex", "--data", "runs"], 2, "nothing to write as tex"),
        (["--width", "0.1in"], 2, "--width '0.1in': it must be from 1in to 30in"),
        (["--width", "3ft"], 2, "--width '3ft'"),
        (["--figure", FIGURE[:-1]], 2, f"'{FIGURE[:-1]}' (did you mean '{FIGURE}'?)"),
        (["--figure", "zzz"], 2, "unknown figure 'zzz' (--list shows each figure)"),
        (["--task", "c"], 2, "unknown task 'c'"),
        (["--solver", "Sm"], 2, "unknown solver 'Sm' (did you mean 'SMO'?)"),
        (["--data", "columns", "--out", "/proc/nowhere"], 4, "cannot be written"),
    ):
        found, printed, err = command("export", results, "--out", out, *words)
        assert (found, printed) == (code, "")
        assert message in err
        assert err.count("\n") == 1
    code, printed, err = command("export", tmp_path)
    assert (code, printed, err.count("\n")) == (2, "", 1)
    assert "not a results folder" in err
    with pytest.raises(ReportError, match="nothing to write as no format"):
        export(results, out, formats=[])
    assert not out.exists()


def test_files_of_others_are_replaced_only_by_force(results, tmp_path):
    target = tmp_path / "data" / "columns.csv"
    target.parent.mkdir()
    target.write_text("mine")
    wanted = {"data": ["columns"], "formats": ["csv", "parquet"]}
    with pytest.raises(ReportError, match=r"marginbench did not write it.*--force"):
        export(results, tmp_path, **wanted)
    assert target.read_text() == "mine"
    assert not target.with_suffix(".parquet").exists()
    export(results, tmp_path, **wanted, force=True)
    assert target.read_text() != "mine"
    with pytest.raises(StorageError, match="cannot be written"):
        export(results, target / "out", data=["columns"])
    # Nor are folders and links that lead nowhere.
    (tmp_path / "a.csv").mkdir()
    (tmp_path / "b.csv").symlink_to("nowhere")
    for name in ("a.csv", "b.csv"):
        with pytest.raises(ReportError, match="marginbench did not write it"):
            write_all(tmp_path, [File(name, b"new")], "export")
    # A folder whose files are gone has still been written by an export.
    for _ in range(2):
        ((own,), _) = write_all(tmp_path / "own", [File("own.csv", b"new")], "export")
        own.unlink()


def test_records_that_changed_replace_their_files_and_others_stay_listed(small, tmp_path):
    folder, out = tmp_path / "r", tmp_path / "out"
    export(small(folder, "a"), out, data=["runs", "traces", "columns"], formats=["csv"])
    shutil.rmtree(folder)
    done = export(small(folder, "c", "d"), out, data=["runs", "traces"], formats=["csv"])
    assert len(done.written) == 2
    assert set(pd.read_csv(done.written[0])["task"]) == {"c", "d"}
    assert set(exported(out)[0]) == {"data/runs.csv", "data/traces.csv", "data/columns.csv"}
    for part, n in ((["d"], []), 4), (([], ["SMO"]), 4), ((["d"], ["SMO"]), 2):
        tasks, solvers = part
        given = {"tasks": tasks, "solvers": solvers, "data": ["runs"], "formats": ["csv"]}
        assert len(pd.read_csv(export(folder, out, **given).written[0])) == n


@pytest.mark.slow
def test_the_command_lists_and_writes(results, done, command, tmp_path, monkeypatch):
    code, out, _ = command("export", results, "--list")
    assert code == 0
    lines = out.splitlines()
    assert {line.split()[1] for line in lines[1:]} == {path.stem for path in done.written}
    assert re.search(rf"figure +{FIGURE} +a/b: Test error against", "\n".join(lines))
    monkeypatch.chdir(tmp_path)
    one = ["export", results, "--figure", FIGURE, "--format", "pdf,csv", "--out", "."]
    code, out, _ = command(*one)
    assert code == 0
    assert out.splitlines() == [
        *(f"figures/{FIGURE}.pdf", f"figures/{FIGURE}.csv"),
        "2 files written, 0 unchanged: .",
    ]
    assert command(*one) == (0, "0 files written, 2 unchanged: .\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are text")
def test_a_folder_whose_name_is_no_text_is_exported(results, tmp_path):
    folder = shutil.copytree(results, tmp_path / os.fsdecode(b"r\xe9sults"))
    export(folder, data=["columns"])
    listed = json.loads((folder / "export" / "manifest.json").read_text())["files"]
    assert str(folder / "export") in listed["data/columns.csv"]["command"]


def test_of_two_exports_at_once_the_second_is_refused(results, tmp_path):
    loaded = marginbench.load_results(results)
    with exclusive(tmp_path), pytest.raises(UserError, match="another marginbench command"):
        loaded.export(tmp_path, data="columns", formats="csv")
    done = loaded.export(tmp_path, data="columns", formats="csv")
    assert done.written == [tmp_path / "data" / "columns.csv"]
