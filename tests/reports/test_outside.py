"""Pages of studies with solvers of another problem, and with those that show no model."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from marginbench import report
from marginbench.reports import analysis
from marginbench.reports.terminal import summary
from marginbench.reports.view import figures_of
from marginbench.reports.views.svm import trace_figures

BIAS = "it fits a bias, which the task has not"


@pytest.fixture(scope="module")
def results(make, results_of):
    """SMO; LIBSVM with a lower objective and fewer support vectors; a forest with less error."""
    other = [replace(state, primal=90.0, n_support=1) for state in make.trace([None], [0.2])]
    seen = [
        replace(state, n_iter=None, n_support=None, primal=None)
        for state in make.trace([None], [0.1], seconds=[3.0])
    ]
    forest = {"judged_by": "predictions", "suboptimality": None, "primal": None, "n_iter": None}
    records = [
        make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.2], [150.0, 101.0])),
        make.finished("a", "LIBSVM", 0, other, other_problem=BIAS, suboptimality=None),
        make.record(
            "a", "Forest", 0, trace=seen, wall_s=3.0, cpu_s=3.0, test_error=0.1, train_error=0.0,
            **forest,
        ),
    ]  # fmt: skip
    solvers = [
        make.solver("SMO"),
        make.solver("LIBSVM", instrumented=False),
        make.solver("Forest", instrumented=False, scalarization=None, judged_by="predictions"),
    ]
    return results_of(records, [make.task("a")], solvers)


def test_objectives_of_another_problem_are_not_compared_and_unknown_values_no_numbers(results):
    rows = analysis.table(results).itertuples(index=False)
    found = {(row.solver, row.measure): row for row in rows}
    assert found["LIBSVM", "suboptimality"].absent == "another problem"
    assert (
        found["Forest", "suboptimality"].absent == found["Forest", "n_support"].absent == "no model"
    )
    assert found["Forest", "evaluations"].absent == "not instrumented"
    assert found["SMO", "suboptimality"].median == pytest.approx(0.01)
    # The only one with an objective is not the best of several; errors are those of one test set.
    assert not any(cell.best for (_, m), cell in found.items() if m == "suboptimality")
    assert found["Forest", "test_error"].best
    # Fewer support vectors, but of another problem.
    assert (found["LIBSVM", "n_support"].median, found["LIBSVM", "n_support"].best) == (1, False)
    assert found["SMO", "n_support"].best
    assert {solver for (solver, _), cell in found.items() if cell.best} == {"SMO", "Forest"}
    forest = results.runs[results.runs["solver"] == "Forest"]
    assert forest[["n_iter", "n_support", "primal", "kernel_evals"]].isna().all(axis=None)
    traces = analysis.traces(results).set_index("solver")
    drawn = traces["suboptimality"].notna().groupby("solver").any().to_dict()
    assert drawn == {"SMO": True, "LIBSVM": False, "Forest": False}


def test_panels_and_legend_say_what_is_not_there(results):
    figures, marks = figures_of(results, "p", [trace_figures], "a")
    assert {entry.label: entry.note for entry in figures[0].legend} == {
        "SMO": "", "LIBSVM": "another problem", "Forest": "",
    }  # fmt: skip
    notes = {panel.title: panel.note for panel in figures}
    words = notes["Relative suboptimality against CPU seconds"]
    assert "LIBSVM (solves another problem)" in words
    assert "Forest (shows no model, only predictions)" in words
    assert "Forest, LIBSVM" in marks


@pytest.mark.usefixtures("undrawn")
def test_page_and_terminal_mark_the_solver_and_say_why(results, make):
    sentence = f"Another problem is solved by LIBSVM: {BIAS}."
    path = report(results.folder)
    page = make.page(path)
    assert sentence in page.text
    row = '<th scope="row">LIBSVM<span class="note">another problem</span></th>'
    assert row in path.read_text(encoding="utf-8")
    for words in ("its predictions", "A solver marked so", "judged by what it predicts"):
        assert words in page.text, words
    console = Console(file=io.StringIO(), width=120)
    console.print(summary(results))
    assert sentence in " ".join(console.file.getvalue().split())
