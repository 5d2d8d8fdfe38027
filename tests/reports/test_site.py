"""The page: complete, escaped, self-contained, reproducible."""

from __future__ import annotations

import html
import io
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from marginbench.reports import ReportError, formatting
from marginbench.reports.analysis import analyse
from marginbench.reports.cells import make_cell
from marginbench.reports.command import _report
from marginbench.reports.results import load_results
from marginbench.reports.site import write_report
from marginbench.reports.text import summary

HOSTILE = "<script>alert('x')</script> & \"quoted\" {{ 7 * 7 }}"
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """Tags, attributes and visible text of a page; checks that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"[ \n\xa0]+", " ", " ".join(self.words))


@pytest.fixture
def page(realistic_page):
    return realistic_page.read_text(encoding="utf-8")


def test_the_page_is_written_next_to_the_study(realistic, realistic_page):
    assert realistic_page == realistic / "report.html"
    assert sorted(item.name for item in realistic.iterdir()) == [
        "report.html",
        "runs",
        "study.json",
    ]


def test_sections_and_failures_are_there(page):
    text = Page(page).text
    for words in (
        *("Protocol", "Failures", "Skipped", "Tasks and data", "Solvers", "Environment"),
        *("killed after 60.0 s of solving", "the worker process ended with signal 11"),
        *("more than the 4096 MB allowed", "Example CPU 3000, 8 cores", "2 converged, 1 timeout"),
        *("not instrumented", "marginbench run example", "@software{marginbench"),
    ):
        assert words in text, words


def test_nothing_is_loaded_and_nothing_is_run(page):
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    for tag, attributes in Page(page).tags:
        assert tag not in ("script", "iframe", "img", "object", "embed")
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,"))
    assert not re.search(r"url\((?!#)", page)


def test_ids_are_unique_and_links_resolve(page):
    tags = Page(page).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {
        attributes["href"][1:]
        for _, attributes in tags
        if (attributes.get("href") or "").startswith("#")
    }
    labels = {
        name for _, attributes in tags for name in (attributes.get("aria-labelledby") or "").split()
    }
    assert links | labels <= set(ids)


def test_the_same_results_give_the_same_bytes(realistic, realistic_page):
    first = realistic_page.read_bytes()
    assert write_report(realistic, "marginbench run example").read_bytes() == first


def test_page_and_terminal_show_the_same_cells(realistic, page):
    results = load_results(realistic)
    console = Console(width=200, file=io.StringIO())
    console.print(summary(results))
    terminal = console.file.getvalue()
    shown = Page(page).text
    table = analyse(results).table
    for measure in ("test_error", "kernel_evals", "evals_to_target", "wall_s"):
        for row in table[table["measure"] == measure].to_dict("records"):
            value = make_cell(row).value
            assert value in terminal or (row["task"], row["solver"]) == ("adult", "LIBSVM")
            assert value in shown


def test_hostile_names_are_text(make, write_results):
    record = make.finished(
        HOSTILE, HOSTILE, 0, make.trace([10, 20], [0.4, 0.1]),
        environment='{"processor": "</style><script>alert(1)</script>"}',
    )  # fmt: skip
    failed = make.record(HOSTILE, HOSTILE, 1, status="failed", reason=HOSTILE)
    folder = write_results(
        [record, failed],
        [make.task(HOSTILE, dataset=HOSTILE, citation=HOSTILE, dataset_params={HOSTILE: HOSTILE})],
        [make.solver(HOSTILE, summary=HOSTILE, params={HOSTILE: HOSTILE})],
        title=HOSTILE,
        description=HOSTILE,
        command=HOSTILE,
    )
    text = write_report(folder, HOSTILE).read_text(encoding="utf-8")
    assert "<script" not in text
    assert "{{ 7 * 7 }}" in text  # a name is no template
    assert (
        html.escape(HOSTILE, quote=True).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
        in text
    )
    assert HOSTILE in Page(text).text


def test_a_page_of_failures_alone_can_be_written(make, write_results):
    records = [
        make.record("a", "SMO", 0, status="crashed", reason="signal 11"),
        make.record(
            "b", "SMO", 0,
            status="failed", reason="cannot load", reference_primal=None, reference_gap=None,
            reference_test_error=None, n_train=None, n_test=None, n_features=None, environment="{}",
        ),
    ]  # fmt: skip
    folder = write_results(
        records, [make.task("a"), make.task("b")], [make.solver("SMO")], [("b", "SMO", 1)]
    )
    text = Page(write_report(folder, "c").read_text(encoding="utf-8")).text
    assert "0 of 1 runs" in text
    assert "No run has anything to show here." in text
    assert "does not exist" in text


def test_no_failure_is_said_in_words(make, write_results):
    record = make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.1]))
    folder = write_results([record], [make.task("a")], [make.solver("SMO")])
    text = Page(write_report(folder, "c").read_text(encoding="utf-8")).text
    assert "None: every planned run ended as planned." in text


def test_a_folder_that_is_no_results_folder_is_refused(tmp_path):
    with pytest.raises(ReportError, match="not a results folder"):
        write_report(tmp_path, "c")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_page(make, write_results, monkeypatch):
    record = make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.1]))
    folder = write_results([record], [make.task("a")], [make.solver("SMO")])
    path = write_report(folder, "first")
    before = path.read_bytes()

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_report(folder, "second")
    assert path.read_bytes() == before
    assert not [item for item in folder.iterdir() if item.name.startswith(".writing")]


def test_importing_reports_is_light():
    heavy = "{'pandas', 'matplotlib', 'seaborn', 'jinja2', 'pyarrow'}"
    modules = "marginbench.reports.site, marginbench.reports.text"
    code = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_solver_that_costs_nothing_has_a_page_without_its_curves(make, write_results):
    record = make.finished("a", "Free", 0, make.trace([0], [0.1]))
    folder = write_results([record], [make.task("a")], [make.solver("Free")])
    page = write_report(folder, "marginbench run").read_text()
    assert "Not shown: Free (spent no kernel evaluations)." in page


def test_inner_products_are_named_where_there_are_any(make, write_results):
    trace = [replace(item, inner_products=50) for item in make.trace([0, 0], [0.4, 0.1])]
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.1])),
        make.finished("a", "LinearSDCA", 0, trace, inner_products=50),
    ]
    solvers = [make.solver("SMO"), make.solver("LinearSDCA")]
    folder = write_results(records, [make.task("a")], solvers)
    page = Page(write_report(folder, "c").read_text(encoding="utf-8")).text
    assert "Test error against kernel evaluations or inner products" in page
    assert "LinearSDCA ends at a median of 10.00" in page
    assert "after 50 kernel evaluations or inner products" in page
    assert "counts its inner products of d numbers instead" in page
    console = Console(width=120, file=io.StringIO())
    console.print(summary(load_results(folder)))
    heading = next(line for line in console.file.getvalue().splitlines() if "subopt." in line)
    assert "kernel" not in console.file.getvalue().partition("subopt.")[0]
    assert "evals" in heading
    without = write_results(records[:1], [make.task("a")], solvers[:1])
    page = Page(write_report(without, "c").read_text(encoding="utf-8")).text
    assert "inner products" not in page


def test_a_task_without_a_reference_has_no_panels_of_suboptimality(make, write_results):
    known, unknown = make.task("a"), make.task("b") | {"reference": False}
    trace = make.trace([10, 100], [0.4, 0.2])
    none = {"reference_primal": None, "reference_gap": None, "reference_test_error": None}
    records = [make.finished("a", "SMO", 0, trace), make.finished("b", "SMO", 0, trace, **none)]
    folder = write_results(records, [known, unknown], [make.solver("SMO")])
    page = write_report(folder, "marginbench run").read_text()
    assert page.count("Relative suboptimality against kernel evaluations") == 1
    assert page.count("no reference optimum") == 1


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_narrow_terminal_loses_no_unit(columns, make, write_results, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    trace = make.trace([10, 100], [0.4, 0.2], seconds=[0.001, 0.0157])
    blind = make.finished("a", "LIBLINEAR", 0, make.trace([None], [0.1], seconds=[2.43]))
    records = [make.finished("a", "BundleClassifier", 0, trace), blind]
    solvers = [make.solver("BundleClassifier"), make.solver("LIBLINEAR", instrumented=False)]
    _report(write_results(records, [make.task("a")], solvers), "marginbench run")
    printed = capsys.readouterr().out
    assert f"15.7{formatting.THIN}ms" in printed
    assert f"2.43{formatting.THIN}s" in printed
    assert "instrumented" in printed
