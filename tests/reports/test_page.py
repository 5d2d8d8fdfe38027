"""The page of a study of SVM solvers: complete, in its own words, and written once."""

import io
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from marginbench import report
from marginbench.harness.results.journal import Journal
from marginbench.reports import analysis
from marginbench.reports.command import write_report
from marginbench.reports.results import load_results
from marginbench.reports.tables import measure_cell
from marginbench.reports.terminal import summary
from marginbench.reports.view import figures_of
from marginbench.reports.views.svm import trace_figures


def test_sections_and_failures_are_there_and_nothing_that_the_study_lacks(make, realistic_page):
    page = make.page(realistic_page)
    for words in (
        *("Protocol", "Failures", "Skipped", "Tasks and data", "Solvers", "Environment"),
        *("killed after 60.0 s of solving", "the worker process ended with signal 11"),
        *("more than the 4096 MB allowed", "Example CPU 3000, 8 cores", "2 converged, 1 timeout"),
        *("not instrumented", "marginbench run example", "@software{marginbench"),
    ):
        assert words in page.text, words
    for words in ("nother problem", "no model", "its predictions", "judged by what it predicts"):
        assert words not in page.text, words
    expected = [
        *("Solver", "Runs", "Test error", "Train error", "Suboptimality", "Support vectors"),
        *("Kernel evals", "Computed", "CPU time", "Wall time"),
        *("Kernel evals", "CPU time", "Kernel evals", "CPU time", "Status"),
    ]
    assert [heading for heading in columns(page) if heading in expected] == expected
    # A measure is defined with its unit, its direction and why a value is absent.
    text = realistic_page.read_text(encoding="utf-8")
    assert '<a class="term" href="#def-suboptimality">Suboptimality</a>' in text
    (entry,) = re.findall(r'<div id="def-suboptimality">(.*?)</div>', text)
    assert "A ratio without a unit. Lower is better. “not minimised”" in entry
    assert "not counted" not in entry


def test_what_is_said_of_all_tasks_names_who_is_not_shown_denominators_and_limits(realistic_page):
    text = realistic_page.read_text(encoding="utf-8")
    parts, words = {}, {}
    for name in ("glance", "across"):
        (part,) = re.findall(rf'(?s)<section aria-labelledby="{name}">.*?</section>', text)
        parts[name], plain = part, re.sub(r"<[^>]*>", " ", part)
        words[name] = re.sub(r"[ \n\xa0\u202f]+", " ", plain)
    links = [("results-digits", "digits"), ("results-adult", "adult")]
    found = re.findall(r'<figcaption><a href="#([^"]+)">([^<]+)', parts["glance"])
    assert found == 2 * links
    places = [text.index(f'id="{name}"') for name in ("findings", "glance", "results-digits")]
    assert places == sorted(places)
    assert parts["glance"].count('class="legend"') == 1
    assert "<strong>1" not in parts["across"]  # nothing is bold
    for name, said in (
        ("glance", "Not shown: Perceptron, LIBSVM; the tables say why."),
        ("glance", "Not shown: LIBSVM;"),
        ("glance", "Dashed: the test error of the reference optimum."),
        ("across", r"The study has 2 tasks on 2 datasets\."),
        ("across", "with 2 datasets they are too narrow"),
        ("across", "only pairs can be compared"),
        ("across", "insufficient power: a pair of"),
        # SDCA crashed once of six runs, which counts; LIBSVM was skipped on one task.
        ("across", r"SDCA \d+ of 18[,.]"),
        ("across", r"LIBSVM \d+ of 9[,.]"),
        ("across", r"Not shown: [^.]*LIBSVM[^.]*; the tables say why\."),
    ):
        assert re.search(said, words[name]), said


def test_page_and_terminal_show_the_same_cells(realistic_results, realistic_page, make):
    results, out, page = realistic_results, io.StringIO(), make.page(realistic_page)
    Console(file=out, width=200).print(summary(results))
    shown = {name: each for name, each in analysis.shown(results).items() if each.short}
    assert {"test_error", "evaluations", "evals_to_error", "cpu_s"} <= set(shown)
    table = analysis.table(results)
    for row in table[table["measure"].isin(shown)].to_dict("records"):
        value = measure_cell(row, shown[row["measure"]]).value
        # Skipped solvers have a row on the page alone.
        assert value in out.getvalue() or (row["task"], row["solver"]) == ("adult", "LIBSVM")
        assert value.replace(chr(0x202F), " ") in page.text


