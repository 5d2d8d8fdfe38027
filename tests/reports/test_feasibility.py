"""The report of a study of feasibility methods: statistics by hand, and its own pages."""

import math
import shutil
from contextlib import closing
from dataclasses import replace

import pytest

from marginbench import report
from marginbench.harness.results.journal import Journal
from marginbench.reports import analysis
from marginbench.reports.analysis import solved
from marginbench.reports.command import write_report
from marginbench.reports.frames import of_task
from marginbench.reports.results import load_results
from marginbench.reports.views import feasibility
from marginbench.reports.views.feasibility import solved_figures

ITERATIONS = {"MPLFP": [200, 220, 240], "SPCT": [300, 210, 320], "PCT": [9000, None, None]}
LIMIT = {"status": "budget", "found": "budget", "wall_s": 60.0}


@pytest.fixture(scope="module")
def folder(make, write_results):
    """Three values of kappa; of the last the third instances have no record."""
    tasks = [make.cell(f"kappa = {kappa}", kappa=kappa) for kappa in (1.0, 2.0, 3.0)]
    tasks[0]["published"] = {"MPLFP": 1.3, "PCT": "TO"}
    records = [
        make.method_record(task["label"], method, seed, n or 10**6, **({} if n else LIMIT))
        for task in tasks
        for method, needed in ITERATIONS.items()
        for seed, n in enumerate(needed)
    ]
    written = write_results(records, tasks, source="A paper")
    make.rewrite(written, lambda r: None if (r.task, r.seed) == ("kappa = 3.0", 2) else r)
    return written


@pytest.fixture(scope="module")
def results(folder):
    return load_results(folder)


def needed(results, task, method, measure):
    table = of_task(solved(results).table, task, method).set_index("measure")
    return table.loc[measure]


def test_costs_are_those_of_the_solved_runs(results, make, results_of):
    ours = needed(results, "kappa = 1.0", "MPLFP", "n_iter")
    assert (ours["median"], ours["low"], ours["high"], ours["n"]) == (220, 200, 240, 3)
    assert needed(results, "kappa = 1.0", "MPLFP", "matvecs")["median"] == 440
    assert needed(results, "kappa = 1.0", "MPLFP", "cpu_s")["median"] == pytest.approx(0.22)
    theirs = needed(results, "kappa = 1.0", "PCT", "n_iter")
    assert (theirs["median"], theirs["n"]) == (9000, 1)
    assert ours["best"]
    assert not needed(results, "kappa = 1.0", "SPCT", "n_iter")["best"]
    # Iterations are one column though they are counted as well.
    titles = [measure.title for measure in solved(results).costs.values()]
    assert titles == ["Iterations", "Products", "CPU time", "Wall time"]
    # A run without a record is no success, and who solved one instance fast is not the best.
    assert not of_task(solved(results).table, "kappa = 3.0")["best"].any()
    assert analysis.failures(results)["n"].sum() == 3
    records = [make.method_record("t", "SPCT", seed, 300) for seed in range(2)]
    records.append(make.method_record("t", "PCT", 0, 10))
    records.append(make.method_record("t", "PCT", 1, 10**6, **LIMIT))
    results = results_of(records)
    assert needed(results, "t", "SPCT", "n_iter")["best"]
    assert needed(results, "t", "SPCT", "cpu_s")["best"]
    assert not needed(results, "t", "PCT", "n_iter")["best"]
    # Times of runs that shared the machine are not ranked, counts are.
    results = results_of([replace(record, jobs=2) for record in records])
    assert needed(results, "t", "SPCT", "n_iter")["best"]
    assert not needed(results, "t", "SPCT", "cpu_s")["best"]


@pytest.mark.usefixtures("undrawn")
def test_only_the_certificate_that_a_problem_has_solves_it_and_what_is_proven_has_a_column(
    make, write_results
):
    found = ("separable", "inseparable", "margin_at_most_tol", "margin_at_most_tol", "budget")
    records = [
        make.method_record(task, "VN", seed, found=word)
        for task in ("ldfp", "lap")
        for seed, word in enumerate(found)
    ]
    records.append(make.method_record("other", "VN", 0, 10**6, **LIMIT))
    folder = write_results(records, {"lap": {"generator": "lap"}})
    runs = solved(load_results(folder)).runs
    # A small margin does not solve a separable problem; else it is an epsilon-solution.
    assert runs[runs["solved"]].groupby("task")["found"].agg(set).to_dict() == {
        "ldfp": {"separable"}, "lap": {"inseparable", "margin_at_most_tol"},
    }  # fmt: skip
    page = make.page(report(folder)).text
    for words in ("Solved Proven inseparable", "VN 3 / 5 1 / 5", "no certificate in 1.00M"):
        assert words in page, words


