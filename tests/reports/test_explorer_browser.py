"""The explorer in a real browser: what it draws against the statistics, and how it is used."""

from __future__ import annotations

import io
import json
import re
import shutil
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from marginbench import report
from marginbench.reports import formatting
from marginbench.reports.analysis import Analysis
from marginbench.reports.results import load_results
from marginbench.reports.statistics import curves
from marginbench.reports.statistics.targets import Target, costs_to_target

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

# Five significant digits, and a median of two of them.
PRECISION = 1e-4
HOSTILE = "<img src=x onerror=\"document.title='x'\">'\"</script>\N{RIGHT-TO-LEFT OVERRIDE}=1"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a page; what it complains about and asks for is checked when the test ends."""
    contexts, complaints, requests = [], [], []

    def opened(page, fragment="", width=1200, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(page.as_uri() + fragment)
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url.partition(":")[0] for url in requests} <= {"file", "data", "blob"}
    assert all(url.partition("#")[0].endswith(".html") for url in requests if url[:4] == "file")


@pytest.fixture(scope="module")
def crowd(make, tmp_path_factory):
    """25 solvers of five runs each, with one that failed, and a label that is an attack."""
    rng = np.random.default_rng(5)
    names = [f"Solver {place}" for place in range(24)] + [HOSTILE]
    records = []
    for place, name in enumerate(names):
        for seed in range(5):
            costs = np.sort(rng.integers(1_000, 10**6, 20))
            errors = np.sort(rng.integers(0, 90, 20))[::-1] / 200
            trace = make.trace(costs, errors, 100 * (1 + np.geomspace(1, 1e-3 * (place + 1), 20)))
            failed = {"status": "timeout", "reason": "late"} if (place, seed) == (2, 4) else {}
            records.append(make.finished(HOSTILE, name, seed, trace, **failed))
    folder = tmp_path_factory.mktemp("crowd")
    solvers = [make.solver(name) for name in names]
    make.folder(folder, records, [make.task(HOSTILE)], solvers)
    report(folder)
    return folder


def downloaded(tab, name) -> str:
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name=name).click()
    return waiting.value.path().read_text(encoding="utf-8")


def drawn(tab) -> pd.DataFrame:
    """What the explorer draws now, from its own download."""
    found = pd.read_csv(io.StringIO(downloaded(tab, "Download CSV")))
    return found.set_axis([*found.columns[:4], "cost", "value", *found.columns[6:]], axis=1)


def choose(tab, name, words):
    tab.locator(f"[name=explorer-{name}]").select_option(label=words)


def legend(tab) -> dict[str, str]:
    """What stands beside each solver in the legend; hidden ones are left out."""
    buttons = tab.locator(".explorer-legend button[aria-pressed=true]:first-child")
    texts = [button.locator("span").all_inner_texts() for button in buttons.all()]
    return dict(texts)


def assert_curves_are(found, folder, task, cost, value):
    """Medians and spread at the costs of the statistics' grid, away from steps."""
    results = Analysis(load_results(folder))
    expected = curves.curves(results.runs, results.traces, cost, value)
    expected = expected[expected["task"] == task]
    assert set(found.loc[found["drawn"] == "median", "solver"]) == set(expected["solver"])
    for solver, curve in expected.groupby("solver"):
        mine = found[(found["solver"] == solver) & (found["drawn"] == "median")]
        steps = mine["cost"].to_numpy()
        grid = curve["cost"].to_numpy()
        away = np.abs(np.log(grid[:, None] / steps)).min(axis=1) > PRECISION
        assert away.sum() > 50
        for name, shown in (("median", "value"), ("low", "low"), ("high", "high")):
            at = curves.step_values(steps, mine[shown].to_numpy(), grid[away])
            np.testing.assert_allclose(at, curve[name][away], rtol=PRECISION)


