"""SVG text for a page: the same drawing in less text."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from marginbench.reports.drawing.svg import compact_path, inline


@pytest.mark.parametrize(
    ("path", "compact"),
    [
        ("M 0 0 \nL 1 0 \nL 2 0 \nL 2 5 \nL 3.001 5.004 \n", "M0 0H2V5H3"),
        ("M 0 0 \nL 5 0 \nL 3 0 \n", "M0 0H5H3"),  # back over itself
        ("M 0 0 \nL 1 2 \nL 1 3 \nz\nM 4 4 \nL 5 4 \n", "M0 0L1 2V3zM4 4H5"),
        ("M 0 0 \nC 1.234 2 3 4 5 6 \nL 7 6 \n", "M0 0C1.23 2 3 4 5 6H7"),
    ],
)
def test_compact_path_keeps_the_drawing(path, compact):
    assert compact_path(path) == compact


def test_colours_become_custom_properties_with_the_colour_as_fallback():
    figure = Figure()
    figure.add_axes((0, 0, 1, 1)).plot([0, 1], [0, 1], color="#123456")
    svg = inline(figure, "p", colors={"#123456": "--line"})
    assert "stroke: var(--line, #123456)" in svg


def test_a_figure_without_title_is_decoration():
    assert 'aria-hidden="true"' in inline(Figure(), "p")
