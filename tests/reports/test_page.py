"""The page of a study of SVM solvers: complete, in its own words."""

import re
import shutil
from dataclasses import replace

import pytest

from marginbench import report
from marginbench.harness.results.journal import Journal
from marginbench.reports import formatting
from marginbench.reports.command import print_tables, write_report
from marginbench.reports.terminal import summary


@pytest.fixture
def page(make, realistic_page):
    return make.page(realistic_page)


def test_sections_and_failures_are_there(page):
    text = page.text
    for words in (
        *("Protocol", "Failures", "Skipped", "Tasks and data", "Solvers", "Environment"),
        *("killed after 60.0 s of solving", "the worker process ended with signal 11"),
        *("more than the 4096 MB allowed", "Example CPU 3000, 8 cores", "2 converged, 1 timeout"),
        *("not instrumented", "marginbench run example", "@software{marginbench"),
    ):
        assert words in text, words


def test_every_heading_of_a_measure_leads_to_its_definition(realistic_page, page):
    text = realistic_page.read_text(encoding="utf-8")
    headings = dict(re.findall(r'<a class="term" href="#def-([^"]+)">([^<]+)</a>', text))
    assert {headings[term] for term in ("suboptimality", "runs", "status", "fingerprint")} == {
        *("Suboptimality", "Runs", "Status", "Fingerprint"),
    }
    assert {f"def-{term}" for term in headings} <= set(page.values("id"))
    # From the declaration of the measure: words, unit, direction, and why a value is absent.
    (entry,) = re.findall(r'<div id="def-suboptimality">(.*?)</div>', text)
    assert "Relative suboptimality" in entry
    assert "A ratio without a unit. Lower is better. “not minimised”" in entry
    assert "not counted" not in entry


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
    text = make.page(report(folder)).text
    assert "0 of 1 runs" in text
    assert "No run has anything to show here." in text
    assert "no record in the journal" in text


def test_a_page_of_the_first_runs_alone_can_be_written(realistic, make, tmp_path, capsys):
    # In an order of no meaning, as runs are planned: of no solver are all runs there.
    shutil.copytree(realistic, tmp_path, dirs_exist_ok=True)
    first = sorted(record.key for record in Journal(realistic).records())[:9]
    make.rewrite(tmp_path, lambda record: record if record.key in first else None)
    words = "27 of 36 planned runs have no record"
    assert words in make.page(write_report(tmp_path, "")).text
    assert words in capsys.readouterr().out


def columns(page):
    """The headings of the first table of results."""
    headings, inside = [], False
    for word in page.words:
        inside = inside or word == "To stay within 1\N{NARROW NO-BREAK SPACE}% of the optimum"
        if inside and word.strip():
            headings.append(word)
        if word == "Status":
            return headings[1:]
    raise AssertionError("no table of results")


def test_the_table_has_cpu_time_and_one_column_of_evaluations(page):
    expected = [
        *("Solver", "Runs", "Test error", "Train error", "Suboptimality", "Support vectors"),
        *("Kernel evals", "Computed", "CPU time", "Wall time"),
        *("Kernel evals", "CPU time", "Kernel evals", "CPU time", "Status"),
    ]
    assert [heading for heading in columns(page) if heading in expected] == expected


@pytest.mark.usefixtures("undrawn")
def test_what_is_counted_is_named_and_shown(make, write_results, capsys):
    counters = {"kernel_evals": 0, "kernel_evals_computed": 0, "inner_products": 50}
    stored = make.counters(400, matvec_entries=7_000_000)
    linear = [replace(item, counters=counters) for item in make.trace([0, 0], [0.4, 0.1])]
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.1])),
        make.finished("a", "LinearSDCA", 0, linear),
        make.finished("a", "MPKFP", 0, make.trace([400], [0.1]), counters=stored),
    ]
    page = make.page(write_report(write_results(records), ""))
    assert columns(page)[6:12] == [
        *("Evals", "Evals computed", "Kernel evals", "Computed", "Matrix entries"),
        "Inner products",
    ]
    assert "7.00M" in page.text
    assert "Test error against evaluations of all kinds" in page.text
    assert "counts its inner products of d numbers instead" in page.text
    assert "counts the entries that its products use" in page.text
    assert "evals" in capsys.readouterr().out


def test_a_solver_that_costs_nothing_has_a_page_without_its_curves(make, write_results):
    record = make.finished("a", "Free", 0, make.trace([0], [0.1]))
    folder = write_results([record])
    page = report(folder).read_text(encoding="utf-8")
    assert "Not shown: Free (spent no kernel evaluations)." in page


@pytest.mark.usefixtures("undrawn")
def test_a_task_without_a_reference_has_no_panels_of_suboptimality(make, write_results):
    known, unknown = make.task("a"), make.task("b") | {"reference": False}
    trace = make.trace([10, 100], [0.4, 0.2])
    none = {"reference_primal": None, "reference_gap": None, "reference_test_error": None}
    records = [make.finished("a", "SMO", 0, trace), make.finished("b", "SMO", 0, trace, **none)]
    folder = write_results(records, [known, unknown], [make.solver("SMO")])
    page = report(folder).read_text(encoding="utf-8")
    assert page.count("<figcaption>Relative suboptimality against kernel evaluations") == 1
    assert page.count("no reference optimum") == 1


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_narrow_terminal_loses_no_unit(columns, make, results_of, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    trace = make.trace([10, 100], [0.4, 0.2], seconds=[0.001, 0.0157])
    blind = make.finished("a", "LIBLINEAR", 0, make.trace([None], [0.1], seconds=[2.43]))
    records = [make.finished("a", "BundleClassifier", 0, trace), blind]
    solvers = [make.solver("BundleClassifier"), make.solver("LIBLINEAR", instrumented=False)]
    print_tables(summary(results_of(records, [make.task("a")], solvers)))
    printed = capsys.readouterr().out
    assert f"15.7{formatting.THIN}ms" in printed
    assert f"2.43{formatting.THIN}s" in printed
    assert "instrumented" in printed


def test_a_page_mentions_other_problems_and_predictions_only_where_there_are_any(page):
    for words in ("nother problem", "no model", "its predictions", "judged by what it predicts"):
        assert words not in page.text, words