@pytest.mark.parametrize(
    ("cost", "cost_words", "value", "value_words"),
    [
        ("evaluations", "kernel evaluations", "test_error", "test error"),
        ("cpu_s", "CPU seconds", "suboptimality", "relative suboptimality"),
        ("n_iter", "iterations", "n_support", "support vectors"),
    ],
)
def test_medians_are_those_of_the_statistics(
    visit, realistic, realistic_page, cost, cost_words, value, value_words
):
    tab = visit(realistic_page)
    choose(tab, "task", "adult")
    choose(tab, "cost", cost_words)
    choose(tab, "value", value_words)
    found = drawn(tab)
    assert_curves_are(found, realistic, "adult", cost, value)
    # Of three runs each is drawn as well, and the one that failed apart from the median.
    assert set(found["drawn"]) == {"median", "run"}
    choose(tab, "task", "digits")
    failed = drawn(tab).query("drawn == 'failed'")
    assert set(zip(failed["solver"], failed["seed"], strict=True)) == {("Pegasos", 2)}


def test_bands_of_five_runs_are_quartiles_and_labels_are_text(visit, crowd):
    tab = visit(crowd / "report.html")
    results = load_results(crowd)
    found = drawn(tab)
    assert len(found["solver"].unique()) == 25
    shown = HOSTILE.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "\\u202e")
    assert found["solver"].iloc[-1] == shown
    names = dict.fromkeys(found["solver"]) | {shown: HOSTILE}
    found["solver"] = [names[name] or name for name in found["solver"]]
    assert_curves_are(found, crowd, HOSTILE, "evaluations", "test_error")
    assert found.query("drawn == 'median'")["n_runs"].isin([4, 5]).all()
    assert results.runs["solver"].iloc[-1] == HOSTILE
    assert tab.title() != "x"
    assert tab.locator("section[aria-labelledby=explore] img").count() == 0
    # A name at the end of every line, none over another.
    labels = tab.locator(".explorer-plot g.series text")
    places = sorted(labels.evaluate_all("all => all.map(one => one.getBoundingClientRect().y)"))
    assert len(places) == 25
    assert min(np.diff(places)) >= 10
    assert legend(tab)["Solver 2"] == "4 of 5 runs"
    assert legend(tab)["Solver 1"] == ""


def test_the_path_of_a_curve_ends_where_its_median_does(visit, realistic, realistic_page):
    tab = visit(realistic_page)
    tab.get_by_role("button", name="Only SBP").click()
    choose(tab, "value", "support vectors")
    tab.locator("[name=explorer-logy]").uncheck()
    plot = tab.locator(".explorer-plot svg")
    (d,) = plot.locator("g.median > path[stroke-width='1.7']").evaluate_all(
        "all => all.map(one => one.getAttribute('d'))"
    )
    start = float(re.match(r"M[\d.]+ ([\d.]+)", d)[1])
    end = float(re.search(r"V([\d.]+)$", d)[1])
    ticks = {
        float(text["words"].replace(",", "")): text["y"] - 4
        for text in plot.locator("text[text-anchor=end]").evaluate_all(
            "all => all.map(one => ({words: one.textContent, y: +one.getAttribute('y')}))"
        )
    }
    slope, offset = np.polyfit(list(ticks.values()), list(ticks), 1)
    results = Analysis(load_results(realistic))
    expected = curves.curves(results.runs, results.traces, "evaluations", "n_support")
    medians = expected.query("task == 'digits' and solver == 'SBP'")["median"]
    # Pixels are written to a tenth.
    assert slope * start + offset == pytest.approx(medians.iloc[0], abs=0.5)
    assert slope * end + offset == pytest.approx(medians.iloc[-1], abs=0.5)


def shares(folder, tasks, target, cost, first=False) -> dict[str, tuple[np.ndarray, int]]:
    """For each solver the costs at which its runs reach a target, and how many have it."""
    results = Analysis(load_results(folder))
    spent = costs_to_target(results.runs, results.traces, target, cost)
    spent = spent[spent["task"].isin(tasks)]
    column = "first" if first else "value"
    known = spent[spent[column].notna()]
    return {
        solver: (np.sort(group[column][np.isfinite(group[column])]), len(group))
        for solver, group in known.groupby("solver")
    }


