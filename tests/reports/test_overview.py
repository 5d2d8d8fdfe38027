"""The small figures of all tasks: same axes, same units, and links to the tasks."""

import re

import numpy as np
import pytest

from marginbench.reports import formatting
from marginbench.reports.drawing.canvas import PAGE
from marginbench.reports.results import load_results
from marginbench.reports.views.findings import overview_section


def rows_of(results):
    """For each value its title, its note and its figures."""
    return [row for section in overview_section(results) for row in section.data["rows"]]


def figures_of(row):
    return [panel.drawing.on(PAGE) for panel in row[2] if panel.drawing]


@pytest.fixture(scope="module")
def two_tasks(make, results_of):
    """Tasks of 10 and 100 points with the same costs in units of n²."""
    sides = {"small": (10, [0.4, 0.2], 101.0), "large": (100, [0.4, 0.01], 100.01)}
    return results_of(
        [
            make.finished(
                task, solver, seed, n_train=n,
                trace=make.trace([n * n, 3 * n * n], errors, [150.0, last], seconds=[1.0, 2.0]),
            )
            for task, (n, errors, last) in sides.items()
            for solver in ("SMO", "SBP")
            for seed in range(2)
        ]
    )  # fmt: skip


def test_all_figures_of_a_row_have_the_same_axes_in_units_of_the_kernel_matrix(two_tasks):
    rows = rows_of(two_tasks)
    for row in rows:
        one, other = (figure.axes[0] for figure in figures_of(row))
        assert (one.get_xlim(), one.get_ylim()) == (other.get_xlim(), other.get_ylim())
        low, high = one.get_ylim()
        for line in (*one.get_lines(), *other.get_lines()):
            assert all(low <= value <= high for value in line.get_ydata())
    row = rows[0]
    assert row[0] == "Relative suboptimality against kernel evaluations in units of n²"
    for panel in row[2]:
        costs = panel.drawing.data["cost"]
        assert (costs.min(), costs.max()) == pytest.approx((1.0, 3.0))
    said = f"SMO ends at a median of {formatting.scientific(0.01)} after 3 n²."
    assert said in row[2][0].drawing.description


def test_without_counts_the_cost_is_cpu_seconds(make, results_of):
    trace = make.trace([None, None], [0.3, 0.1], seconds=[0.5, 2.0])
    records = [make.finished(task, "SMO", 0, trace) for task in "ab"]
    solvers = [make.solver("SMO", instrumented=False)]
    (row, *_) = rows_of(results_of(records, solvers=solvers))
    assert row[0].endswith("against CPU seconds")
    assert row[2][1].drawing.data["cost"].max() == pytest.approx(2.0)


def test_every_figure_links_to_its_task_and_says_who_is_not_shown(realistic, realistic_page):
    page = realistic_page.read_text(encoding="utf-8")
    section = page[page.index('id="glance"') :]
    section = section[: section.index("</section>")]
    links = [("results-digits", "digits"), ("results-adult", "adult")]
    assert re.findall(r'<figcaption><a href="#([^"]+)">([^<]+)', section) == 2 * links
    places = [page.index(f'id="{name}"') for name in ("findings", "glance", "results-digits")]
    assert places == sorted(places)
    assert section.count('class="legend"') == 1
    suboptimality, error = rows_of(load_results(realistic))
    assert "Not shown: Perceptron, LIBSVM; the figures of each task say why." in suboptimality[1]
    assert "Not shown: LIBSVM;" in error[1]
    assert "Dashed: the test error of the reference optimum." in error[1]


def test_tasks_without_anything_to_draw_keep_their_place(make, results_of):
    trace = make.trace([10, 20], [0.4, 0.0])
    good = [make.finished(task, "SMO", 0, trace) for task in "ab"]
    failed = [make.record(task, "SMO", 0, status="failed") for task in "ab"]
    unsized = make.finished("a", "SMO", 0, trace, n_train=None)
    for missing in (failed[0], unsized):
        error = rows_of(results_of([missing, good[1]]))[1]
        assert [panel.drawing is None for panel in error[2]] == [True, False]
        assert np.isfinite(figures_of(error)[-1].axes[0].get_xlim()).all()
    # An error of zero is not on a logarithmic axis.
    assert "Zeros are drawn at" in error[1]
    lowest = min(figures_of(error)[-1].axes[0].get_lines()[0].get_ydata())
    assert lowest == pytest.approx(0.005)
    # One task, or nothing at all to draw, has no such section.
    assert rows_of(results_of(failed)) == rows_of(results_of(good[:1])) == []


def test_suboptimality_far_above_the_optimum_is_cut_off(make, results_of):
    trace = make.trace([10, 20], [0.4, 0.1], [1e9, 101.0])
    records = [make.finished(task, "SMO", 0, trace) for task in "ab"]
    row = rows_of(results_of(records))[0]
    assert "Curves are cut off above 100." in row[1]
    _, high = figures_of(row)[0].axes[0].get_ylim()
    assert 100 <= high < 1000
