"""The page in a real browser, at the width of a phone and of a desk."""

from itertools import pairwise

import pytest

from marginbench import report

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_page_fits_loads_nothing_and_shows_its_figures(visit, realistic_page, width, scheme):
    tab = visit(realistic_page, width=width, color_scheme=scheme)
    tab.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
    figures = tab.locator(".panels figure svg")
    assert figures.count() == 17
    for box in (each.bounding_box() for each in figures.all()):
        assert (box["width"] >= 300, box["height"] >= 150) == (True, True)
        assert 0 <= box["x"] <= width - box["width"]
    # The small ones stand at least two beside each other.
    small = [tab.locator(".multiples figure").nth(place).bounding_box() for place in range(2)]
    assert small[0]["y"] == small[1]["y"]
    assert min(box["width"] for box in small) >= 140
    # A solver's line really has a colour: the custom properties of the scheme are defined.
    stroke = "getComputedStyle(document.querySelector('.legend .swatch')).color"
    assert tab.evaluate(stroke) == (
        "rgb(11, 111, 179)" if scheme == "light" else "rgb(88, 169, 230)"
    )


def test_text_in_figures_can_be_read_in_print_and_on_a_phone(visit, realistic_page):
    sizes = """[...document.querySelectorAll("figure svg text")].map(
        text => {
            const { a, b } = text.getScreenCTM();
            return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
        })"""
    # A4 without its margins is 180 mm wide.
    for width, media, least in ((680, "print", 8 / 0.75), (360, "screen", 9)):
        tab = visit(realistic_page, width=width)
        tab.emulate_media(media=media)
        assert min(tab.evaluate(sizes)) >= least


@pytest.mark.parametrize("width", [360, 1280])
def test_long_names_do_not_widen_the_page(visit, long_named_page, width):
    tab = visit(long_named_page, width=width)
    # Links in the contents are cut, and say all of their words when pointed at.
    link = tab.locator("nav a", has_text=LONG)
    assert link.get_attribute("title") == LONG
    assert link.locator("..").bounding_box()["height"] < 40
    # A column of long names leaves room for the others.
    first = tab.locator("table.results tbody th").first.bounding_box()
    assert first["width"] <= 0.45 * width


LONG = "Name" * 30


@pytest.fixture(scope="module")
def long_named_page(make, write_results):
    """Every name has 120 characters and no space."""
    record = make.finished(LONG, LONG, 0, make.trace([10, 20], [0.4, 0.1]), dataset=LONG)
    failed = make.record(LONG, LONG, 1, status="failed", reason=LONG)
    other = make.finished(LONG, "SMO", 0, make.trace([10, 20], [0.4, 0.2]))
    described = {LONG: {"citation": LONG}}, {LONG: {"params": {LONG: LONG}}}
    records, titles = [record, failed, other], {"title": LONG, "description": LONG}
    return report(write_results(records, *described, **titles), f"marginbench run {LONG}")


@pytest.fixture(scope="module")
def many_solvers_page(make, write_results):
    """Ten solvers on one task: S9 is the cheapest, S0 fails, S1 counts nothing."""
    records = [make.record("digits", "S0", 0, status="crashed", reason="signal 11")]
    records += [make.finished("digits", "S1", 0, make.trace([None], [0.1]))]
    records += [
        make.finished("digits", f"S{n}", 0, make.trace([10, 10 ** (13 - n)], [0.4, 0.1]))
        for n in range(2, 10)
    ]
    return report(write_results(records))


def _names(table):
    return table.locator("tbody th:visible").all_inner_texts()


def test_a_table_sorts_by_value_comes_back_and_is_filtered_and_links_unfold(
    visit, many_solvers_page
):
    tab = visit(many_solvers_page)
    part = tab.locator("section[aria-labelledby=results-digits]")
    table = part.locator("table.results")
    column = table.get_by_role("columnheader", name="Kernel evals").first
    button = column.get_by_role("button")
    as_it_was = _names(table)
    button.focus()
    tab.keyboard.press("Enter")
    assert column.get_attribute("aria-sort") == "ascending"
    counted = [f"S{n}" for n in range(9, 1, -1)]
    # 100k comes before 1.00M: by value. Without a count, in either direction last.
    assert _names(table) == [*counted, "S0", "S1"]
    tab.keyboard.press("Space")
    assert column.get_attribute("aria-sort") == "descending"
    assert _names(table) == [*reversed(counted), "S0", "S1"]
    button.click()
    assert _names(table) == as_it_was
    assert column.get_attribute("aria-sort") is None
    part.get_by_role("searchbox").fill("crash")
    assert _names(table) == ["S0"]
    assert part.get_by_role("status").inner_text() == "1 of 10 rows"
    part.get_by_role("searchbox").fill("")
    assert len(_names(table)) == 10
    # A link to what is folded unfolds it; without one the address stays.
    table.get_by_role("link", name="Definition of Runs").click()
    assert tab.locator("#def-runs").is_visible()