def assert_profile_is(tab, expected, solvers):
    found = drawn(tab)
    for solver in solvers:
        costs, n = expected[solver]
        mine = found[found["solver"] == solver]
        distinct, counts = np.unique(costs, return_counts=True)
        np.testing.assert_allclose(mine["cost"], distinct, rtol=PRECISION)
        np.testing.assert_allclose(mine["value"], counts.cumsum() / n)
        assert legend(tab)[solver] == f"{len(costs)} of {n}"
    assert set(found["solver"]) <= set(solvers)


def test_a_profile_is_computed_again_from_the_tasks_and_solvers_shown(
    visit, realistic, realistic_page
):
    tab = visit(realistic_page)
    target = Target("suboptimality", 0.01)
    solvers = ["SMO", "SDCA", "Pegasos", "SBP"]
    tab.get_by_role("radio", name="Profile").check()
    choose(tab, "target", f"within {target.words}")
    both = shares(realistic, ["digits", "adult"], target, "evaluations")
    # LIBSVM counts nothing, and the perceptron has no objective.
    assert_profile_is(tab, both, solvers)
    tab.get_by_role("checkbox", name="digits").uncheck()
    adult = shares(realistic, ["adult"], target, "evaluations")
    assert adult["SDCA"][1] == 3
    assert len(adult["SDCA"][0]) == 2  # one run failed
    assert_profile_is(tab, adult, solvers)
    # The first touch of a target that the perceptron has too, by a cost that LIBSVM has.
    error = Target("test_error", 0.01)
    tab.get_by_role("checkbox", name="digits").check()
    choose(tab, "target", f"within {error.words}")
    choose(tab, "cost", "CPU seconds")
    everyone = [*solvers, "Perceptron", "LIBSVM"]
    stays, first = (
        shares(realistic, ["digits", "adult"], error, "cpu_s", f) for f in (False, True)
    )
    assert any(list(stays[name][0]) != list(first[name][0]) for name in everyone)
    assert_profile_is(tab, stays, everyone)
    tab.get_by_role("checkbox", name="best so far").check()
    assert_profile_is(tab, first, everyone)
    assert "best so far" in tab.locator(".explorer-plot").inner_text()
    tab.locator(".explorer-legend button", has_text="SMO").click()
    assert "SMO" not in legend(tab)
    assert_profile_is(tab, first, everyone[1:])


def test_costs_are_in_units_of_the_points_of_each_task(visit, realistic, realistic_page):
    tab = visit(realistic_page)
    target = Target("test_error", 0.01)
    choose(tab, "cost", "kernel evaluations per n²")
    tab.get_by_role("radio", name="Profile").check()
    choose(tab, "target", f"within {target.words}")
    results = Analysis(load_results(realistic))
    spent = costs_to_target(results.runs, results.traces, target, "evaluations")
    sizes = results.runs[["task", "solver", "seed", "n_train"]]
    mine = spent.merge(sizes, on=["task", "solver", "seed"]).query("solver == 'SBP'")
    costs = np.sort(mine["value"] / mine["n_train"] ** 2)
    assert mine["n_train"].nunique() == 2
    found = drawn(tab).query("solver == 'SBP'")
    np.testing.assert_allclose(found["cost"], costs[np.isfinite(costs)], rtol=PRECISION)


def test_a_solver_is_hidden_and_left_alone(visit, realistic_page):
    tab = visit(realistic_page)
    series = tab.locator(".explorer-plot g.median")
    assert series.count() == 5
    tab.get_by_role("button", name="SBP", exact=True).click()
    assert series.count() == 4
    assert "SBP" not in legend(tab)
    tab.get_by_role("button", name="Only SBP").click()
    assert list(legend(tab)) == ["SBP"]
    assert set(drawn(tab)["solver"]) == {"SBP"}
    tab.get_by_role("button", name="Only SBP").click()
    assert len(legend(tab)) == 6


