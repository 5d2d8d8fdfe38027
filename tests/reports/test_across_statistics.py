"""What is said of all tasks together: statistics by hand or another route, and the page."""

import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from marginbench.reports import analysis
from marginbench.reports.drawing.canvas import PAGE, solver_styles
from marginbench.reports.drawing.figures import draw_ranks
from marginbench.reports.formatting import TIMES
from marginbench.reports.measures import OBJECTIVE_TARGET
from marginbench.reports.statistics import errors as pareto, ranks, targets
from marginbench.reports.statistics.targets import expected_running_time
from marginbench.reports.views import across

NEVER = math.inf


def problems(costs):
    """A problem for each cost of {(task, solver): costs of its runs}."""
    rows = [
        (task, solver, seed, 0, float(cost))
        for (task, solver), runs in costs.items()
        for seed, cost in enumerate(runs)
    ]
    found = pd.DataFrame(rows, columns=["task", "solver", "seed", "target", "value"])
    return found.assign(upper_bound=False)


def own_dataset(frame):
    return {task: task for task in frame["task"]}


def curve(steps, solver):
    mine = steps[steps["solver"] == solver]
    return list(zip(mine["cost"], mine["share"], strict=True))


@pytest.fixture(scope="module")
def results(make, results_of):
    """On "a" all sorts of runs; on "b" one solver was skipped and a run has no record."""

    def run(task, solver, seed, primals, **fields):
        trace = make.trace([100, 400, 1600], [0.3] * 3, primals)
        return make.finished(task, solver, seed, trace, n_train=20, **fields)

    near, far = [200.0, 100.5, 100.5], [200.0, 150.0, 130.0]
    killed = make.trace([100, 900], [0.3] * 2, [200.0, 150.0])
    records = [
        *(run("a", "Good", seed, near) for seed in range(2)),
        run("a", "Good", 2, far, status="budget"),
        run("a", "Bad", 0, far),
        make.record("a", "Bad", 1, status="timeout", trace=killed, n_train=20),
        make.finished("a", "Peer", 0, make.trace([None], [0.3], [100.5], [2.0])),
        run("b", "Good", 0, near),
        make.record("b", "Bad", 0, status="skipped", reason="no", n_train=20),
        run("b", "Flaky", 0, near),
        make.record("b", "Flaky", 1, status="timeout", trace=killed, n_train=20),
        make.record("b", "Flaky", 2, status="crashed", n_train=20),
    ]
    return results_of(records, missing=[("b", "Good", 1)])


def asked(results, cost="evaluations"):
    spent = analysis.spent(results, OBJECTIVE_TARGET, cost)
    return targets.problems(spent.assign(target=0), results.runs, cost)


def test_failed_runs_are_unsolved_and_untried_or_uncounted_ones_are_no_problems(results):
    found = asked(results)
    values = {key: sorted(group) for key, group in found.groupby(["task", "solver"])["value"]}
    assert values == {
        ("a", "Good"): [400.0, 400.0, NEVER],
        ("a", "Bad"): [NEVER, NEVER],
        ("b", "Good"): [400.0],
        ("b", "Flaky"): [400.0, NEVER, NEVER],
    }
    assert set(asked(results, "cpu_s")["solver"]) == {"Good", "Bad", "Flaky", "Peer"}
    squares = targets.in_squares(found, results.runs)
    assert squares["value"].min() == 400 / 20**2


def test_profiles_and_shares_weigh_tasks_alike_whatever_their_seeds():
    found = problems({("a", "A"): [10], ("b", "A"): [10, 20, NEVER], ("a", "B"): [NEVER]})
    steps = targets.data_profile(found)
    assert curve(steps, "A") == [(10, pytest.approx(4 / 6)), (20, pytest.approx(5 / 6))]
    assert curve(steps, "B") == []
    found = problems({("a", "A"): [1, 2], ("b", "A"): [NEVER], ("a", "B"): [NEVER]})
    alone = targets.solved(found, own_dataset(found)).set_index("solver")
    assert tuple(alone.loc["A", ["n", "n_solved", "n_tasks", "share"]]) == (3, 2, 2, 0.5)
    # Both datasets are drawn, or twice the same.
    assert tuple(alone.loc["A", ["low", "high"]]) == (0.0, 1.0)
    assert tuple(alone.loc["B", ["share", "low", "high"]]) == (0.0, 0.0, 0.0)
    together = targets.solved(found, {"a": "same", "b": "same"}).set_index("solver")
    assert tuple(together.loc["A", ["low", "high"]]) == (0.5, 0.5)