def test_a_page_of_failures_alone_can_be_written(make, write_results):
    unknown = make.no_reference | dict.fromkeys(("n_train", "n_test", "n_features"))
    unknown |= {"reason": "cannot load", "environment": "{}"}
    records = [
        make.record("a", "SMO", 0, status="crashed", reason="signal 11"),
        make.record("b", "SMO", 0, status="failed", **unknown),
    ]
    text = make.page(report(write_results(records, missing=[("b", "SMO", 1)]))).text
    for words in ("0 of 1 runs", "No run has anything to show here.", "no record in the journal"):
        assert words in text
    # Also of runs that failed at their end, when they had counted.
    ended = (make.finished(t, "SMO", 0, make.trace([1e3, 1e4], [0.3, 0.1])) for t in ("a", "b"))
    failed = [replace(record, status="crashed") for record in ended]
    assert "0 of 1 runs" in make.page(report(write_results(failed))).text


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


@pytest.mark.usefixtures("undrawn")
def test_evaluations_are_entries_products_and_stored_entries_together(make, write_results, capsys):
    counters = {"kernel_evals": 0, "kernel_evals_computed": 0}
    linear = [
        replace(item, counters=counters | {"inner_products": n})
        for item, n in zip(make.trace([0, 0], [0.4, 0.1]), (50, 70), strict=True)
    ]
    stored = make.counters(400, matvec_entries=7_000_000)
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.1])),
        make.finished("a", "LinearSDCA", 0, linear),
        make.finished("a", "MPKFP", 0, make.trace([400], [0.1]), counters=stored),
        make.finished("a", "LIBSVM", 0, make.trace([None], [0.1])),
    ]
    folder = write_results(records)
    results = load_results(folder)
    names = ["evaluations", "evaluations_computed", "kernel_evals"]
    known = [[20, 10, 20], [70, 70, 0], [7_000_400, 7_000_200, 400]]
    assert results.runs[names][:3].to_numpy().tolist() == known
    assert results.runs[names][3:].isna().all(axis=None)
    assert results.traces["evaluations"][:5].tolist() == [10, 20, 50, 70, 400]
    assert results.traces[names][5:].isna().all(axis=None)
    page = make.page(write_report(folder, ""))
    assert columns(page)[6:12] == [
        *("Evals", "Evals computed", "Kernel evals", "Computed", "Matrix entries"),
        "Inner products",
    ]
    for words in (
        *("7.00M", "Test error against evaluations of all kinds"),
        "counts its inner products of d numbers instead",
        "counts the entries that its products use",
    ):
        assert words in page.text, words
    assert "evals" in capsys.readouterr().out


@pytest.mark.usefixtures("undrawn")
def test_curves_that_cannot_be_drawn_are_left_out(make, write_results):
    trace = make.trace([10, 100], [0.4, 0.2])
    records = [
        make.finished("a", "Free", 0, make.trace([0], [0.1])),
        make.finished("a", "SMO", 0, trace),
        make.finished("b", "SMO", 0, trace, **make.no_reference),
    ]
    path = report(write_results(records, {"b": {"reference": False}}))
    page = path.read_text(encoding="utf-8")
    assert "Not shown: Free; the tables say why." in page
    assert page.count("<figcaption>Relative suboptimality against kernel evaluations") == 1
    assert page.count("no reference optimum") == 1


@pytest.mark.usefixtures("unwritten")
def test_a_page_is_written_unless_it_would_be_the_same(make, write_results, capsys):
    folder = write_results([make.finished("a", "SMO", 0, make.trace([10], [0.4]))])
    path, same = folder / "report.html", "its file stays as it is.\n"
    for kept in (None, b"<p>other\n", b"<p>page\n"):
        if kept is not None:
            path.write_bytes(kept)
        assert write_report(folder, "") == path
        assert path.read_text() == "<p>page!\n"
        assert same not in capsys.readouterr().out
    os.utime(path, ns=(0, 0))
    assert write_report(folder, "") == path
    assert capsys.readouterr().out.endswith(same)
    assert path.stat().st_mtime_ns == 0


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes_in_any_process(realistic, realistic_page, tmp_path):
    """Sets of texts are in another order with every seed of their hashes."""
    for name in ("study.json", "journal"):
        (tmp_path / name).symlink_to(realistic / name)
    code = f"from marginbench import report; report({str(tmp_path)!r})"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # here it is a random one
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert (tmp_path / "report.html").read_bytes() == realistic_page.read_bytes()