def test_page_and_terminal_show_the_same_numbers(folder, make, capsys):
    page = make.page(write_report(folder, "marginbench run example"))
    printed = " ".join(capsys.readouterr().out.split())
    # Both checkpoints of 3 + 3 + 2 runs have a gap of 2 / t.
    bound = 2 / math.sqrt(2 * math.log(5000))
    said = f"/ sqrt(2 log n), over 16 recorded iterations: at most {bound:.3f}."
    for shown in (page.text, printed):
        for words in ("220", "1 / 3", "TO", f"MPLFP's residual times t {said}", "κ = 2", "missing"):
            assert words in shown, words
    for words in (
        *("ended with a certificate 19", "ended at a limit 5", "failed 0", "missing 3"),
        *("problems 3", "Published mean", "Published: A paper.", "Takes", "columns", "Instances"),
        *("or after 60 seconds of iterations", "MPLFP: 220 at 1 to 210 at 3."),
        # On the second instance SPCT needed 210 against 220; an unsolved instance is no lead.
        "Fewest iterations: MPLFP on 2 of 3 solved instances; SPCT on 1.",
    ):
        assert words in page.text, words
    captions = [word for word in page.words if word.endswith("against κ") and "Median" in word]
    assert captions == [
        "Median CPU seconds against κ",
        "Median iterations against κ",
        "Median products with A or its transpose against κ",
    ]


def test_the_limit_is_that_of_the_records(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)

    def limit():
        (section,) = feasibility.protocol_section(load_results(tmp_path))
        return section.data["limit"]

    assert limit() == "60"
    longer = next(record for record in Journal(tmp_path).records() if record.solver == "MPLFP")
    with closing(Journal(tmp_path)) as journal:
        journal.append_record(replace(longer, budget='{"timeout": 400.0}'))
    assert limit() == "60 to 400"


def test_images_are_shown_stage_by_stage(make, write_results):
    task = {
        "type": "images", "label": "digits", "dataset": "mnist", "n_train": 1000, "instances": 1,
        "gammas": [0.5, 2.0], "stages": [10, 100], "citation": "LeCun et al.",
    }  # fmt: skip
    errors = {10: 0.25, 100: 0.125}
    trace = [make.stage(t, wall_s=t / 20, test_error=error) for t, error in errors.items()]
    record = make.method_record(
        "digits", "MPKFP", 0, 100, trace=trace, gamma=2.0, train_error=0.0, test_error=0.125,
        reason="10 of 10 classes separated",
    )  # fmt: skip
    page = make.page(report(write_results([record], [task], [make.method("MPKFP")])))
    for words in (
        *("Error, 100", "Products", "25.00 %", "12.50 %", "LeCun et al."),
        "10 of 10 classes separated",
        "digits: test error against iterations for each class",
        "digits: test error against seconds, without the kernel matrix",
        "MPKFP: 25.00 % at 500 ms to 12.50 % at 5.00 s.",
    ):
        assert words in page.text, words


def test_instances_that_were_not_solved_count_and_skipped_ones_do_not(make, results_of):
    record = make.method_record
    records = [
        record("a", "VN", 0, 100),
        record("a", "VN", 1, 300),
        record("b", "VN", 0, 100, status="budget", found="budget"),
        record("a", "PCT", 0, 50),
        record("a", "PCT", 1, None, status="timeout"),
        record("b", "PCT", 0, None, status="skipped"),
        record("c", "VN", 0, 30),
        record("c", "PCT", 0, 30),
    ]
    results = results_of(records)
    assert [finding.sentence for finding in feasibility.findings(results)] == [
        "Instances solved: VN (3 of 4); PCT (2 of 3).",
        "Fewest iterations: VN on 2 of 3 solved instances; PCT on 2; ties count for each.",
    ]
    (iterations, products), *_ = solved_figures(results, "")
    # VN: two instances share the weight of "a"; PCT: one of two there, and "b" is none of its.
    assert iterations.drawing.data.values.tolist() == [
        *(["VN", 30, pytest.approx(1 / 3)], ["VN", 100, pytest.approx(1 / 2)]),
        *(["VN", 300, pytest.approx(2 / 3)], ["PCT", 30, 0.5], ["PCT", 50, 0.75]),
    ]
    assert products.drawing.data["cost"].to_list() == [60.0, 200.0, 600.0, 60.0, 100.0]
    assert iterations.note == "Solved: VN 3 of 4, PCT 2 of 3."
    (alone, _), _ = solved_figures(results_of([records[0]]), "")
    assert alone.drawing.data["share"].tolist() == [1.0]
