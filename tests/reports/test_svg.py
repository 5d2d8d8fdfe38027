"""SVG text for a page: the same drawing in less text."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from marginbench.reports.drawing.svg import compact_path, inline


@pytest.mark.parametrize(
    ("path", "compact"),
    [
        ("M 0 0 \nL 1 0 \nL 2 0 \nL 2 5 \nL 3.001 5.004 \n", "M0 0H2V5H3"),
        ("M 0 0 \nL 5 0 \nL 3 0 \n", "M0 0H5H3"),  # back over itself
        ("M 0 0 \nL 1 2 \nL 1 3 \nz\nM 4 4 \nL 5 4 \n", "M0 0L1 2V3zM4 4H5"),
        ("M 0 0 \nL 1 0 \nL 1 0.001 \nL 2 0 \n", "M0 0H2"),  # nothing on the way
        ("M 0 0 \nL 0 1 \nL 0 3 \nL 0 2 \n", "M0 0V3V2"),
        ("M 1 1 \nL 1 1 \n", "M1 1V1"),  # a dot, where lines have square ends
        ("M 0 0 \nC 1.234 2 3 4 5 6 \nL 7 6 \n", "M0 0C1.23 2 3 4 5 6H7"),
    ],
)
def test_compact_path_keeps_the_drawing(path, compact):
    assert compact_path(path) == compact


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


def test_a_band_of_many_points_takes_a_corner_for_each_step():
    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.fill_between(np.arange(200), np.arange(200) // 50, 9, step="post")
    band = max(re.findall(r' d="([^"]*)"', inline(figure, "p")), key=len)
    assert 8 <= len(re.findall("[HVL]", band)) <= 16


def test_colours_become_custom_properties_with_the_colour_as_fallback():
    figure = Figure()
    figure.add_axes((0, 0, 1, 1)).plot([0, 1], [0, 1], color="#123456")
    svg = inline(figure, "p", colors={"#123456": "--line"})
    assert "stroke: var(--line, #123456)" in svg


def test_a_figure_without_title_is_decoration():
    assert 'aria-hidden="true"' in inline(Figure(), "p")
