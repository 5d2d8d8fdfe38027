"""What the page says of all tasks together."""

import itertools
import re

import pandas as pd
import pytest

from marginbench.reports.drawing.canvas import PAGE, solver_styles
from marginbench.reports.drawing.figures import draw_ranks
from marginbench.reports.formatting import TIMES
from marginbench.reports.views import across


def run(make, task, solver, cost, **fields):
    trace = make.trace([10, cost, 9000], [0.3, 0.012, 0.012], [200.0, 100.5, 100.5])
    return make.finished(task, solver, fields.pop("seed", 0), trace, n_train=100, **fields)


@pytest.fixture
def study(make, results_of):
    """Results of records; each task has a dataset of its own."""

    def build(records):
        tasks = dict.fromkeys(record.task for record in records)
        return results_of(records, [make.task(task, dataset=task) for task in tasks])

    return build


def visible(html):
    return re.sub(r"[ \n\xa0\u202f]+", " ", re.sub(r"<[^>]*>", " ", html))


def test_the_section_names_its_denominators_and_its_limits(realistic_page):
    text = realistic_page.read_text(encoding="utf-8")
    (section,) = re.findall(r'(?s)<section aria-labelledby="across">.*?</section>', text)
    words = visible(section)
    assert "The study has 2 tasks on 2 datasets." in words
    assert "with 2 datasets they are too narrow" in words
    assert "only pairs can be compared" in words  # Gould and Scott on performance profiles
    # SDCA crashed once of six runs, which counts; LIBSVM was skipped on one task.
    assert re.search(r"SDCA \d+ of 18[,.]", words)
    assert re.search(r"LIBSVM \d+ of 9 on 1 of 2 tasks", words)
    assert re.search(r"Not counted: [^.]*LIBSVM[^.]*; the tables say why.", words)
    assert "insufficient power: a pair of" in words
    assert "<strong>1" not in section  # nothing is bold


def test_a_single_task_or_solver_or_no_reference_has_no_section(make, study):
    one_task = [run(make, "a", "A", 50), run(make, "a", "B", 70)]
    one_solver = [run(make, "a", "A", 50), run(make, "b", "A", 70)]
    only_one_ran = [*one_solver, make.record("a", "B", 0, status="skipped", reason="no")]
    unknown = dict.fromkeys(("reference_primal", "reference_gap", "reference_test_error"))
    unknown |= {"suboptimality": None, "reference_hash": ""}
    no_reference = [run(make, task, name, 50, **unknown) for task in "ab" for name in "AB"]
    for records in (one_task, one_solver, only_one_ran, no_reference):
        assert not list(across.across_section(study(records)))
    assert list(across.across_section(study([*one_task, run(make, "b", "A", 70)])))


@pytest.mark.slow
def test_enough_datasets_give_bold_wins_and_tested_pairs(make, study):
    costs = {"A": 20, "B": 60, "C": 200}
    results = study(
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
    sentence = visible(across.rank_sentence(results, question))
    assert sentence.endswith("Friedman χ² = 14, p < 0.001; the tests of pairs are below.")
    (section,) = across.across_section(results)
    drawn = section.data["ranked"][0].drawing
    assert drawn.data["rank"].to_list() == [1.0, 2.0, 3.0]
    assert drawn.description.endswith("All pairs are told apart.")
    svg = drawn.svg("ranks")
    assert all(name in svg for name in (">A (1.00)<", ">B (2.00)<", ">C (3.00)<"))


def test_bars_join_solvers_of_which_no_pair_is_told_apart():
    names, apart = "ABCD", [("A", "C"), ("A", "D")]
    pairs = pd.DataFrame(itertools.combinations(names, 2), columns=["solver", "other"])
    pairs["p"] = [0.01 if pair in apart else 0.5 for pair in itertools.combinations(names, 2)]
    ranks = pd.DataFrame({"solver": list(names), "rank": [1.0, 2.0, 3.0, 4.0]})
    drawn = draw_ranks(ranks, pairs, solver_styles(list(names)), "t")
    assert "Not told apart: A and B, B and C, B and D, C and D." in drawn.description
    bars = [line for line in drawn.on(PAGE).axes[0].lines if line.get_linewidth() == 2.5]
    spans = [tuple(line.get_xdata()) for line in bars]
    assert spans == [pytest.approx((0.97, 2.03)), pytest.approx((1.97, 4.03))]


@pytest.mark.slow
def test_figures_draw_the_profiles_and_leave_out_times_that_do_not_compare(make, study):
    shared = {"jobs": 2, "wall_s": 1.0, "cpu_s": 0.5}
    costs = {"A": 100, "B": 400}
    records = [run(make, task, name, costs[name], **shared) for task in "ab" for name in costs]
    results = study([*records, make.record("a", "C", 0, status="crashed", n_train=100)])
    assert across.comparable_costs(results) == ["evaluations"]
    (section,) = across.across_section(results)
    data = section.data
    assert [words[:18] for words, *_ in data["asked"]] == ["Kernel evaluations"] * 2
    panels = data["data_profiles"]
    names = [f"across-data-{target}-evaluations" for target in ("objective", "error")]
    assert [panel.name for panel in panels] == names
    assert data["front_cost"] == "kernel evaluations"
    expected = pd.DataFrame({"solver": ["A", "B"], "cost": [0.01, 0.04], "share": [2 / 3, 2 / 3]})
    pd.testing.assert_frame_equal(panels[0].drawing.data, expected)  # 0.1 % is not reached
    assert "C: none." in panels[0].drawing.description
    assert panels[0].note.startswith("Solved: A 4 of 6, B 4 of 6, C 0 of 3 on 1 of 2 tasks.")


def test_costs_that_are_bounds_are_told(make, study):
    records = [run(make, task, name, 50) for task in "ab" for name in ("Exact", "Late")]
    for record in records:
        if record.solver == "Late":  # its first checkpoint is at the targets
            record.trace = record.trace[1:]
    results = study(records)
    (section,) = across.across_section(results)
    data = section.data
    told = "Drawn at an upper bound, the cost of the first checkpoint: Late"
    # 10 and 1 % of the optimum; 0.1 % is not reached.
    assert f"{told} 4." in data["data_profiles"][0].note
    assert f"{told} 2." in data["performance_profiles"][0].note
    assert data["rank_sentences"][0].endswith("2 medians only known as a bound.")
    cells = {row[0].value: row[1].value for row in data["asked"][0][3].rows}
    assert cells == {"Exact": "50", "Late": "≤\N{NARROW NO-BREAK SPACE}50"}
