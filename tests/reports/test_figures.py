"""The figures: what they show, that they can share a page, and what stands below them."""

import base64
import io
import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from marginbench.reports import analysis
from marginbench.reports.drawing import canvas
from marginbench.reports.drawing.canvas import solver_styles
from marginbench.reports.drawing.figures import Axis, draw_lines, set_log_axis
from marginbench.reports.exports.making import views_of
from marginbench.reports.frames import of_task
from marginbench.reports.page import csv_link, render, results_argument
from marginbench.reports.views.svm import PANELS, draw_traces, final_figures, trace_curves

EVALS = ("evaluations", "test_error")
REFERENCE = {"reference_test_error": 0.01, "resolution": 1e-6, "n_test": 200}


def texts(svg):
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def panel_of(results, panel, reference, task):
    data = of_task(trace_curves(results, *panel), task)
    measures = [analysis.measures(results)[name] for name in panel]
    drawing = draw_traces(data, *measures, analysis.styles(results), reference, task)
    return None if drawing is None else drawing.svg("p")


@pytest.fixture
def draw(results_of):
    return lambda *records, panel=EVALS: panel_of(results_of(records), panel, REFERENCE, "a")


def test_panels_are_xml_with_a_description_share_a_page_and_label_the_reference(realistic_results):
    for panel in PANELS:
        svg = panel_of(realistic_results, panel, REFERENCE, "digits")
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        title, desc = root.find("title"), root.find("desc")
        assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
        assert re.search("SDCA: .* to ", desc.text)
        ids = re.findall(r'\bid="([^"]+)"', svg)
        assert len(ids) == len(set(ids))
        assert all(name.startswith("p-") for name in ids)
        references = re.findall(r'(?:href="|url\()#([^")]+)', svg)
        assert set() < set(references) <= set(ids)
        assert ("reference optimum, 1.00" in texts(svg)) == (panel[1] == "test_error")


def test_a_figure_on_kept_axes_is_the_figure_on_its_own():
    frame = pd.DataFrame({"solver": ["A", "A", "B"], "x": [1.0, 30.0, 9.0], "y": [0.2, 0.1, 0.5]})
    axes = [
        (Axis("evaluations"), Axis("", "percent")),
        (Axis("epoch", "integer", log=False), Axis("", "share", log=False, limits=(0.0, 1.0))),
        (Axis("", "seconds", limits=(0.5, 2e5)), Axis("", log=False)),
    ]
    drawings = [
        draw_lines(frame, x, y, solver_styles(["A", "B"]), "t", levels=levels)
        for (x, y), levels in itertools.product(axes, ([], [(0.3, "a level")]))
    ]
    sheet = canvas.Sheet(kept={})
    for drawing in (*drawings, *reversed(drawings)):
        assert drawing.svg("p", sheet) == drawing.svg("p")
    assert len(sheet.kept) == 1


def test_zero_errors_are_drawn_at_a_marked_floor(draw, make):
    shown = texts(draw(make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.0]))))
    assert "zero" in shown
    # Half an error of 200 is 0.25 %: the axis ends just below it.
    assert 0.1 <= min(map(float, re.findall(r"([\d.]+)\u202f%", shown))) < 1
    some = draw(make.finished("a", "SBP", 0, make.trace([10, 100], [0.4, 0.2])))
    assert "zero" not in texts(some)


@pytest.mark.parametrize(
    ("low", "high", "form"),
    [(0.00045, 0.00063, "seconds"), (800.0, 2.1e4, "count"), (1e-9, 1e7, "scientific")],
)
def test_ticks_of_one_axis_do_not_touch_and_are_written_alike(low, high, form):
    axes = canvas.new_axes()
    set_log_axis(axes, "x", low, high, form)
    axes.figure.draw_without_rendering()
    drawn = axes.get_xticklabels()
    boxes = [label.get_window_extent() for label in drawn]
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    written = {re.sub(r"[\d.⁰¹²³⁴-⁹⁻]+", "#", label.get_text()) for label in drawn}
    assert len(written) == 1


