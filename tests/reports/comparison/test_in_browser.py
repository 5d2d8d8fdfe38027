"""The page of a comparison in a real browser, without scripts."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from marginbench import compare

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def page(make, tmp_path_factory):
    """Names as long as there are, a change of each kind, and another machine."""
    place, name = tmp_path_factory.mktemp("pages"), "Name" * 30
    folders = []
    for side, factor in (("a", 1), ("b", 3)):
        (place / side).mkdir()
        records = [
            make.finished(task, name, seed, make.trace([100 * factor, 1000 * factor], [0.4, 0.1]))
            for task in ("digits", name)
            for seed in range(3)
        ]
        environment = f'{{"processor": "{side * 60}"}}'
        records = [replace(record, environment=environment) for record in records]
        tasks = [make.task("digits"), make.task(name)]
        folders.append(make.folder(place / side, records, tasks, [make.solver(name)], title=name))
    return compare(*folders).write_page(place / "page.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_and_loads_nothing(page, width, scheme):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(
            viewport={"width": width, "height": 844}, color_scheme=scheme, java_script_enabled=True
        )
        tab = context.new_page()
        complaints: list[str] = []
        requests: list[str] = []
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(page.as_uri())
        assert complaints == []
        assert [url for url in requests if not url.startswith("data:")] == [page.as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        box = tab.locator("figure svg").first.bounding_box()
        assert box["width"] >= 250
        assert box["x"] + box["width"] <= width
        # What is drawn has the colours of the scheme: dots differ from the ground.
        ink = tab.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
        assert (ink == "rgb(228, 229, 226)") == (scheme == "dark")
        browser.close()
