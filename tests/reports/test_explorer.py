"""The explorer: its data against the statistics, and its figure in a real browser."""

import json
from dataclasses import replace

import numpy as np
import pytest

from marginbench import report
from marginbench.reports import analysis
from marginbench.reports.results import load_results
from marginbench.reports.statistics import curves
from marginbench.reports.views import explorer
from marginbench.reports.views.explorer import explorer_data, explorer_json

PRECISION = 5e-4  # four significant digits


def series(data, task, solver, cost, value, kind="median"):
    """The numbers of one solver, as the script reads them."""
    wanted = {"kind": kind}
    for key, name, words in (
        ("task", "label", task),
        ("solver", "label", solver),
        ("cost", "name", cost),
        ("value", "name", value),
    ):
        wanted[key] = [one[name] for one in data[f"{key}s"]].index(words)
    found = [one for one in data["series"] if wanted.items() <= one.items()]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.fixture(scope="module")
def data(realistic_results):
    return json.loads(explorer_json(realistic_results))


@pytest.mark.parametrize(
    ("cost", "value"),
    [("evaluations", "test_error"), ("cpu_s", "suboptimality"), ("n_iter", "n_support")],
)
def test_medians_and_ends_are_those_of_the_statistics(realistic_results, data, cost, value):
    results = realistic_results
    expected = curves.along(
        results.runs, analysis.traces(results), cost, value, explorer.MOST_POINTS
    )
    medians = expected[expected["drawn"] == "median"]
    for (task, solver), curve in medians.groupby(["task", "solver"]):
        found = series(data, task, solver, cost, value)
        assert (found["n"], found["of"]) == tuple(curve[["n_runs", "n_planned"]].iloc[0])
        assert found["x"][-1] == pytest.approx(curve["cost"].iloc[-1], rel=PRECISION)
        # Between the points that are kept nothing changes.
        grid = curve["cost"].to_numpy() * (1 + PRECISION)
        for name, shown in (("median", "y"), ("low", "low"), ("high", "high")):
            drawn = np.array(found["x"]), np.array([found[shown]])
            at = curves.Steps("a", "SMO", np.array([0]), np.array([0]), *drawn).at(grid)[0, 0]
            np.testing.assert_allclose(at, curve[name], rtol=PRECISION)
    for row in expected[expected["drawn"] == "end"].to_dict("records"):
        found = series(data, row["task"], row["solver"], cost, value, "end")
        assert found["x_low"][0] <= found["x"][0] <= found["x_high"][0]
        assert found["y"] == [pytest.approx(row["median"], rel=PRECISION)]
    failed = series(data, "digits", "Pegasos", cost, value, "failed")
    assert failed["status"] == ["timeout"]


def test_a_counter_is_offered_once_and_an_unused_one_not(data):
    words = [axis["words"] for axis in data["costs"]]
    assert len(words) == len(set(words))
    assert words[0] == "kernel evaluations"
    assert not {"inner products", "matrix-vector products", "iterations done"} & set(words)
    # No run of these solvers has a dual point, or keeps a budget.
    assert not {"certified_gap", "maintenance_fraction"} & {axis["name"] for axis in data["values"]}


def test_dual_values_give_certified_gaps_and_epochs_fractions_of_maintenance(make, results_of):
    trace = make.trace([10, 100], [0.4, 0.2], [200.0, 125.0])
    trace = [replace(state, dual=dual) for state, dual in zip(trace, (50.0, 100.0), strict=True)]
    noted = [
        {"epoch": epoch, "n_iter": epoch, "maintenance": 4 * epoch, "iterations": 16}
        for epoch in (1, 2)
    ]
    records = [make.finished("a", name, 0, trace) for name in ("SMO", "SBP")]
    records[0] = replace(records[0], epochs=json.dumps(noted))
    data = explorer_data(results_of(records, solvers={"SBP": {"scalarization": None}}))
    assert series(data, "a", "SMO", "evaluations", "certified_gap")["y"] == [0.75, 0.2]
    assert series(data, "a", "SBP", "evaluations", "certified_gap") is None
    found = series(data, "a", "SMO", "evaluations", "maintenance_fraction")
    assert (found["x"], found["y"]) == ([10, 100], [0.25, 0.5])


def test_a_large_study_has_fewer_points_and_one_without_any_no_section(
    make, realistic, results_of, data, monkeypatch
):
    monkeypatch.setattr(explorer, "MOST_NUMBERS", 0)
    thinned = explorer_data(load_results(realistic))
    asked = ("adult", "SBP", "evaluations", "suboptimality")
    few, many = series(thinned, *asked), series(data, *asked)
    assert len(few["x"]) <= explorer.FEWEST_POINTS < len(many["x"])
    assert (few["y"][0], few["y"][-1]) == (many["y"][0], many["y"][-1])
    assert explorer_data(results_of([make.record("a", "SMO", 0, status="crashed")])) is None


