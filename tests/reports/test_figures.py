"""The figures: what they show, and that they can share a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from marginbench.reports.analysis import Analysis
from marginbench.reports.drawing import canvas
from marginbench.reports.drawing.styles import solver_styles
from marginbench.reports.drawing.traces import Reference, draw_traces
from marginbench.reports.panels.traces import PANELS, quantities, trace_curves
from marginbench.reports.results import load_results

EVALS = ("evaluations", "test_error")
REFERENCE = Reference(test_error=0.01, resolution=1e-6, n_test=200)


def texts(svg: str) -> str:
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def panel_of(analysis, panel, reference, task):
    data = trace_curves(analysis, *panel).of_task(task)
    drawn = quantities(analysis, *panel)
    drawing = draw_traces(drawn, data, analysis.styles, reference, task)
    return None if drawing is None else drawing.svg("p")


@pytest.fixture
def draw(make, write_results):
    def drawn(*records, panel=EVALS, reference=REFERENCE, **solver):
        labels = list(dict.fromkeys(record.solver for record in records))
        described = [make.solver(label, **solver) for label in labels]
        analysis = Analysis(load_results(write_results(records, [make.task("a")], described)))
        return panel_of(analysis, panel, reference, "a")

    return drawn


def test_panels_are_xml_with_a_title_and_a_description(realistic):
    analysis = Analysis(load_results(realistic))
    for panel in PANELS:
        svg = panel_of(analysis, panel, REFERENCE, "digits")
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


def test_the_same_data_gives_the_same_text(draw, make):
    record = make.finished("a", "SMO", 0, make.trace([10, 100], [0.4, 0.2]))
    assert draw(record) == draw(record)


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


def test_a_single_value_can_be_drawn(draw, make):
    record = make.finished("a", "SMO", 0, make.trace([10], [0.01]))
    assert "10" in texts(draw(record))


def test_a_task_without_reference_can_be_drawn(draw, make):
    record = make.finished("a", "SMO", 0, make.trace([10, 20], [0.4, 0.2]))
    svg = draw(record, reference=Reference(None, None, None))
    assert "reference" not in texts(svg)


def test_styles_tell_many_solvers_apart():
    styles = solver_styles([f"s{place}" for place in range(30)])
    assert len({(s.color, s.marker, s.dashes) for s in styles.values()}) == 30
    first = list(styles.values())[:10]
    assert len({style.color for style in first}) == len({s.marker for s in first}) == 10


def test_hostile_names_are_escaped(draw, make):
    svg = draw(make.finished("a", "<script>&", 0, make.trace([10, 20], [0.4, 0.2])))
    assert "<script>" not in svg
    ElementTree.fromstring(svg)
