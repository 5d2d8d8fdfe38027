"""What a report says of tuning."""

import json

import pytest

from marginbench.reports.command import write_report
from marginbench.reports.described import kernel_words
from marginbench.reports.results import load_results
from marginbench.reports.views.grid import grid_section
from marginbench.reports.views.svm import tuning

TASK = {"kernel": {"name": "rbf", "gamma": 0.02}, "tune": {"C": [1.0, 10.0]}, "reference": False}


def tuned(make, solver, seed, C, evals=4000, last="completed"):
    """A record of a tuned run."""
    trials = [
        {"params": {"C": value}, "round": 0, "error": 0.1, "ended": ended}
        for value, ended in ((1.0, "completed"), (10.0, last))
    ]
    return make.finished(
        "a", solver, seed, make.trace([1e3, 1e4], [0.3, 0.1]),
        C=C, params=json.dumps({"C": C, "gamma": 0.02}), tuning=json.dumps(trials),
        tuning_wall_s=2.0 + seed, tuning_evals=evals, suboptimality=None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(make, write_results):
    records = [
        tuned(make, "SMO", 0, 1.0),
        tuned(make, "SMO", 1, 10.0),
        tuned(make, "SMO", 2, 10.0, last="not tried"),
        tuned(make, "LIBSVM", 0, 1.0, evals=None),
    ]
    return write_results(
        records, [make.task("a", **TASK)], [make.solver("SMO"), make.solver("LIBSVM")]
    )


def test_the_sentences_say_what_was_chosen_and_what_it_cost(folder):
    results = load_results(folder)
    task = results.study.tasks[0]
    sentences = tuning(results.study, task, results.runs)
    assert [text.replace("\N{NARROW NO-BREAK SPACE}", " ") for text in sentences] == [
        "Tuned by grid search with 25 % of the training part held out: "
        "SMO chose C = 10 (2 runs) or C = 1 (1 run), at 3.00 s and 4.00k evaluations a run "
        "(the tuning of 1 run ran out of its budget); "
        "LIBSVM chose C = 1 (1 run), at 2.00 s a run.",
        "Each solver has its own problem, so objectives are not compared and there is no "
        "reference optimum.",
    ]
    folds = results.study.model_copy(update={"tuning": {"method": "halving", "folds": 3}})
    (first, *_) = tuning(folds, task, results.runs)
    assert first.startswith(
        "Tuned by successive halving with 3-fold cross-validation on the training part: SMO chose"
    )
    assert "C tuned over 1, 10" in kernel_words(task)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.slow
def test_page_and_terminal_say_what_was_chosen(folder, make, capsys):
    text = " ".join(make.page(write_report(folder, "c")).text.split())
    printed = " ".join(capsys.readouterr().out.split())
    results = load_results(folder)
    said = tuning(results.study, results.study.tasks[0], results.runs)
    for shown in (text, printed):
        for sentence in said:
            assert " ".join(sentence.split()) in shown
    assert "C tuned over 1, 10" in text


def trial(params, error, number=0, ended="completed"):
    return {"params": params, "round": number, "error": error, "ended": ended}


def test_solvers_with_other_parameters_have_a_grid_of_their_own(make, results_of):
    trials = [trial({"n_neighbors": n}, n / 100) for n in (9, 1)]
    trace = make.trace([1e3], [0.1])
    records = [
        tuned(make, "SMO", 0, 1.0),
        make.finished("a", "Neighbours", 0, trace, tuning=json.dumps(trials), suboptimality=None),
    ]
    solvers = [make.solver("SMO"), make.solver("Neighbours")]
    (section,) = grid_section(results_of(records, [make.task("a", **TASK)], solvers))
    tables = {
        table.name: [[cell.number or cell.value for cell in row] for row in table.rows]
        for table in section.data["tables"]
    }
    assert tables["grid-a"] == [["SMO", 0.1, 0.1]]
    assert tables["grid-a-2"] == [["Neighbours", 0.01, 0.09]]


def test_parameters_may_be_of_any_type(make, results_of):
    values = ("last", "voted", True, 10, [1, 2])
    trials = [
        trial({"output": value, "C": C}, (n + 1) / 10)
        for n, value in enumerate(values)
        for C in (1.0, 2.0)
    ]
    trace = make.trace([1e3], [0.1])
    record = make.finished("a", "SMO", 0, trace, tuning=json.dumps(trials), suboptimality=None)
    results = results_of([record], [make.task("a", **TASK)], [make.solver("SMO")])
    (section,) = grid_section(results)
    (table,) = section.data["tables"]
    assert [heading.title for heading in table.headings][1:] == [
        f"output = {text}" for text in ("last", "voted", "true", "10", "[1, 2]")
    ]
    assert [[cell.number for cell in row][1:] for row in table.rows] == [
        [0.1, 0.2, 0.3, 0.4, 0.5]
    ] * 2
    assert [cell.value for cell in section.data["best"].rows[0]][2:4] == ["last", "1"]


@pytest.mark.parametrize(
    ("second", "best"),
    [
        # What was dropped after the first round had an easier one; of equals the first.
        ([(4.0, 0.3), (2.0, 0.3)], 2.0),
        ([(4.0, 0.2), (2.0, 0.3)], 4.0),
        # A round that was not completed decides nothing.
        ([(4.0, 0.2), (2.0, None)], 1.0),
    ],
)
def test_the_best_point_of_halving_is_one_that_it_left(make, results_of, second, best):
    trials = [trial({"C": C}, error) for C, error in ((1.0, 0.1), (2.0, 0.2), (4.0, 0.2))]
    trials += [
        trial({"C": C}, error, 1, "not tried" if error is None else "completed")
        for C, error in second
    ]
    trace = make.trace([1e3], [0.1])
    record = make.finished("a", "SMO", 0, trace, tuning=json.dumps(trials), suboptimality=None)
    (section,) = grid_section(results_of([record], [make.task("a", **TASK)], [make.solver("SMO")]))
    (row,) = section.data["best"].rows
    assert row[2].number == best


def test_a_point_that_lacks_a_fold_is_not_the_best(make, results_of):
    tasks = [make.task(name, C=C, folds=2) for name, C in (("a", 1.0), ("b", 2.0), ("c", 3.0))]
    trace = make.trace([1e3], [0.1])
    records = [
        make.finished("a", "SMO", 0, trace, test_error=0.1),
        make.record("a", "SMO", 1, status="crashed"),
        *(make.finished("b", "SMO", seed, trace, test_error=0.3) for seed in (0, 1)),
        *(make.finished("c", "SMO", seed, trace, test_error=0.4) for seed in (0, 1)),
    ]
    (section,) = grid_section(results_of(records, tasks, [make.solver("SMO")]))
    (row,) = section.data["best"].rows
    assert row[2].number == 2.0


def test_a_study_that_tunes_nothing_says_nothing(make, results_of):
    record = make.finished("a", "SMO", 0, make.trace([1e3], [0.1]))
    results = results_of([record])
    assert tuning(results.study, results.study.tasks[0], results.runs) == []