def test_axes_are_chosen_and_values_read_by_keyboard_alone(visit, realistic, realistic_page):
    tab = visit(realistic_page)

    def press(*keys):
        for key in keys:
            tab.keyboard.press(key)

    def go_to(name):
        for _ in range(60):
            press("Tab")
            focused = tab.evaluate(
                "document.activeElement.name || document.activeElement.className"
            )
            if focused == name:
                return
        raise AssertionError(f"{name} cannot be reached")

    go_to("explorer-task")
    tab.keyboard.type("adult")
    go_to("explorer-value")
    tab.keyboard.type("relative")
    go_to("explorer-cost")
    tab.keyboard.type("CPU")
    title = tab.locator(".explorer-title")
    assert title.inner_text() == "adult: relative suboptimality against CPU seconds"
    go_to("explorer-logx")
    press("Space")
    assert "logx:false" in tab.url
    go_to("explorer-plot")
    press("ArrowRight", "End")
    results = Analysis(load_results(realistic))
    expected = curves.curves(results.runs, results.traces, "cpu_s", "suboptimality")
    last = expected.query("task == 'adult' and solver == 'SMO'").iloc[-1]
    readout = tab.locator(".explorer-readout")
    said = f"SMO: relative suboptimality {formatting.scientific(last['median'])} at CPU seconds "
    assert readout.text_content().startswith(said + formatting.seconds(last["cost"]))
    assert "median of 3 of 3 runs" in readout.inner_text()
    press("ArrowDown")
    assert readout.inner_text().startswith("SDCA: ")
    press("ArrowUp", "Home", "ArrowRight")
    assert readout.inner_text().startswith("SMO: ")
    press("Escape")
    assert readout.inner_text().startswith("Point at a curve")


def test_the_pointer_reads_the_nearest_curve(visit, realistic_page):
    tab = visit(realistic_page)
    tab.get_by_role("button", name="Only SDCA").click()
    marker = tab.locator(".explorer-plot g.median path[transform]").last
    marker.scroll_into_view_if_needed()
    marker.hover(force=True)
    assert tab.locator(".explorer-readout").inner_text().startswith("SDCA: test error ")
    tab.mouse.move(5, 5)
    assert tab.locator(".explorer-readout").inner_text().startswith("Point at a curve")


def test_a_view_is_in_the_address_and_comes_back(visit, crowd, realistic_page):
    tab = visit(realistic_page)
    assert "#" not in tab.url
    tab.get_by_role("radio", name="Profile").check()
    choose(tab, "cost", "CPU seconds")
    tab.get_by_role("checkbox", name="adult").uncheck()
    tab.get_by_role("button", name="Only SBP").click()
    tab.get_by_role("checkbox", name="best so far").check()
    title, link, shown = (tab.locator(".explorer-title").inner_text(), tab.url, drawn(tab))
    other = visit(realistic_page, link[link.index("#") :])
    assert other.locator(".explorer-title").inner_text() == title
    pd.testing.assert_frame_equal(drawn(other), shown)
    assert other.locator("#explore").evaluate("one => one.getBoundingClientRect().y < innerHeight")
    tab.go_back()
    assert "best so far" not in tab.locator(".explorer-title").inner_text()
    tab.go_back()
    assert len(legend(tab)) == 6
    tab.get_by_role("link", name="Protocol").click()
    assert "#protocol&explore=" in tab.url
    assert tab.locator(".explorer").get_attribute("data-view") == "profile"
    tab.get_by_role("button", name="Reset").click()
    assert tab.locator(".explorer").get_attribute("data-view") == "curves"
    tab.get_by_role("button", name="Copy link").click()
    tab.locator(".explorer-said:not(:empty)").wait_for()
    # A label of any characters survives the address.
    odd = visit(crowd / "report.html")
    odd.locator(".explorer-legend button").last.click()
    assert list(legend(odd)) == [HOSTILE.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "\\u202e")]
    again = visit(crowd / "report.html", odd.url[odd.url.index("#") :])
    assert legend(again) == legend(odd)