def test_a_performance_profile_is_against_the_best_solver_without_a_failure():
    costs = {("a", "A"): [10], ("a", "B"): [20], ("a", "C"): [1]}
    costs |= {("b", "A"): [NEVER], ("b", "B"): [5], ("c", "A"): [NEVER], ("c", "B"): [NEVER]}
    costs |= {("d", "A"): [0.0], ("d", "B"): [7.0]}
    ratios = targets.performance_ratios(targets.medians(problems(costs)), {("a", "C")})
    steps = targets.performance_profile(ratios)
    assert curve(steps, "A") == [(1.0, 0.5)]  # on "a", and on "d" at no cost
    assert curve(steps, "B") == [(1.0, 0.25), (2.0, 0.5)]
    assert curve(steps, "C") == []


def test_wins_count_pairs_of_runs_and_ties_half():
    costs = {("a", "A"): [10], ("a", "B"): [5, 10, 20, 40], ("b", "A"): [NEVER]}
    costs |= {("b", "B"): [NEVER], ("c", "A"): [1], ("a", "C"): [NEVER], ("b", "C"): [NEVER]}
    found = problems(costs)
    table = ranks.wins(found, own_dataset(found)).set_index(["solver", "other"])
    # On "a" (0 + 1/2 + 1 + 1) / 4, on "b" neither gets there; on "c" A is alone.
    row, swapped = table.loc[("A", "B")], table.loc[("B", "A")]
    assert (row["share"], row["n_tasks"]) == ((2.5 / 4 + 0.5) / 2, 2)
    assert swapped["share"] == 1 - row["share"]
    assert row["low"] == pytest.approx(1 - swapped["high"], abs=1e-12)
    assert table.loc[("A", "C"), "share"] == 0.75
    assert not table["separable"].any()
    # 10 or less is less than 20; 30 or less may be.
    found = problems({("a", "Bound"): [10, 30], ("a", "Exact"): [20]})
    found["upper_bound"] = found["solver"] == "Bound"
    assert ranks.wins(found, {"a": "a"})["share"].tolist() == [0.75, 0.25]


def test_the_interval_of_wins_is_that_of_drawn_datasets_or_runs():
    costs = [1, 1, 1, 1, 3, 3]
    tasks = {(f"t{place}", "A"): [cost] for place, cost in enumerate(costs)}
    tasks |= {(f"t{place}", "B"): [2] for place in range(6)}
    drawn = binom(6, 4 / 6)
    for given in (tasks, {("t", "A"): costs, ("t", "B"): [2]}):
        found = problems(given)
        row = ranks.wins(found, own_dataset(found)).iloc[0]
        assert row["share"] == pytest.approx(4 / 6)
        assert row["low"] == pytest.approx(drawn.ppf(0.025) / 6)
        assert row["high"] == pytest.approx(drawn.ppf(0.975) / 6)


@pytest.mark.parametrize(("n", "separable"), [(5, False), (6, True)])
def test_wins_everywhere_are_beyond_chance_on_six_datasets_only(n, separable):
    costs = {(f"t{t}", solver): [cost] for t in range(n) for solver, cost in (("A", 1), ("B", 2))}
    found = problems(costs)
    assert ranks.wins(found, own_dataset(found))["separable"].tolist() == [separable] * 2
    # Tasks of one dataset are one piece of evidence.
    assert not ranks.wins(found, dict.fromkeys(own_dataset(found), "same"))["separable"].any()


def wide(rows):
    """The logarithmic costs of solvers A, B, ... on datasets d0, d1, ..."""
    medians = problems(
        {(f"d{d}", "ABCDEF"[s]): [cost] for d, row in enumerate(rows) for s, cost in enumerate(row)}
    )
    return ranks.blocks(targets.medians(medians), own_dataset(medians))


