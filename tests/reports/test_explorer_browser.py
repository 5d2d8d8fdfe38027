"""The explorer in a real browser: what it draws, and how it is used."""

import numpy as np
import pytest

from marginbench import report
from marginbench.reports import analysis
from marginbench.reports.results import load_results
from marginbench.reports.statistics import curves

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=\"document.title='x'\">'\"</script>\N{RIGHT-TO-LEFT OVERRIDE}=1"


@pytest.fixture(scope="module")
def crowd(make, write_results):
    """12 solvers of five runs each, with one that failed, and a label that is an attack."""
    rng = np.random.default_rng(5)
    names = [f"Solver {place}" for place in range(11)] + [HOSTILE]
    records = []
    for place, name in enumerate(names):
        for seed in range(5):
            costs = np.sort(rng.integers(1_000, 10**6, 20))
            errors = np.sort(rng.integers(0, 90, 20))[::-1] / 200
            trace = make.trace(costs, errors, 100 * (1 + np.geomspace(1, 1e-3 * (place + 1), 20)))
            failed = {"status": "timeout", "reason": "late"} if (place, seed) == (2, 4) else {}
            records.append(make.finished(HOSTILE, name, seed, trace, **failed))
    return report(write_results(records))


def figure(tab):
    return tab.locator(".explorer-plot svg")


def drawn(tab):
    """The figure in words: its title, and where each solver ends."""
    return tab.locator(".explorer-plot").get_attribute("aria-label").split(". ")


def choose(tab, name, words):
    tab.locator(f".explorer [name={name}]").select_option(label=words)


def labels(tab, axis):
    """The words at the ticks of the first (x) or second (y) axis."""
    texts = figure(tab).locator(".role-axis-label").nth(axis).locator("text").all_text_contents()
    return [text for text in texts if text]


def test_selects_change_the_figure_and_it_shows_the_medians(visit, realistic, realistic_page):
    tab = visit(realistic_page)
    assert drawn(tab)[0] == "digits: test error against kernel evaluations"
    assert "reference optimum" in figure(tab).inner_html()
    choose(tab, "task", "adult")
    choose(tab, "value", "relative suboptimality")
    choose(tab, "cost", "CPU seconds")
    title, *ends = drawn(tab)
    assert title == tab.locator(".explorer figcaption").inner_text()
    assert title == "adult: relative suboptimality against CPU seconds"
    results = load_results(realistic)
    expected = curves.medians_along(
        results.runs, analysis.traces(results), "cpu_s", "suboptimality"
    ).curves
    last = expected[expected["task"] == "adult"].groupby("solver", sort=False).last()
    assert [end.partition(":")[0] for end in ends] == list(last.index)
    for end, row in zip(ends, last.to_dict("records"), strict=True):
        said = float(end.partition(": ")[2].partition(",")[0])
        assert said == pytest.approx(row["median"], rel=5e-3)
        assert end.endswith(f"median of {row['n_runs']} of {row['n_planned']} runs")
    assert any("e" in label for label in labels(tab, 1))
    tab.locator(".explorer [name=logy]").uncheck()
    assert not any("e" in label for label in labels(tab, 1))


def test_solvers_are_isolated_by_keyboard_and_a_view_can_be_linked(visit, realistic_page):
    tab = visit(realistic_page)
    everyone = drawn(tab)
    button = tab.locator(".explorer").get_by_role("button", name="SBP")
    button.focus()
    tab.keyboard.press("Space")
    tab.locator(".explorer").get_by_role("button", name="SDCA").click()
    tab.locator(".explorer [name=logx]").uncheck()
    chosen = drawn(tab)
    assert [end.partition(":")[0] for end in chosen[1:]] == ["SDCA", "SBP"]
    assert button.get_attribute("aria-pressed") == "true"
    other = visit(realistic_page, tab.url[tab.url.index("#") :])
    assert drawn(other) == chosen
    assert labels(other, 0) == labels(tab, 0)
    for name in ("SBP", "SDCA"):
        tab.locator(".explorer").get_by_role("button", name=name).click()
    assert drawn(tab) == everyone


@pytest.mark.parametrize(
    "said", ["task:9;cost:__proto__;only:nobody,99", "constructor:1;__proto__:2&=&&=="]
)
def test_an_address_that_says_nothing_gives_the_first_view(visit, realistic_page, said):
    tab = visit(realistic_page, f"#explore={said}")
    assert drawn(tab)[0] == "digits: test error against kernel evaluations"
    assert len(drawn(tab)) == 7


def test_the_pointer_reads_the_nearest_point_and_labels_are_text(visit, crowd):
    tab = visit(crowd)
    figure(tab).scroll_into_view_if_needed()
    box = figure(tab).bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    tab.mouse.move(box["x"] + box["width"] / 2 + 5, box["y"] + 105)
    tip = tab.locator("#vg-tooltip-element")
    tip.wait_for(state="visible")
    assert "kernel evaluations; median of" in tip.inner_text()
    tab.locator(".explorer button").last.click()
    assert drawn(tab)[1].startswith(HOSTILE[:20])
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    assert tab.title() != "x"
    assert tab.locator(".explorer img, #vg-tooltip-element img").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_it_fits_any_width_in_the_colours_of_the_scheme(visit, crowd, width, scheme):
    tab = visit(crowd, width=width, color_scheme=scheme)
    box = figure(tab).bounding_box()
    assert 0.7 * width < box["width"] < width
    assert box["height"] >= 280
    strokes = (
        figure(tab)
        .locator(".mark-line path")
        .evaluate_all("found => found.map(one => getComputedStyle(one).stroke)")
    )
    # As on the rest of the page; from the eleventh on colours repeat.
    assert ("rgb(11, 111, 179)" if scheme == "light" else "rgb(88, 169, 230)") in strokes
    assert len(strokes) == 12
    assert len(set(strokes)) == 10
    for place in range(9, 12):
        tab.locator(".explorer button").nth(place).click()
    isolated = (
        figure(tab)
        .locator(".mark-line path")
        .evaluate_all("found => found.map(one => getComputedStyle(one).stroke)")
    )
    assert len(set(isolated)) == 3


def test_without_a_script_it_is_hidden_and_on_paper_it_is_a_figure(visit, realistic_page):
    tab = visit(realistic_page, java_script_enabled=False)
    assert not tab.locator("section[aria-labelledby=explore]").is_visible()
    assert not tab.get_by_role("link", name="Explore").is_visible()
    printed = visit(realistic_page)
    printed.emulate_media(media="print")
    printed.set_viewport_size({"width": 680, "height": 900})
    assert figure(printed).bounding_box()["width"] < 680
    assert not printed.locator(".explorer select").first.is_visible()


def test_zero_is_at_the_lower_edge_and_failed_runs_are_crosses(visit, make, write_results):
    none = {"reference_primal": None, "reference_gap": None, "reference_test_error": None}
    trace = make.trace([0, 100, 1000], [0.4, 0.2, 0.0])
    record = make.record("a", "SMO", 0, status="crashed", trace=trace, **none)
    task = make.task("a") | {"reference": False}
    tab = visit(report(write_results([record], [task], [make.solver("SMO")])))
    (end,) = drawn(tab)[1:]
    assert end == "SMO: 0.00% at 1.00k kernel evaluations; crashed"
    assert "zero at the lower edge" in figure(tab).inner_html()
    tab.locator(".explorer [name=logy]").uncheck()
    assert "zero at the lower edge" not in figure(tab).inner_html()
