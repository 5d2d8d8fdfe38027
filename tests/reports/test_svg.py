"""SVG text for a page: the same drawing in less text."""

import re

from matplotlib.figure import Figure

from marginbench.reports.drawing.canvas import INK, inline


def test_texts_have_the_page_s_font_and_stay_where_they_are():
    figure = Figure()
    axes = figure.add_axes((0.2, 0.2, 0.7, 0.7))
    axes.set_xlabel("seconds")
    axes.text(0.5, 0.5, "slanted", rotation=30)
    svg = inline(figure, "p")
    texts = re.findall(r"<text [^>]*>", svg)
    assert len(texts) > 2
    assert all("var(--sans, sans-serif)" in text and "DejaVu" not in text for text in texts)
    assert re.search(r'transform="[^"]*rotate\(-30\)">slanted<', svg)
    assert len(re.findall(r"rotate\(", svg)) == 1


def test_a_text_that_looks_like_attributes_stays_as_it_is():
    figure = Figure()
    figure.text(0.5, 0.5, 'solver d="L 1" x="b" font: 1px y;')
    assert 'solver d="L 1" x="b" font: 1px y;</text>' in inline(figure, "p")


def test_colours_become_custom_properties_with_the_colour_as_fallback():
    figure = Figure()
    figure.add_axes((0, 0, 1, 1)).plot([0, 1], [0, 1], color=INK)
    assert f"stroke: var(--ink, {INK})" in inline(figure, "p")