def test_tasks_that_share_a_dataset_are_one_block():
    costs = {("a", "A"): [1], ("b", "A"): [100], ("c", "A"): [1], ("a", "B"): [3]}
    costs |= {("b", "B"): [NEVER], ("c", "B"): [1], ("a", "Rare"): [1]}
    medians = targets.medians(problems(costs))
    blocks = ranks.blocks(medians, {"a": "x", "b": "x", "c": "y"})
    assert list(blocks.columns) == ["A", "B"]  # "Rare" has costs on a third of the tasks
    assert math.exp(blocks.loc["x", "A"]) == pytest.approx(10)  # the geometric mean
    found = ranks.average_ranks(blocks)
    assert found["rank"].tolist() == [1.25, 1.75]  # first on "x", equal on "y"
    assert found[["low", "high"]].to_numpy().tolist() == [[1.0, 1.5], [1.5, 2.0]]
    # A task that nobody solves takes nothing from the others of its dataset.
    costs = {("a", "A"): [10], ("a", "B"): [1000], ("b", "A"): [NEVER], ("b", "B"): [NEVER]}
    blocks = ranks.blocks(targets.medians(problems(costs)), {"a": "x", "b": "x"})
    assert blocks.loc["x", "A"] < blocks.loc["x", "B"]
    # Solvers that never get there are all equally last.
    found = ranks.average_ranks(wide([[1, NEVER, NEVER], [5, NEVER, NEVER]])).set_index("solver")
    assert found["rank"].to_dict() == {"A": 1.0, "B": 2.5, "C": 2.5}


def test_friedman_and_pairs_are_tested_only_with_power():
    # Of perfect order chi^2 is n (k - 1), and with two degrees of freedom p = exp(-chi^2 / 2).
    assert ranks.friedman(wide([[1, 2, 3]] * 5)) == pytest.approx((10, math.exp(-5)))
    for nothing in (wide([[1, 2, 3]] * 4), wide([[1, 2]] * 5), wide([[NEVER] * 3] * 6)):
        assert ranks.friedman(nothing) is None
    enough = ranks.needed_datasets(3)
    assert 3 * 2 / 2**enough < 0.05 <= 3 * 2 / 2 ** (enough - 1)
    assert ranks.compared_pairs(wide([[1, 2, 3]] * (enough - 1))).empty
    assert not ranks.compared_pairs(wide([[1, 2, 3]] * enough)).empty


def test_pairs_have_exact_probabilities_holms_correction_and_the_size_of_the_effect():
    # How many times as dear B is as A, and C as B; C costs more than A everywhere.
    than_a = np.array([1.2, 1 / 1.3, 1.5, 2, 2.5, 3, 3.5, 4])
    than_b = np.array([NEVER, NEVER, NEVER, 1.1, 1.2, 1 / 1.3, 1.5, 1.6])
    table = ranks.compared_pairs(wide(np.column_stack([than_a**0, than_a, than_a * than_b])))
    table = table.set_index(["solver", "other"])
    # Against the rest are none, the second and the third smallest difference. Of the 2^8 choices
    # of signs so small a sum of ranks, or so large a one, have twice 1 ({}), 3 ({}, {1}, {2}) and
    # 5 (also {3} and {1, 2}); Holm takes 3, 2 and 1 times that, and none less than the one before.
    assert table["p"].to_dict() == pytest.approx(
        {("A", "C"): 3 * 2 / 2**8, ("A", "B"): 2 * 6 / 2**8, ("B", "C"): 2 * 6 / 2**8}
    )
    assert table.loc[("A", "C"), "biserial"] == 1.0
    row = table.loc[("A", "B")]
    assert row["biserial"] == pytest.approx((36 - 2 * 2) / 36)
    assert row["ratio"] == pytest.approx(1 / math.sqrt(2 * 2.5))
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    # Ranks 1, 2.5, 2.5 and 4: in favour 2.5 + 4, against 1 + 2.5.
    assert ranks.rank_biserial(np.array([-1.0, 2.0, -2.0, 5.0])) == pytest.approx(3 / 10)
    assert ranks.rank_biserial(np.zeros(3)) == 0


def dominated(rows):
    """By whom solvers are, of runs (solver, test error, seconds, support vectors, if ok)."""
    columns = ["solver", "test_error", "cpu_s", "n_support", "ok"]
    runs = pd.DataFrame([(*row, True)[:5] for row in rows], columns=columns)
    runs = runs.assign(task="a", n_test=200, fingerprint="f", mistakes="")
    runs["status"] = np.where(runs["ok"], "converged", "crashed")
    runs["seed"] = runs.groupby("solver").cumcount()
    table = pareto.fronts(runs, ("test_error", "cpu_s", "n_support"))
    assert (table["front"] == (table["dominated_by"] == "")).all()
    return dict(zip(table["solver"], table["dominated_by"], strict=True))


