"""Growth with the number of training points: families, slopes and their section of the page."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from marginbench import report
from marginbench.reports.described import SvmTask, kernel_words
from marginbench.reports.results import load_results
from marginbench.reports.views.scaling import families, fit_slope, scaling_section, slope_cell

SIZES = [100, 1000, 10_000]


def task(n, label="", **changes):
    described = {
        "label": label or f"n={n}", "dataset": "checkers", "kernel": {"name": "rbf", "gamma": 10.0},
        "dataset_params": {"n_train": n, "n_test": 50}, "C": 1.0,
    }  # fmt: skip
    return SvmTask.model_validate(described | changes)


def families_of(tasks):
    """The families of tasks whose runs have the sizes that they say, but for one."""
    sizes = {each.label: each.dataset_params["n_train"] for each in tasks} | {"not loaded": None}
    return families(tasks, pd.DataFrame({"task": sizes.keys(), "n_train": sizes.values()}))


def sized(sizes):
    """What describes tasks of these sizes."""
    return {f"n={n}": {"dataset_params": {"n_train": n}} for n in sizes}


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
    found = families_of(tasks)
    shares_C = found["total"].isna()
    assert found["task"][shares_C].tolist() == ["C=1, 100", "C=1, 300", "n=1000"]
    assert found["task"][~shares_C].tolist() == ["n=1000", "n=3000", "n=7000"]
    assert (found["total"][~shares_C] == 1000).all()
    assert found["family"].nunique() == 2
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
    found = families_of(tasks)
    assert found[["family", "task", "n"]].values.tolist() == [
        *([0, "n=100", 100], [0, "again", 100], [0, "n=1000", 1000], [0, "n=10000", 10_000]),
        *([1, f"wide {n}", n] for n in SIZES),
    ]


@pytest.fixture(scope="module")
def folder(make, write_results):
    """SMO takes n² (one run timed out, one has no record); cuts takes n, but not of the largest.

    No run errs on test points, and cuts on no training points of the smallest task.
    """

    def run(solver, n, seed, seconds, n_iter, **fields):
        trace = make.trace([100 * n], [0.0], seconds=[seconds])
        fields = {"n_train": n, "n_iter": n_iter, "train_error": 0.05} | fields
        return make.finished(f"n={n}", solver, seed, trace, **fields)

    none, late = {"train_error": 0.0}, {"status": "timeout"}
    records = [
        *(run("SMO", n, seed, n**2 / 1e4 * (1 + seed / 10), n) for n in SIZES for seed in range(3)),
        *(run("cuts", 100, seed, 1.0, 10, **none) for seed in range(2)),
        *(run("cuts", 1000, seed, 10.0, 100) for seed in range(2)),
        *(run("cuts", 10_000, seed, 100.0, 1000, **late) for seed in range(2)),
    ]
    records[8] = replace(records[8], **late, cpu_s=9e9)  # the last one of SMO
    return write_results(records, sized(SIZES), missing=[("n=10000", "SMO", 3)])


@pytest.fixture(scope="module")
def family(folder):
    (section,) = scaling_section(load_results(folder))
    ((_, _, figures, table),) = section.data["families"]
    return figures, table


def test_medians_and_ranges_are_over_the_runs_with_a_result(family):
    seconds, evaluations, test_errors, train_errors = (figure.drawing for figure in family[0])
    smo = seconds.data[seconds.data["solver"] == "SMO"]
    assert smo["n_runs"].tolist() == [3, 3, 2]
    assert smo["median"].tolist() == pytest.approx([1.1, 110.0, 10_500.0])
    assert smo["low"].tolist() == pytest.approx([1.0, 100.0, 10_000.0])
    assert smo["high"].tolist() == pytest.approx([1.2, 120.0, 11_000.0])
    assert evaluations.data["median"].max() == 1e6
    assert re.search(r"cuts: 1\.00\Ws at 100 to 10\.0\Ws at 1\.00k\.", seconds.description)
    # Only zeros cannot be on a logarithmic axis.
    assert test_errors is None
    assert "Dashed: zero." in train_errors.description


def test_slopes_leave_failed_runs_out_and_need_three_sizes(family):
    table = family[1]
    found = table.numbers.set_index(["solver", "measure"])
    smo = found.loc["SMO", "cpu_s"]
    expected = np.polyfit(np.log10(SIZES), np.log10([1.1, 110.0, 10_500.0]), 1)[0]
    assert smo["slope"] == pytest.approx(expected)
    assert smo["degrees_of_freedom"] == 1
    assert (smo["n_runs"], smo["left_out"], smo["n_sizes"]) == (8, 2, 3)
    for measure, slope in (
        ("evaluations", 1),
        ("n_iter", 1),
        ("cpu_s_per_iteration", expected - 1),
    ):
        assert found.loc["SMO", measure]["slope"] == pytest.approx(slope)
    cuts = found.loc["cuts", "cpu_s"]
    assert (cuts["n_sizes"], cuts["largest"], cuts["left_out"]) == (2, 1000, 2)
    few = table.rows[1][3]
    assert (few.value, few.absent) == ("2 sizes, 3 needed", True)
    row = {"slope": -0.001, "low": -0.25, "high": 0.25, "degrees_of_freedom": 5.0, "n_sizes": 7}
    cell = slope_cell(row)
    assert (cell.value, cell.range) == ("0.00", "\N{MINUS SIGN}0.25 to 0.25")
    assert "5" in cell.note


@pytest.mark.usefixtures("undrawn")
def test_a_page_has_the_section_only_with_a_family(folder, make, results_of):
    page = report(folder).read_text(encoding="utf-8")
    section = page[page.index('id="scaling"') :]
    section = section[: section.index("</section>")]
    assert section.count("<figure ") == section.count("<svg") + 1 == 4
    for words in (
        *(">1.00<", "1.00 to 1.00", "8 / 10", "4 / 6"),
        "Runs without a result are in no median and no slope.",
    ):
        assert words in section, words
    slopes_of = dict.fromkeys(re.findall(r"Slope of ([\w ]+)", section))
    assert list(slopes_of) == [
        *("CPU seconds", "CPU seconds per iteration", "iterations", "kernel evaluations")
    ]
    assert 'href="#scaling"' in page
    two = [make.finished(f"n={n}", "SMO", 0, make.trace([n], [0.1]), n_train=n) for n in SIZES[:2]]
    assert list(scaling_section(results_of(two, sized(SIZES[:2])))) == []
