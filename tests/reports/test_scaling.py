"""Growth with the number of training points: families, medians, slopes and their section."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from marginbench import report
from marginbench.harness.results.measures import Measure
from marginbench.reports.described import SvmTask, kernel_words
from marginbench.reports.drawing.canvas import solver_styles
from marginbench.reports.drawing.figures import Axis, draw_medians
from marginbench.reports.results import load_results
from marginbench.reports.views.scaling import (
    families,
    fit_slope,
    scaling_medians,
    scaling_runs,
    scaling_section,
    slope_cell,
    slopes,
)

SIZES = [100, 1000, 10_000]


def task(n, label="", **changes):
    described = {
        "label": label or f"n={n}", "dataset": "checkers", "kernel": {"name": "rbf", "gamma": 10.0},
        "dataset_params": {"n_train": n, "n_test": 50}, "C": 1.0,
    }  # fmt: skip
    return SvmTask.model_validate(described | changes)


def run(name, n, solver, seed, seconds, **changes):
    return {
        "task": name, "n_train": n, "solver": solver, "seed": seed, "status": "converged",
        "ok": True, "cpu_s": seconds, "n_iter": 10.0, "evaluations": 100.0 * n,
        "test_error": 0.1, "train_error": 0.05,
    } | changes  # fmt: skip


def test_a_slope_and_its_interval_by_hand():
    exact = fit_slope(SIZES, [3.0 * n**1.5 for n in SIZES])
    assert exact.slope == pytest.approx(1.5, abs=1e-12)
    assert exact.high - exact.low == pytest.approx(0, abs=1e-6)
    assert (exact.n_sizes, exact.degrees_of_freedom) == (3, 1)
    # log10 n = 2, 3, 4 and log10 s = 0, 1, 3: slope 3/2, residuals 1/6, -2/6, 1/6,
    # their variance (1/6) / (3 - 2), the slope's (1/6) / 2, and t(0.975; 1) = tan(0.475 pi).
    found = fit_slope(SIZES, [1.0, 10.0, 1000.0])
    half = math.tan(0.475 * math.pi) * math.sqrt(1 / 12)
    assert (found.slope, found.low, found.high) == pytest.approx((1.5, 1.5 - half, 1.5 + half))
    # The medians of three runs each are the same values.
    thrice = [0.5, 1.0, 7.0, 10.0, 10.0, 10.0, 1.0, 1000.0, 2000.0]
    assert fit_slope([size for size in SIZES for _ in range(3)], thrice) == found
    # Two sizes have no slope.
    assert fit_slope([1, 1, 2, 2], [1.0, 2.0, 3.0, 4.0]) is None


def test_tasks_of_one_weight_of_the_mean_loss_are_a_family():
    # C as a study file rounds it, and one size with the C of another family.
    tasks = [task(n, C=round(1000 / n, 8)) for n in (1000, 3000, 7000)]
    tasks += [task(n, f"C=1, {n}") for n in (100, 300)]
    runs = pd.DataFrame([run(t.label, t.dataset_params["n_train"], "SMO", 0, 1.0) for t in tasks])
    found = families(tasks, runs)
    shares_C = found["total"].isna()
    assert found["task"][shares_C].tolist() == ["C=1, 100", "C=1, 300", "n=1000"]
    assert found["task"][~shares_C].tolist() == ["n=1000", "n=3000", "n=7000"]
    assert (found["total"][~shares_C] == 1000).all()
    assert found["family"].nunique() == 2
    members = scaling_runs(runs, found)
    assert members.groupby("family").size().tolist() == [3, 3]
    words = kernel_words(tasks[1], total=1000.0)
    assert "C n = 1000" in words
    assert not any(word.startswith("C = ") for word in words)


def test_a_family_differs_in_its_size_alone():
    tasks = [
        *(task(n) for n in reversed(SIZES)),
        *(task(n, f"wide {n}", kernel={"name": "rbf", "gamma": 20.0}) for n in SIZES),
        *(task(n, f"two {n}", C=2.0) for n in SIZES[:2]),
        task(500, "biased", fit_intercept=True),
        task(500, "noisy", dataset_params={"n_train": 500, "noise": 0.1}),
        task(500, "folds", folds=4),
        task(500, "not loaded"),
        task(100, "again"),
    ]
    runs = pd.DataFrame([run(t.label, t.dataset_params["n_train"], "SMO", 0, 1.0) for t in tasks])
    runs.loc[runs["task"] == "not loaded", "n_train"] = math.nan
    found = families(tasks, runs)
    assert found["family"].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert found["n"].tolist() == [100, 100, 1000, 10_000, *SIZES]
    assert found["task"].tolist() == [
        *("n=100", "again", "n=1000", "n=10000", "wide 100", "wide 1000", "wide 10000")
    ]
    assert families(tasks[:2], runs).empty
    assert scaling_runs(runs, families(tasks[:2], runs)).empty


@pytest.fixture
def members():
    """SMO grows like n^2 (one run timed out), cuts like n but miss the largest size."""
    rows = []
    for n in SIZES:
        seconds = n**2 / 1e4
        rows += [run(f"n={n}", n, "SMO", seed, seconds * (1 + seed / 10)) for seed in range(3)]
        late = {"ok": False, "status": "timeout"} if n == 10_000 else {}
        rows += [
            run(f"n={n}", n, "cuts", seed, n / 100, n_iter=n / 10, **late) for seed in range(2)
        ]
    rows[-3] |= {"ok": False, "status": "timeout", "cpu_s": 9e9}  # SMO, 10 000 points, seed 2
    runs = pd.DataFrame(rows)
    return scaling_runs(runs, families([task(n) for n in SIZES], runs))


def test_medians_and_ranges_are_over_the_runs_with_a_result(members):
    table = scaling_medians(members).set_index(["solver", "n", "measure"])
    seconds = table.loc["SMO"].xs("cpu_s", level="measure")
    assert seconds["n_runs"].tolist() == [3, 3, 2]
    assert seconds["median"].tolist() == pytest.approx([1.1, 110.0, 10_500.0])
    assert seconds["low"].tolist() == pytest.approx([1.0, 100.0, 10_000.0])
    assert seconds["high"].tolist() == pytest.approx([1.2, 120.0, 11_000.0])
    each = table.loc["cuts"].xs("cpu_s_per_iteration", level="measure")
    assert each["median"].tolist() == pytest.approx([0.1, 0.1])
    assert table.loc["cuts", 1000, "evaluations"]["median"] == 100_000


def test_slopes_leave_failed_runs_out_and_need_three_sizes(members):
    found = slopes(members).set_index(["solver", "measure"])
    smo = found.loc["SMO", "cpu_s"]
    expected = np.polyfit(np.log10(SIZES), np.log10([1.1, 110.0, 10_500.0]), 1)[0]
    assert smo["slope"] == pytest.approx(expected)
    assert smo["degrees_of_freedom"] == 1
    assert (smo["n_runs"], smo["left_out"], smo["n_sizes"]) == (8, 1, 3)
    assert found.loc["SMO", "evaluations"]["slope"] == pytest.approx(1.0)
    assert found.loc["SMO", "n_iter"]["slope"] == pytest.approx(0.0)
    cuts = found.loc["cuts", "cpu_s"]
    assert math.isnan(cuts["slope"])
    assert (cuts["n_sizes"], cuts["largest"], cuts["left_out"]) == (2, 1000, 2)
    few = slope_cell(cuts)
    assert (few.value, few.absent) == ("2 sizes, 3 needed", True)
    row = {"slope": -0.001, "low": -0.25, "high": 0.25, "degrees_of_freedom": 5.0, "n_sizes": 7}
    cell = slope_cell(row)
    assert (cell.value, cell.range) == ("0.00", "\N{MINUS SIGN}0.25 to 0.25")
    assert "5" in cell.note


def test_the_figure_says_where_medians_begin_and_end(members):
    medians = scaling_medians(members).rename(columns={"n": "x"})
    seconds = Measure("CPU time", "CPU seconds", "seconds")
    error = Measure("Error", "train error", "percent")
    styles, points = solver_styles(["SMO", "cuts"]), Axis("training points")

    def draw(measure, drawn):
        found = draw_medians(drawn, measure, points, styles, "board")
        return found and found.svg("p")

    svg = draw(seconds, medians[medians["measure"] == "cpu_s"])
    assert "board: CPU seconds against training points" in svg
    assert re.search(r"cuts: 1\.00\Ws at 100 to 10\.0\Ws at 1\.00k\.", svg)
    errors = medians[medians["measure"] == "train_error"]
    assert draw(error, errors.assign(low=0.0, median=0.0, high=0.0)) is None
    some = errors.assign(low=errors["low"].where(errors["x"] > 100, 0.0))
    some["median"] = some["median"].where(some["x"] > 100, 0.0)
    assert "zero" in draw(error, some)


@pytest.mark.usefixtures("undrawn")
def test_a_page_has_the_section_only_with_a_family(write_results, make):
    def write(sizes, missing=()):
        records = [
            make.finished(
                f"n={n}", "SMO", seed, make.trace([n, 10 * n], [0.2, 0.1]), n_train=n,
                cpu_s=n / 1000,
            )
            for n in sizes
            for seed in range(2)
        ]  # fmt: skip
        tasks = [make.task(f"n={n}", dataset_params={"n_train": n}) for n in sizes]
        return write_results(records, tasks, [make.solver("SMO")], missing)

    page = report(write(SIZES, [("n=10000", "SMO", 2)])).read_text(encoding="utf-8")
    section = page[page.index('id="scaling"') :]
    section = section[: section.index("</section>")]
    assert section.count("<figure ") == section.count("<svg") == 4
    for words in (
        *(">1.00<", "1.00 to 1.00", "6 / 7"),
        "Runs without a result are in no median and no slope.",
    ):
        assert words in section, words
    slopes_of = dict.fromkeys(re.findall(r"Slope of ([\w ]+)", section))
    assert list(slopes_of) == [
        *("CPU seconds", "CPU seconds per iteration", "iterations", "kernel evaluations")
    ]
    assert 'href="#scaling"' in page
    assert list(scaling_section(load_results(write(SIZES[:2])))) == []