def hidden(tab) -> int:
    return tab.locator(".explorer-legend button:first-child[aria-pressed=false]").count()


def test_choices_are_undone_and_stand_beside_those_of_tables(visit, crowd):
    """Back to the first view, "Show all" of several, and a table that stays sorted."""
    tab = visit(crowd / "report.html")
    tab.locator("button.sort").nth(1).click()
    for count in (1, 2):
        tab.locator(".explorer-legend li").nth(count).locator("button").first.click()
        assert hidden(tab) == count
    tab.locator("[name=explorer-all]").click()
    tab.wait_for_function("location.hash.startsWith('#table-')")
    assert "explore" not in tab.url
    assert hidden(tab) == 0
    assert tab.locator("[aria-sort=ascending]").count() == 1
    for count in (2, 1, 0):
        tab.go_back()
        tab.wait_for_function(
            "count => document.querySelectorAll("
            "'.explorer-legend button:first-child[aria-pressed=false]').length === count",
            arg=count,
        )
    assert tab.locator("[aria-sort=ascending]").count() == 1


def test_a_view_is_restored_from_an_address_with_an_anchor(visit, crowd):
    view = "explore=view:profile;hidden:Solver+1;hidden:Solver+2"
    tab = visit(crowd / "report.html", f"#findings&{view}")
    assert hidden(tab) == 2
    tab.evaluate("location.hash = '#protocol'")
    tab.wait_for_function("location.hash.startsWith('#protocol&explore=view:profile;')")
    assert hidden(tab) == 2


@pytest.mark.parametrize(
    "fragment",
    [
        "#explore=",
        "#explore=view:;task:none;cost:__proto__;hidden:nobody;logx:maybe",
        "#explore=constructor:1;__proto__:2;view:%E0%A4%A&=&&==",
        "#explore=" + "hidden:x;" * 500,
    ],
)
def test_an_address_that_says_nothing_gives_the_first_view(visit, realistic_page, fragment):
    tab = visit(realistic_page, fragment)
    assert tab.locator(".explorer-title").inner_text() == (
        "digits: test error against kernel evaluations"
    )
    assert len(legend(tab)) == 6


def test_the_figure_as_a_file_stands_alone(visit, crowd):
    tab = visit(crowd / "report.html", color_scheme="dark")
    figure = ElementTree.fromstring(downloaded(tab, "Download SVG"))
    text = ElementTree.tostring(figure, encoding="unicode")
    assert "var(" not in text
    assert "rgb(26, 29, 32)" in text.replace("#1a1d20", "rgb(26, 29, 32)")  # the dark ground
    assert {name.rpartition("}")[2] for name in (item.tag for item in figure.iter())} == {
        *("svg", "title", "rect", "text", "path", "g"),
    }
    hostile = HOSTILE.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "\\u202e")
    assert hostile in "".join(figure.itertext())


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (390, "dark"), (1280, "light")])
def test_it_fits_any_width_in_the_colours_of_the_scheme(visit, crowd, width, scheme):
    tab = visit(crowd / "report.html", width=width, color_scheme=scheme)
    for fragment in ("", "#explore=view:profile"):
        tab.evaluate(f"location.hash = {json.dumps(fragment)}")
        widths = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1]
        box = tab.locator(".explorer-plot svg").bounding_box()
        assert box["width"] <= width
        assert box["height"] >= 280
    strokes = tab.locator(".explorer-legend path").evaluate_all(
        "found => found.map(one => getComputedStyle(one).stroke)"
    )
    # Eight are in colour, as on the rest of the page, the others are grey; markers have an edge.
    first = "rgb(11, 111, 179)" if scheme == "light" else "rgb(88, 169, 230)"
    assert first in strokes
    assert len(set(strokes)) == 10


