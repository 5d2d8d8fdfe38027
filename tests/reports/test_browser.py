"""The page in a real browser, at the width of a phone and of a desk."""

from __future__ import annotations

import shutil

import pytest

from marginbench import report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_loads_nothing_and_shows_its_figures(browser, realistic_page, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, java_script_enabled=True
    )
    tab = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(realistic_page.as_uri())
    tab.wait_for_load_state("networkidle")

    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [realistic_page.as_uri()]
    widths = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]
    figures = tab.locator(".panels figure svg")
    assert figures.count() == 8
    for place in range(figures.count()):
        box = figures.nth(place).bounding_box()
        assert box["width"] >= 300
        assert box["height"] >= 150
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    # The small ones stand at least two beside each other.
    small = [tab.locator(".multiples figure").nth(place).bounding_box() for place in range(2)]
    assert small[0]["y"] == small[1]["y"]
    assert min(box["width"] for box in small) >= 140
    # A solver's line really has a colour: the custom properties of the scheme are defined.
    stroke = "getComputedStyle(document.querySelector('.legend svg path')).stroke"
    assert tab.evaluate(stroke) == (
        "rgb(11, 111, 179)" if scheme == "light" else "rgb(88, 169, 230)"
    )
    context.close()


def test_text_in_figures_can_be_read_in_print_and_on_a_phone(browser, realistic_page):
    sizes = """[...document.querySelectorAll("figure svg text")].map(
        text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""
    # A4 without its margins is 180 mm wide.
    for width, media, least in ((680, "print", 8 / 0.75), (360, "screen", 9)):
        tab = browser.new_page(viewport={"width": width, "height": 844})
        tab.emulate_media(media=media)
        tab.goto(realistic_page.as_uri())
        assert min(tab.evaluate(sizes)) >= least
        tab.close()


def test_a_reader_chooses_target_and_cost_without_a_script(browser, realistic_page):
    context = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    tab = context.new_page()
    tab.goto(realistic_page.as_uri())

    def shown() -> list[str]:
        matrices = tab.locator(".choice")
        return [
            matrices.nth(place).locator("p").inner_text()
            for place in range(matrices.count())
            if matrices.nth(place).is_visible()
        ]

    (first,) = shown()
    assert first.startswith("Kernel evaluations to stay within 1\N{NARROW NO-BREAK SPACE}%")
    tab.get_by_role("radio", name="CPU seconds").check()
    tab.get_by_role("radio", name="within 1 point of the optimum's error").check()
    (other,) = shown()
    assert other.startswith("CPU seconds to stay within 1 point of the optimum's error")
    # The protocol is folded, and opens.
    protocol = tab.locator("details.folded dl")
    assert not protocol.is_visible()
    tab.get_by_text("How runs are made").click()
    assert protocol.is_visible()
    context.close()


def test_a_page_of_feasibility_methods_fits(browser, make, tmp_path):
    cells = [make.cell(f"kappa = {kappa}", kappa=kappa) for kappa in (1.0, 2.0, 3.0)]
    records = [make.method_record(cell["label"], "MPLFP", s) for cell in cells for s in range(2)]
    page = report(make.folder(tmp_path, records, cells, [make.method("MPLFP")]))
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    tab.goto(page.as_uri())
    widths = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]
    assert tab.locator("figure svg").count() == 3
    tab.close()


def test_long_names_do_not_widen_the_page(browser, make, write_results):
    name = "Name" * 30
    record = make.finished(name, name, 0, make.trace([10, 20], [0.4, 0.1]), dataset=name)
    failed = make.record(name, name, 1, status="failed", reason=name)
    task = make.task(name, dataset=name, citation=name)
    solver = make.solver(name, params={name: name})
    folder = write_results([record, failed], [task], [solver], title=name, description=name)
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    tab.goto(report(folder, f"marginbench run {name}").as_uri())
    widths = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]
    tab.close()
