"""What stands below a figure of the page: its file, its numbers, its command."""

import base64
import io

import pandas as pd
import pytest

from marginbench.reports.exports.making import views_of
from marginbench.reports.page import csv_link, render, results_argument


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("marginbench run quickstart", "results/quickstart"),
        ("marginbench run quickstart --out there", "there"),
        ("marginbench run quickstart --out 'my results' --jobs 2", "'my results'"),
        ("marginbench run quickstart --out='$(x)'", "'$(x)'"),
        ("", "results/quickstart"),
        ("marginbench run 'unclosed", "results/quickstart"),
        ("marginbench run quickstart --out", "results/quickstart"),
    ],
)
def test_the_results_are_where_the_command_put_them(command, expected):
    assert results_argument(command, "quickstart") == expected


def test_a_link_holds_the_numbers_unless_they_are_many():
    frame = pd.DataFrame({"solver": ["a,b", "\N{ROCKET}"], "median": [0.1, float("inf")]})
    head, _, body = csv_link(frame).partition(",")
    assert head == "data:text/csv;charset=utf-8;base64"
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(base64.b64decode(body))), frame)
    assert csv_link(pd.concat([frame] * 1000)) == ""
    assert csv_link(pd.DataFrame({"long": ["x" * 20_000]})) == ""


def test_each_figure_has_its_command_and_small_ones_their_numbers(make, results_of):
    records = [make.finished("a/b", "SMO", 0, make.trace([1e3, 1e4], [0.3, 0.1]))]
    results = results_of(records)
    page = render(results, "marginbench run x --out 'my results'")
    for name, (_, figure) in views_of(results)[0].items():
        command = f"marginbench export &#39;my results&#39; --figure {name} --format pdf --out ."
        assert page.count(command) == 1
        link = csv_link(figure.drawing.data)
        assert (f'<a href="{link}" download="{name}.csv">' in page) == bool(link)