def test_feasibility_methods_have_the_bounds_on_the_margin(make, results_of):
    record = make.method_record("t", "MPLFP", 0, trace=[make.stage(1), make.stage(100)])
    data = explorer_data(results_of([record]))
    assert [axis["name"] for axis in data["values"]] == ["margin_gap", "phi_lo", "phi_up"]
    assert [axis["name"] for axis in data["costs"]] == ["n_iter", "matvecs", "wall_s"]
    gap = series(data, "t", "MPLFP", "n_iter", "margin_gap")
    assert (gap["x"], gap["y"]) == ([1, 100], [2.0, 0.02])


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


@pytest.mark.slow
def test_selects_change_the_figure_and_it_shows_the_medians(
    visit, realistic_results, realistic_page
):
    tab = visit(realistic_page)
    assert drawn(tab)[0] == "digits: test error against kernel evaluations"
    assert "reference optimum" in figure(tab).inner_html()
    choose(tab, "task", "adult")
    choose(tab, "value", "relative suboptimality")
    choose(tab, "cost", "CPU seconds")
    title, *ends = drawn(tab)
    assert title == tab.locator(".explorer figcaption").inner_text()
    assert title == "adult: relative suboptimality against CPU seconds"
    results = realistic_results
    expected = curves.along(results.runs, analysis.traces(results), "cpu_s", "suboptimality")
    expected = expected[expected["drawn"] == "median"]
    last = expected[expected["task"] == "adult"].groupby("solver", sort=False).last()
    for end, (solver, row) in zip(ends, last.iterrows(), strict=True):
        name, _, said = end.partition(": ")
        assert name == solver
        assert float(said.partition(",")[0]) == pytest.approx(row["median"], rel=5e-3)
        assert end.endswith(f"median of {row['n_runs']} of {row['n_planned']} runs")
    assert any("e" in label for label in labels(tab, 1))
    tab.locator(".explorer [name=logy]").uncheck()
    assert not any("e" in label for label in labels(tab, 1))


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_address_that_says_nothing_gives_the_first_view(visit, realistic_page):
    for said in ("task:9;cost:__proto__;only:nobody,99", "constructor:1;__proto__:2&=&&=="):
        tab = visit(realistic_page, f"#explore={said}")
        assert drawn(tab)[0] == "digits: test error against kernel evaluations"
        assert len(drawn(tab)) == 7


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_it_fits_any_width_in_the_colours_of_the_scheme(visit, crowd, width, scheme):
    tab = visit(crowd, width=width, color_scheme=scheme)
    box = figure(tab).bounding_box()
    assert 0.7 * width < box["width"] < width
    assert box["height"] >= 280
    colour = "found => found.map(one => getComputedStyle(one).stroke)"
    lines = figure(tab).locator(".mark-line path")
    strokes = lines.evaluate_all(colour)
    # As on the rest of the page; from the eleventh on colours repeat.
    assert ("rgb(11, 111, 179)" if scheme == "light" else "rgb(88, 169, 230)") in strokes
    assert (len(strokes), len(set(strokes))) == (12, 10)
    for place in range(9, 12):
        tab.locator(".explorer button").nth(place).click()
    assert len(set(lines.evaluate_all(colour))) == 3


@pytest.mark.slow
def test_without_a_script_it_is_hidden_and_on_paper_it_is_a_figure(visit, realistic_page):
    tab = visit(realistic_page, java_script_enabled=False)
    assert not tab.locator("section[aria-labelledby=explore]").is_visible()
    assert not tab.get_by_role("link", name="Explore").is_visible()
    printed = visit(realistic_page)
    printed.emulate_media(media="print")
    printed.set_viewport_size({"width": 680, "height": 900})
    assert figure(printed).bounding_box()["width"] < 680
    assert not printed.locator(".explorer select").first.is_visible()


@pytest.mark.slow
def test_zero_is_at_the_lower_edge_and_failed_runs_are_crosses(visit, make, write_results):
    trace = make.trace([0, 100, 1000], [0.4, 0.2, 0.0])
    record = make.record("a", "SMO", 0, status="crashed", trace=trace, **make.no_reference)
    tab = visit(report(write_results([record], {"a": {"reference": False}})))
    (end,) = drawn(tab)[1:]
    assert end == "SMO: 0.00% at 1.00k kernel evaluations; crashed"
    assert "zero at the lower edge" in figure(tab).inner_html()
    tab.locator(".explorer [name=logy]").uncheck()
    assert "zero at the lower edge" not in figure(tab).inner_html()