def test_without_a_script_tables_are_plain_and_targets_unfold(visit, realistic_page):
    tab = visit(realistic_page, width=390, java_script_enabled=False)
    for role in ("button", "searchbox"):
        assert tab.get_by_role(role).count() == 0
    link = tab.locator("table.results thead").first.get_by_role("link", name="Test error")
    assert link.get_attribute("href") == "#def-test_error"
    assert tab.locator("#def-test_error").count() == 1

    shown = tab.locator(".choice .matrix:visible")
    assert shown.count() == 1
    tab.get_by_text("CPU seconds to stay within 1 point of the optimum's error").first.click()
    assert shown.count() == 2
    # The protocol is folded, and opens.
    protocol = tab.locator("section[aria-labelledby=protocol] details dl")
    assert not protocol.is_visible()
    tab.get_by_text("How runs are made").click()
    assert protocol.is_visible()


def test_on_a_phone_rows_that_are_read_one_by_one_are_cards(visit, realistic_page):
    tab = visit(realistic_page, width=390)
    part = tab.locator("section[aria-labelledby=solvers]")
    part.locator("summary").click()
    card = part.get_by_role("row").filter(has=tab.get_by_role("rowheader", name="SDCA"))
    box = card.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    label = "getComputedStyle(document.querySelector('#solvers ~ * .table td'), '::before').content"
    assert tab.evaluate(label) == '"Summary"'
    # Numbers stay a table, whose edge shows that it goes on.
    region = tab.locator(".table:has(.results)").first
    assert region.evaluate("e => e.scrollWidth > e.clientWidth && e.tabIndex === 0")
    assert tab.locator("table.results tbody td").first.evaluate(
        "e => getComputedStyle(e).display === 'table-cell'"
    )


# The width of A4 between the margins of the style sheet, upright and sideways, in CSS pixels.
UPRIGHT, SIDEWAYS = round((210 - 28) * 96 / 25.4), round((297 - 20) * 96 / 25.4)
SMALL_TEXT = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), small = [];
  for (let text; (text = texts.nextNode());) {
    const element = text.parentElement, size = parseFloat(getComputedStyle(element).fontSize);
    if (text.data.trim() && element.checkVisibility() && !element.closest("svg, sup, script")
        && size < 8 * 96 / 72 - 0.01) {
      small.push([size, text.data]);
    }
  }
  return small;
}"""


@pytest.mark.parametrize("page", ["realistic_page", "feasibility_page"])
def test_on_paper_no_text_is_small_and_no_column_is_cut(visit, page, request):
    tab = visit(request.getfixturevalue(page))
    tab.emulate_media(media="print")
    assert tab.evaluate(SMALL_TEXT) == []
    for width, tables in ((UPRIGHT, ".table:not(.landscape)"), (SIDEWAYS, ".table")):
        tab.set_viewport_size({"width": width, "height": 1000})
        cut = tab.evaluate(
            "s => [...document.querySelectorAll(s)].filter(e => e.scrollWidth > e.clientWidth + 1)"
            ".map(e => [e.getAttribute('aria-label'), e.scrollWidth])",
            tables,
        )
        assert cut == []
    assert tab.locator("#definitions ~ details dl").is_visible()
    assert not any(item.is_visible() for item in tab.locator("nav, .skip, input").all())


@pytest.fixture(scope="module")
def feasibility_page(make, write_results):
    cells = [make.cell("kappa = 1"), make.cell("lap", generator="lap", published={"VN": 3.5})]
    records = [
        make.method_record(cell["label"], name, seed, found=found)
        for cell, found in zip(cells, ("separable", "inseparable"), strict=True)
        for name in ("MPLFP", "VN")
        for seed in range(2)
    ]
    records[-1] = make.method_record("lap", "VN", 1, None, status="timeout", reason="too slow")
    return report(write_results(records, cells))


@pytest.mark.parametrize(
    ("page", "width", "scheme"),
    [("realistic_page", 390, "dark"), ("feasibility_page", 1280, "light")],
)
def test_axe_finds_no_fault(visit, page, width, scheme, request):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    path = request.getfixturevalue(page)
    tab = visit(path, width=width, color_scheme=scheme, reduced_motion="reduce")
    tab.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    faults = [
        (fault["impact"], fault["id"], fault["nodes"][0]["html"])
        for fault in axe.run(tab).response["violations"]
    ]
    assert faults == []


def test_the_first_stop_of_the_keyboard_skips_to_the_results(visit, realistic_page):
    tab = visit(realistic_page)
    tab.keyboard.press("Tab")
    skip = tab.get_by_role("link", name="Skip to the results")
    assert skip.evaluate("e => e === document.activeElement && e.getBoundingClientRect().top >= 0")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    levels = tab.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
