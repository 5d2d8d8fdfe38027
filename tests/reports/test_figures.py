"""The figures: what they show, and that they can share a page."""

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from marginbench.reports import analysis
from marginbench.reports.drawing import canvas
from marginbench.reports.drawing.canvas import solver_styles
from marginbench.reports.drawing.figures import (
    Reference,
    draw_traces,
    log_ticks,
    padded,
    set_log_axis,
)
from marginbench.reports.results import load_results
from marginbench.reports.views.svm import (
    PANELS,
    final_figures,
    quantities,
    trace_curves,
)

EVALS = ("evaluations", "test_error")
REFERENCE = Reference(test_error=0.01, resolution=1e-6, n_test=200)


def texts(svg):
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def panel_of(results, panel, reference, task):
    data = trace_curves(results, *panel).of_task(task)
    drawn = quantities(results, *panel)
    drawing = draw_traces(drawn, data, analysis.styles(results), reference, task)
    return None if drawing is None else drawing.svg("p")


@pytest.fixture
def draw(make, results_of):
    def drawn(*records, panel=EVALS, reference=REFERENCE, **solver):
        labels = list(dict.fromkeys(record.solver for record in records))
        described = [make.solver(label, **solver) for label in labels]
        results = results_of(records, [make.task("a")], described)
        return panel_of(results, panel, reference, "a")

    return drawn


def test_panels_are_xml_with_a_title_and_a_description(realistic):
    results = load_results(realistic)
    for panel in PANELS:
        svg = panel_of(results, panel, REFERENCE, "digits")
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        title, desc = root.find("title"), root.find("desc")
        assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
        assert "SDCA ends at a median of" in desc.text


def test_ids_carry_the_prefix_and_every_reference_resolves(draw, make):
    svg = draw(make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.2])))
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("p-") for name in ids)
    references = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)
    assert references
    assert {first or second for first, second in references} <= set(ids)


def test_the_reference_error_is_a_labelled_line(draw, make):
    svg = draw(make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.2])))
    assert "reference optimum, 1.00" in texts(svg)


def test_zero_errors_are_drawn_at_a_marked_floor(draw, make):
    with_zero = draw(make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.0])))
    without = draw(make.finished("a", "SBP", 0, make.trace([10, 100], [0.4, 0.2])))
    assert "no test error" in texts(with_zero)
    # Half an error of 200 is 0.25 %: the axis ends just below it.
    percents = re.findall(r"([\d.]+)\u202f%", texts(with_zero))
    assert 0.1 <= min(map(float, percents)) < 1
    assert "no test error" not in texts(without)


def test_a_failed_run_is_drawn_even_if_alone(draw, make):
    trace = make.trace([10, 100], [0.4, 0.2])
    svg = draw(make.record("a", "SMO", 0, status="timeout", trace=trace))
    assert canvas.PALETTE[0][0] in svg
    assert "1 run of SMO failed on the way" in svg


def test_an_uninstrumented_solver_is_in_the_time_panel_alone(draw, make):
    record = make.finished("a", "LIBSVM", 0, make.trace([None], [0.1]))
    assert draw(record, instrumented=False) is None
    assert draw(record, panel=("wall_s", "test_error"), instrumented=False) is not None


def test_ticks_of_one_axis_do_not_touch_and_are_written_alike():
    for low, high, format_ in (
        *((1e-5, 200.0, "seconds"), (0.00045, 0.00063, "seconds"), (800.0, 2.1e4, "count")),
        *((1e-9, 1e7, "scientific"), (0.012, 0.035, "scientific"), (0.002, 0.9, "percent")),
    ):
        axes = canvas.new_axes()
        set_log_axis(axes, "x", low, high, format_)
        axes.figure.draw_without_rendering()
        drawn = axes.get_xticklabels()
        boxes = [label.get_window_extent() for label in drawn]
        assert len(boxes) >= 2
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
        written = [re.sub(r"[\d.⁰¹²³⁴-⁹⁻]+", "#", label.get_text()) for label in drawn]
        assert len(set(written)) == 1, written


def test_a_single_value_has_room_on_both_sides():
    low, high = padded(np.array([10.0, 10.0]), 0.03, 0.03)
    assert low < 8 < 12 < high
    assert 10.0 in log_ticks(low, high)


def test_unknown_and_infinite_values_are_not_drawn(draw, make):
    good = make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.2]))
    bad = make.record("a", "SBP", 0, status="diverged", trace=make.trace([10, 20], [0.4, np.inf]))
    assert "nan" not in draw(good, bad).lower()
    lone = make.record("a", "SBP", 0, status="diverged", trace=make.trace([10], [0.4], [np.inf]))
    assert draw(lone, panel=("evaluations", "suboptimality")) is None


def test_ends_of_runs_are_drawn_where_there_are_ten(make, results_of):
    def shown(n_runs):
        records = [
            make.finished("a", "SMO", seed, make.trace([10, 99], [0.4, (seed + 1) / 100]))
            for seed in range(n_runs)
        ]
        records += [make.finished("a", "SBP", 0, make.trace([10, 99], [0.4, 0.2]))]
        records += [make.record("a", "SDCA", 0, status="failed", test_error=0.9)]
        results = results_of(records)
        return [view.drawing for view in final_figures(results, "a")[0]]

    (drawing,) = shown(10)
    said = drawing.description.replace("\u202f", " ")
    assert said == (
        "SMO: 1.00 % to 10.00 %, median 5.50 %, 10 runs. "
        "SBP: 20.00 % to 20.00 %, median 20.00 %, 1 run."
    )
    assert sorted(drawing.data["value"]) == pytest.approx([*np.arange(1, 11) / 100, 0.2])
    rows = [label.get_text() for label in drawing.on(canvas.PAGE).axes[0].get_yticklabels()]
    assert rows == ["SMO", "SBP"]
    assert shown(9) == []


def test_styles_tell_many_solvers_apart():
    styles = solver_styles([f"s{place}" for place in range(30)])
    assert len({(s.color, s.marker, s.dashes) for s in styles.values()}) == 30
    first = list(styles.values())[:10]
    assert len({style.color for style in first}) == len({s.marker for s in first}) == 10