def test_to_dominate_takes_a_difference_beyond_doubt_in_all_that_is_measured():
    fast = [("Fast", 0.1, 1.0, 50), ("Fast", 0.1, 2.0, 50)]
    overlapping = [("Near", 0.1, 1.9, 50), ("Near", 0.1, 3.0, 50)]
    slow = [("Slow", 0.1, 2.5, 50), ("Slow", 0.1, 3.0, 50)]
    assert dominated([*fast, *overlapping, *slow]) == {"Fast": "", "Near": "", "Slow": "Fast"}
    assert dominated([("Small", 0.1, 9.0, 10), ("Fast", 0.1, 1.0, 50)]) == {"Small": "", "Fast": ""}
    # Errors only where the test points tell them apart.
    rows = [("Good", 0.10, 1.0, 50), ("Near", 0.11, 1.0, 50), ("Poor", 0.40, 1.0, 50)]
    assert dominated(rows) == {"Good": "", "Near": "", "Poor": "Good, Near"}
    # Solvers that failed or hide their model are not compared.
    rows = [("Whole", 0.1, 5.0, 50), ("Failed", 0.1, 1.0, 50), ("Failed", 0.1, 1.0, 50, False)]
    assert dominated([*rows, ("Hidden", 0.1, 1.0, math.nan)]) == {"Whole": ""}


def test_expected_running_time_counts_runs_without_success(results):
    traces = analysis.traces(results)
    found = expected_running_time(asked(results), results.runs, traces, "evaluations")
    found = found.set_index(["task", "solver"])
    good = found.loc[("a", "Good")]
    # Two runs stop counting at 400, one has spent its 1600 for nothing.
    assert good["ert"] == (400 + 400 + 1600) / 2
    assert (good["n"], good["n_reached"], good["censored"]) == (3, 2, "1 budget")
    assert not good["lower_bound"]
    # Resamples of which all runs reach it, and of which none does (1 in 27).
    assert (good["low"], good["high"]) == (pytest.approx(400), NEVER)
    bad = found.loc[("a", "Bad")]
    assert (bad["ert"], bad["censored"]) == (NEVER, "1 converged, 1 timeout")
    assert bad["lower_bound"]
    alone = found.loc[("b", "Good")]
    assert alone["ert"] == 400
    assert math.isnan(alone["low"])
    # What a killed run spent counts as far as it is known.
    flaky = found.loc[("b", "Flaky")]
    assert (flaky["ert"], flaky["lower_bound"]) == (400 + 900, True)
    assert flaky["censored"] == "1 crashed, 1 timeout"


def run(make, task, solver, cost, **fields):
    """Within 1 % of the optimum, and a point of its error, at a cost; each task has its dataset."""
    trace = make.trace([10, cost, 9000], [0.3, 0.012, 0.012], [200.0, 100.5, 100.5])
    return make.finished(task, solver, 0, trace, n_train=100, dataset=task, **fields)


def test_a_single_task_or_solver_or_no_reference_has_no_section(make, results_of):
    one_task = [run(make, "a", "A", 50), run(make, "a", "B", 70)]
    one_solver = [run(make, "a", "A", 50), run(make, "b", "A", 70)]
    only_one_ran = [*one_solver, make.record("a", "B", 0, status="skipped", reason="no")]
    no_reference = [
        run(make, task, name, 50, **make.no_reference) for task in "ab" for name in "AB"
    ]
    for records in (one_task, one_solver, only_one_ran, no_reference):
        assert not list(across.across_section(results_of(records)))
    assert list(across.across_section(results_of([*one_task, run(make, "b", "A", 70)])))


def test_an_expected_running_time_is_marked_as_the_bound_that_it_is(make, results_of):
    at_once = make.trace([50, 9000], [0.012] * 2, [100.5] * 2)
    fields = {"status": "timeout", "trace": make.trace([20], [0.3])}
    records = [
        *(run(make, "a", name, 50) for name in ("Exact", "Killed")),
        *(make.finished("a", name, 0, at_once) for name in ("Late", "Both")),
        *(make.record("a", name, 1, **fields) for name in ("Killed", "Both")),
    ]
    results = results_of(records)
    table = across.running_time_table(results, across.questions(results)[0])
    assert {row[0].value: row[1].value.replace("\u202f", " ") for row in table.rows} == {
        "Exact": "50", "Killed": "≥ 70", "Late": "≤ 50", "Both": "~ 70",
    }  # fmt: skip


