"""The small figures of all tasks: same axes, same units, and links to the tasks."""

import re

import numpy as np
import pytest

from marginbench.reports import formatting
from marginbench.reports.drawing.canvas import PAGE
from marginbench.reports.results import load_results
from marginbench.reports.views.findings import overview_section


@pytest.fixture(scope="module")
def analysis_of(make, results_of):
    """The results of records, with a description of each task and solver."""

    def build(records, **solver):
        tasks = [make.task(label) for label in dict.fromkeys(record.task for record in records)]
        solvers = [make.solver(name, **solver) for name in dict.fromkeys(r.solver for r in records)]
        return results_of(records, tasks, solvers)

    return build


def rows_of(results):
    """For each value its title, its note and its figures."""
    return [row for section in overview_section(results) for row in section.data["rows"]]


def figures_of(row):
    return [panel.drawing.on(PAGE) for panel in row[2] if panel.drawing]


@pytest.fixture(scope="module")
def two_tasks(make, analysis_of):
    """Tasks of 10 and 100 points with the same costs in units of n²."""
    return analysis_of(
        [
            make.finished(
                task, solver, seed, n_train=n,
                trace=make.trace(
                    [n * n, 3 * n * n], [0.4, error], [150.0, 100 + primal], seconds=[1.0, 2.0]
                ),
            )
            for task, n, error, primal in (("small", 10, 0.2, 1.0), ("large", 100, 0.01, 0.01))
            for solver in ("SMO", "SBP")
            for seed in range(2)
        ]
    )  # fmt: skip


def test_all_figures_of_a_row_have_the_same_axes(two_tasks):
    for row in rows_of(two_tasks):
        axes = [figure.axes[0] for figure in figures_of(row)]
        assert len(axes) == 2
        assert axes[0].get_xlim() == axes[1].get_xlim()
        assert axes[0].get_ylim() == axes[1].get_ylim()
        for mine in axes:
            for line in mine.get_lines():
                low, high = mine.get_ylim()
                assert all(low <= value <= high for value in line.get_ydata())


def test_costs_are_in_units_of_the_kernel_matrix(two_tasks):
    (row, _) = rows_of(two_tasks)
    assert row[0] == "Relative suboptimality against kernel evaluations in units of n²"
    for panel in row[2]:
        costs = panel.drawing.data["cost"]
        assert (costs.min(), costs.max()) == pytest.approx((1.0, 3.0))
    said = f"SMO ends at a median of {formatting.scientific(0.01)} after 3 n²."
    assert said in row[2][0].drawing.description


def test_without_counts_the_cost_is_cpu_seconds(make, analysis_of):
    records = [
        make.finished(task, "SMO", 0, make.trace([None, None], [0.3, 0.1], seconds=[0.5, 2.0]))
        for task in "ab"
    ]
    (row, *_) = rows_of(analysis_of(records, instrumented=False))
    assert row[0].endswith("against CPU seconds")
    assert row[2][1].drawing.data["cost"].max() == pytest.approx(2.0)


def test_every_figure_links_to_its_task_and_has_ids_of_its_own(realistic_page):
    page = realistic_page.read_text(encoding="utf-8")
    section = page[page.index('id="glance"') :]
    section = section[: section.index("</section>")]
    assert re.findall(r'<figcaption><a href="#([^"]+)">([^<]+)', section) == 2 * [
        ("results-digits", "digits"),
        ("results-adult", "adult"),
    ]
    for anchor in ("results-digits", "results-adult"):
        assert f'<h2 id="{anchor}">' in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert (
        page.index('id="findings"') < page.index('id="glance"') < page.index('id="results-digits"')
    )
    assert section.count('class="legend"') == 1


def test_who_is_not_shown_is_named(realistic):
    suboptimality, error = rows_of(load_results(realistic))
    assert "Not shown: Perceptron, LIBSVM; the figures of each task say why." in suboptimality[1]
    assert "Not shown: LIBSVM;" in error[1]
    assert "Dashed: the test error of the reference optimum." in error[1]


def test_a_study_of_one_task_has_no_such_section(make, analysis_of):
    trace = make.trace([10, 20], [0.4, 0.1])
    alone = analysis_of([make.finished("a", "SMO", 0, trace)])
    assert rows_of(alone) == []


def test_tasks_without_anything_to_draw_keep_their_place(make, analysis_of):
    trace = make.trace([10, 20], [0.4, 0.0])
    records = [make.record("a", "SMO", 0, status="failed"), make.finished("b", "SMO", 0, trace)]
    results = analysis_of(records)
    error = rows_of(results)[1]
    assert [panel.drawing is None for panel in error[2]] == [True, False]
    # An error of zero is not on a logarithmic axis.
    assert "Zeros are drawn at" in error[1]
    lowest = min(error[2][1].drawing.on(PAGE).axes[0].get_lines()[0].get_ydata())
    assert lowest == pytest.approx(0.005)

    failed = [make.record(task, "SMO", 0, status="failed") for task in "ab"]
    assert rows_of(analysis_of(failed)) == []


def test_suboptimality_far_above_the_optimum_is_cut_off(make, analysis_of):
    trace = make.trace([10, 20], [0.4, 0.1], [1e9, 101.0])
    records = [make.finished(task, "SMO", 0, trace) for task in "ab"]
    row = rows_of(analysis_of(records))[0]
    assert "Curves are cut off above 100." in row[1]
    _, high = figures_of(row)[0].axes[0].get_ylim()
    assert 100 <= high < 1000


def test_a_task_of_unknown_size_is_left_empty(make, analysis_of):
    trace = make.trace([10, 20], [0.4, 0.1])
    records = [
        make.finished("a", "SMO", 0, trace, n_train=None),
        make.finished("b", "SMO", 0, trace),
    ]
    row = rows_of(analysis_of(records))[1]
    assert np.isfinite(figures_of(row)[-1].axes[0].get_xlim()).all()
    assert [panel.drawing is None for panel in row[2]] == [True, False]
