"""What stands below a figure of the page: its file, its numbers, its command."""

from __future__ import annotations

import base64
import io
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from marginbench.reports import report
from marginbench.reports.analysis import Analysis
from marginbench.reports.exports import export
from marginbench.reports.exports.making import views_of
from marginbench.reports.links import csv_link, results_argument
from marginbench.reports.page import render
from marginbench.reports.results import load_results

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


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


def test_each_figure_has_its_command_and_small_ones_their_numbers(make, write_results):
    records = [make.finished("a/b", "SMO", 0, make.trace([1e3, 1e4], [0.3, 0.1]))]
    folder = write_results(records, [make.task("a/b")], [make.solver("SMO")])
    analysis = Analysis(load_results(folder))
    page = render(analysis, "marginbench run x --out 'my results'")
    for name, (_, figure) in views_of(analysis)[0].items():
        command = f"marginbench export &#39;my results&#39; --figure {name} --format pdf --out ."
        assert page.count(command) == 1
        link = csv_link(figure.drawing.data)
        assert (f'<a href="{link}" download="{name}.csv">' in page) == bool(link)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_saves_a_figure_that_stands_alone(make, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    (tmp_path / "r").mkdir()
    cells = [make.cell(f"kappa = {kappa}", kappa=kappa) for kappa in (1.0, 2.0, 3.0)]
    records = [make.method_record(cell["label"], "MPLFP", s) for cell in cells for s in range(2)]
    folder = make.folder(tmp_path / "r", records, cells, [make.method("MPLFP")])
    page = report(folder)
    exported = export(folder, figures=["figures-cpu_s"], formats=["svg"]).written[0]
    saved, numbers = tmp_path / "saved.svg", tmp_path / "saved.csv"
    complaints: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(color_scheme="dark")
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(page.as_uri())
        tools = tab.locator("#figures-cpu_s .figure-tools")
        for control, path in ((tools.locator("button"), saved), (tools.locator("a"), numbers)):
            with tab.expect_download() as download:
                control.click()
            assert Path(download.value.suggested_filename).stem == "figures-cpu_s"
            download.value.save_as(path)
        for path in (saved, exported):
            tab.goto(path.as_uri())
            box = tab.evaluate("(({width, height}) => [width, height])(document.documentElement"
                               ".getBoundingClientRect())")  # fmt: skip
            assert min(box) > 100
        # Without a script there is the command, and no button that does nothing.
        context = browser.new_context(java_script_enabled=False)
        plain = context.new_page()
        plain.goto(page.as_uri())
        tools = plain.locator("#figures-cpu_s .figure-tools")
        assert not tools.locator("button").is_visible()
        tools.get_by_text("Reproduce this figure").click()
        assert tools.locator("code").first.is_visible()
        plain.emulate_media(media="print")
        assert not tools.is_visible()
        browser.close()
    assert complaints == []
    text = saved.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert "var(" not in text
    assert "#0b6fb3" in text
    words = [node.text for node in root.iter() if node.tag.endswith("}text")]
    assert words[0] == "Median CPU seconds against \N{GREEK SMALL LETTER KAPPA}"
    assert words[-1] == "MPLFP"
    read = pd.read_csv(numbers)
    drawn = views_of(Analysis(load_results(folder)))[0]["figures-cpu_s"][1].drawing.data
    assert read["median"].tolist() == drawn["median"].tolist()