def test_failed_runs_are_drawn_but_not_values_that_are_unknown_or_infinite(draw, make):
    trace = make.trace([10, 100], [0.4, 0.2])
    svg = draw(make.record("a", "SMO", 0, status="timeout", trace=trace))
    assert canvas.PALETTE[0][0] in svg
    bad = make.record("a", "SBP", 0, status="diverged", trace=make.trace([10, 20], [0.4, np.inf]))
    assert "nan" not in draw(make.finished("a", "SMO", 0, trace), bad).lower()
    lone = make.record("a", "SBP", 0, status="diverged", trace=make.trace([10], [0.4], [np.inf]))
    assert draw(lone, panel=("evaluations", "suboptimality")) is None
    blind = make.finished("a", "LIBSVM", 0, make.trace([None], [0.1]))
    assert draw(blind) is None
    assert draw(blind, panel=("wall_s", "test_error")) is not None


def test_ends_of_runs_are_drawn_where_there_are_ten(make, results_of):
    def shown(n_runs):
        traces = [make.trace([10, 99], [0.4, (seed + 1) / 100]) for seed in range(n_runs)]
        records = [make.finished("a", "SMO", seed, trace) for seed, trace in enumerate(traces)]
        records += [make.finished("a", "SBP", 0, make.trace([10, 99], [0.4, 0.2]))]
        records += [make.record("a", "SDCA", 0, status="failed", test_error=0.9)]
        return [view.drawing for view in final_figures(results_of(records), "a")[0]]

    (drawing,) = shown(10)
    assert drawing.description.replace("\u202f", " ") == (
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


def test_text_for_a_page_has_its_font_colours_and_place():
    figure = Figure()
    axes = figure.add_axes((0.2, 0.2, 0.7, 0.7))
    axes.plot([0, 1], [0, 1], color=canvas.INK)
    axes.set_xlabel("seconds")
    axes.text(0.5, 0.5, "slanted", rotation=30)
    figure.text(0.5, 0.5, 'solver d="L 1" x="b" font: 1px y;')
    svg = canvas.inline(figure, "p")
    drawn = re.findall(r"<text [^>]*>", svg)
    assert len(drawn) > 2
    assert all("var(--sans, sans-serif)" in text and "DejaVu" not in text for text in drawn)
    assert re.search(r'transform="[^"]*rotate\(-30\)">slanted<', svg)
    assert len(re.findall(r"rotate\(", svg)) == 1
    assert f"stroke: var(--ink, {canvas.INK})" in svg
    # What looks like attributes stays as it is.
    assert 'solver d="L 1" x="b" font: 1px y;</text>' in svg


def test_the_results_are_where_the_command_put_them():
    for options, expected in (
        *(("", "results/quickstart"), (" --out 'my results' --jobs 2", "'my results'")),
        *((" --out='$(x)'", "'$(x)'"), (" 'unclosed", "results/quickstart")),
        *((" --out", "results/quickstart"), (" --out 'it'\"'\"'s'", "'it'\"'\"'s'")),
    ):
        assert results_argument(f"marginbench run quickstart{options}", "quickstart") == expected


def test_a_link_holds_the_numbers_unless_they_are_many():
    frame = pd.DataFrame({"solver": ["a,b", "\N{ROCKET}"], "median": [0.1, float("inf")]})
    head, _, body = csv_link(frame).partition(",")
    assert head == "data:text/csv;charset=utf-8;base64"
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(base64.b64decode(body))), frame)
    assert csv_link(pd.concat([frame] * 1000)) == ""
    assert csv_link(pd.DataFrame({"long": ["x" * 20_000]})) == ""


@pytest.mark.usefixtures("undrawn")
def test_each_figure_has_its_command_and_small_ones_their_numbers(make, results_of):
    records = [make.finished("a/b", "SMO", 0, make.trace([1e3, 1e4], [0.3, 0.1]))]
    results = results_of(records)
    page = render(results, "marginbench run x --out 'my results'")
    for name, (_, figure) in views_of(results)[0].items():
        command = f"marginbench export &#39;my results&#39; --figure {name} --format pdf --out ."
        assert page.count(command) == 1
        link = csv_link(figure.drawing.data)
        assert (f'<a href="{link}" download="{name}.csv">' in page) == bool(link)