def test_without_a_script_and_on_paper_the_page_is_whole_without_it(visit, realistic_page):
    tab = visit(realistic_page, java_script_enabled=False)
    assert not tab.locator("section[aria-labelledby=explore]").is_visible()
    assert not tab.get_by_role("link", name="Explore").is_visible()
    assert tab.locator("section[aria-labelledby=protocol]").is_visible()
    printed = visit(realistic_page)
    assert printed.locator("section[aria-labelledby=explore]").is_visible()
    printed.emulate_media(media="print")
    assert not printed.locator("section[aria-labelledby=explore]").is_visible()


def test_a_study_of_feasibility_methods_has_its_certificates_as_target(visit, make, tmp_path):
    cell = make.cell("t")
    records = [
        make.method_record("t", "MPLFP", seed, trace=[make.stage(1), make.stage(10 * (seed + 1))])
        for seed in range(3)
    ]
    records.append(make.method_record("t", "MPLFP", 3, status="budget", found="budget"))
    page = report(make.folder(tmp_path, records, [cell], [make.method("MPLFP")]))
    tab = visit(page)
    found = drawn(tab)
    assert "gap between the bounds on the margin" in tab.locator(".explorer-title").inner_text()
    assert found.query("drawn == 'median'")["n_runs"].unique() == [4]
    choose(tab, "value", "lower bound on the margin")
    assert "zero or less" in tab.locator(".explorer-plot").inner_text()
    tab.get_by_role("radio", name="Profile").check()
    profile = drawn(tab)
    assert profile["cost"].tolist() == [10, 20, 30]
    assert profile["value"].tolist() == [0.25, 0.5, 0.75]
    assert legend(tab) == {"MPLFP": "3 of 4"}


def test_without_a_reference_there_is_no_profile_and_failed_runs_are_seen(
    visit, make, write_results
):
    none = {"reference_primal": None, "reference_gap": None, "reference_test_error": None}
    trace = make.trace([0, 100, 1000], [0.4, 0.2, 0.0])
    record = make.record("a", "SMO", 0, status="crashed", trace=trace, **none)
    task = make.task("a") | {"reference": False}
    tab = visit(
        report(write_results([record], [task], [make.solver("SMO")])), "#explore=view:profile"
    )
    assert not tab.get_by_role("radio", name="Profile").is_visible()
    assert tab.locator(".explorer-title").inner_text().startswith("a: test error")
    found = drawn(tab)
    # What cost nothing has no place on a logarithmic axis, and no error one below the least.
    assert found["drawn"].tolist() == ["failed", "failed"]
    assert found["cost"].tolist() == [100, 1000]
    assert "zero" in tab.locator(".explorer-plot").inner_text()
    assert legend(tab) == {"SMO": "0 of 1 runs"}
    tab.locator("[name=explorer-logx]").uncheck()
    assert drawn(tab)["cost"].tolist() == [0, 100, 1000]


def test_numbers_and_ticks_read_as_on_the_rest_of_the_page(visit, realistic_page):
    tab = visit(realistic_page)
    numbers = [0, 1e-7, 0.00123, 0.0999, 0.1, 0.9994, 0.9996, 1, 2.5, 42, 999.4, 999.6, 1234.5]
    # Ties are rounded to even: nine of 800 test points are 1.12 %.
    numbers += [9 / 800, 0.125, 0.375, 12.5, 125, 1235.5]
    numbers += [9994.0, 99950.0, 999_950.0, 4_534_812.0, 7.5e9, 3e13]
    for name in ("percent", "count", "integer", "seconds", "scientific", "megabytes"):
        found = tab.evaluate(
            "([name, all]) => all.map(one => explorerNumbers.say(name, one))", [name, numbers]
        )
        assert found == [formatting.FORMATS[name](number) for number in numbers], name