BIAS = "it fits a bias, which the task has not"


@pytest.fixture(scope="module")
def outsiders(make, results_of):
    """SMO; LIBSVM with a lower objective and fewer support vectors; a forest with less error; and
    a perceptron, which minimises nothing."""
    other = [replace(state, primal=90.0, n_support=1) for state in make.trace([None], [0.2])]
    seen = [
        replace(state, n_iter=None, n_support=None, primal=None)
        for state in make.trace([None], [0.1], seconds=[3.0])
    ]
    learned = make.trace([10, 20, 30], [0.4] * 3)
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.2], [150.0, 101.0])),
        make.finished("a", "LIBSVM", 0, other, other_problem=BIAS, suboptimality=None),
        make.record(
            "a", "Forest", 0, trace=seen, wall_s=3.0, cpu_s=3.0, test_error=0.1, train_error=0.0,
            judged_by="predictions", suboptimality=None, primal=None, n_iter=None,
        ),
        make.finished("a", "Perceptron", 0, learned, suboptimality=None),
    ]  # fmt: skip
    solvers = {name: {"scalarization": None} for name in ("Forest", "Perceptron")}
    solvers["Forest"]["judged_by"] = "predictions"
    return results_of(records, solvers=solvers)


def test_objectives_of_another_problem_are_not_compared_and_unknown_values_no_numbers(outsiders):
    rows = analysis.table(outsiders).itertuples(index=False)
    found = {(row.solver, row.measure): row for row in rows}
    for solver, measure, absent in (
        ("LIBSVM", "suboptimality", "another problem"),
        *(("Forest", "suboptimality", "no model"), ("Forest", "n_support", "no model")),
        ("Forest", "evaluations", "not instrumented"),
        ("Perceptron", "evals_to_objective", "no target"),
        ("Perceptron", "seconds_to_objective", "not minimised"),
    ):
        assert found[solver, measure].absent == absent
    assert found["SMO", "suboptimality"].median == pytest.approx(0.01)
    best = {name for name, cell in found.items() if cell.best}
    # The only one with an objective is not the best of several; errors are those of one test set.
    assert best >= {("Forest", "test_error"), ("SMO", "n_support")}
    assert {solver for solver, _ in best} == {"SMO", "Forest"}
    assert "suboptimality" not in {measure for _, measure in best}
    # Fewer support vectors, but of another problem.
    assert found["LIBSVM", "n_support"].median == 1
    forest = outsiders.runs[outsiders.runs["solver"] == "Forest"]
    assert forest[["n_iter", "n_support", "primal", "kernel_evals"]].isna().all(axis=None)
    traces = analysis.traces(outsiders).dropna(subset="suboptimality")
    assert set(traces["solver"]) == {"SMO"}


def test_panels_and_legend_say_what_is_not_there(outsiders):
    figures, marks = figures_of(outsiders, "p", [trace_figures], "a")
    notes = {entry.label: entry.note for entry in figures[0].legend}
    assert notes == {"SMO": "", "LIBSVM": "another problem", "Forest": "", "Perceptron": ""}
    notes = {panel.title: panel.note for panel in figures}
    words = notes["Relative suboptimality against CPU seconds"]
    assert words == "Not shown: LIBSVM, Forest, Perceptron; the tables say why."
    assert "seen only at its end" in marks


@pytest.mark.usefixtures("undrawn")
def test_page_and_terminal_mark_the_solver_and_say_why(outsiders, make):
    sentence = f"Another problem is solved by LIBSVM: {BIAS}."
    path = report(outsiders.folder)
    page = make.page(path)
    assert sentence in page.text
    row = '<th scope="row">LIBSVM<span class="note">another problem</span></th>'
    assert row in path.read_text(encoding="utf-8")
    for words in ("its predictions", "A solver marked so", "judged by what it predicts"):
        assert words in page.text, words
    console = Console(file=io.StringIO(), width=120)
    console.print(summary(outsiders))
    assert sentence in " ".join(console.file.getvalue().split())