@pytest.mark.slow
def test_enough_datasets_give_bold_wins_and_tested_pairs(make, results_of):
    costs = {"A": 20, "B": 60, "C": 200}
    results = results_of(
        [run(make, f"t{t}", name, cost * (t + 1)) for t in range(7) for name, cost in costs.items()]
    )
    question = across.questions(results)[0]
    wins = across.wins_table(results, question)
    marked = {
        (row[0].value, place) for row in wins.rows for place, cell in enumerate(row) if cell.best
    }
    assert marked == {("A", 2), ("A", 3), ("B", 3)}
    # Seven datasets are the fewest for three pairs: 3 * 2 / 2^7 is 0.047.
    pairs = across.pairs_table(results, question)
    assert [[cell.value for cell in row[:4]] for row in pairs.rows] == [
        ["A against B", "0.047", "1.00", f"0.333{TIMES}"],
        ["A against C", "0.047", "1.00", f"0.1{TIMES}"],
        ["B against C", "0.047", "1.00", f"0.3{TIMES}"],
    ]
    assert all(row[1].best for row in pairs.rows)
    sentence = " ".join(re.sub(r"<[^>]*>", " ", across.rank_sentence(results, question)).split())
    assert sentence.endswith("Friedman χ² = 14, p < 0.001; the tests of pairs are below.")
    (section,) = across.across_section(results)
    drawn = section.data["ranked"][0].drawing
    assert drawn.data["rank"].to_list() == [1.0, 2.0, 3.0]
    assert drawn.description.endswith("All pairs are told apart.")
    svg = drawn.svg("ranks")
    assert all(name in svg for name in (">A<", ">1.00<", ">B<", ">2.00<", ">C<", ">3.00<"))


def test_bars_join_solvers_of_which_no_pair_is_told_apart():
    names, apart = "ABCD", [("A", "C"), ("A", "D")]
    pairs = pd.DataFrame(itertools.combinations(names, 2), columns=["solver", "other"])
    pairs["p"] = [0.01 if pair in apart else 0.5 for pair in itertools.combinations(names, 2)]
    ranks = pd.DataFrame({"solver": list(names), "rank": [1.0, 2.0, 3.0, 4.0]})
    drawn = draw_ranks(ranks, pairs, solver_styles(list(names)), "t")
    assert "Not told apart: A and B, B and C, B and D, C and D." in drawn.description
    bars = [line for line in drawn.on(PAGE).axes[0].lines if line.get_linewidth() == 2.5]
    spans = [tuple(line.get_ydata()) for line in bars]
    assert spans == [pytest.approx((-0.2, 1.2)), pytest.approx((0.8, 3.2))]


def test_profiles_leave_out_times_that_do_not_compare_and_tell_costs_that_are_bounds(
    make, results_of
):
    shared, costs = {"jobs": 2, "wall_s": 1.0, "cpu_s": 0.5}, {"A": 100, "B": 400, "Late": 100}
    records = [run(make, task, name, costs[name], **shared) for task in "ab" for name in costs]
    for record in records:
        if record.solver == "Late":  # its first checkpoint is at the targets
            record.trace = record.trace[1:]
    failed = make.record("c", "C", 0, status="crashed", n_train=100, dataset="c")
    results = results_of([*records, failed])
    assert across.comparable_costs(results) == ["evaluations"]
    (section,) = across.across_section(results)
    data = section.data
    assert [words[:18] for words, *_ in data["asked"]] == ["Kernel evaluations"] * 2
    panels = data["data_profiles"]
    names = [f"across-data-{target}-evaluations" for target in ("objective", "error")]
    assert [panel.name for panel in panels] == names
    assert data["front_cost"] == "kernel evaluations"
    # Within 10 and 1 % of the optimum; 0.1 % is not reached.
    assert panels[0].drawing.data.values.tolist() == [
        [name, cost / 100**2, pytest.approx(2 / 3)] for name, cost in costs.items()
    ]
    assert "C: 0 %." in panels[0].drawing.description
    assert panels[0].note.startswith("Solved: A 4 of 6, B 4 of 6, Late 4 of 6, C 0 of 3.")
    told = "Drawn at an upper bound, the cost of the first checkpoint: Late"
    assert f"{told} 4." in panels[0].note
    assert f"{told} 2." in data["performance_profiles"][0].note
    assert data["rank_sentences"][0].endswith("2 medians only known as a bound.")
    cells = {row[0].value: row[1].value for row in data["asked"][0][3].rows}
    assert (cells["A"], cells["Late"]) == ("100", "≤\N{NARROW NO-BREAK SPACE}100")
