"""What a report says of tuning."""

import json

import pytest

from marginbench.reports.command import write_report
from marginbench.reports.results import load_results
from marginbench.reports.views.grid import grid_section
from marginbench.reports.views.svm import tuning

TASK = {"kernel": {"name": "rbf", "gamma": 0.02}, "tune": {"C": [1.0, 10.0]}, "reference": False}


def trial(params, error, number=0, ended="completed"):
    return {"params": params, "round": number, "error": error, "ended": ended}


def tuned(make, solver, seed, C, evals=4000, last="completed"):
    """A record of a tuned run."""
    trials = [trial({"C": 1.0}, 0.1), trial({"C": 10.0}, 0.1, ended=last)]
    return make.finished(
        "a", solver, seed, make.trace([1e3, 1e4], [0.3, 0.1]),
        C=C, params=json.dumps({"C": C, "gamma": 0.02}), tuning=json.dumps(trials),
        tuning_wall_s=2.0 + seed, tuning_evals=evals, suboptimality=None,
    )  # fmt: skip


@pytest.mark.usefixtures("undrawn")
def test_page_and_terminal_say_what_was_chosen_and_what_it_cost(make, write_results, capsys):
    records = [
        tuned(make, "SMO", 0, 1.0),
        tuned(make, "SMO", 1, 10.0),
        tuned(make, "SMO", 2, 10.0, last="not tried"),
        tuned(make, "LIBSVM", 0, 1.0, evals=None),
    ]
    folder = write_results(records, {"a": TASK})
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
    text = " ".join(make.page(write_report(folder, "c")).text.split())
    for shown in (text, " ".join(capsys.readouterr().out.split())):
        assert all(" ".join(sentence.split()) in shown for sentence in sentences)
    assert "C tuned over 1, 10" in text
    folds = results.study.model_copy(update={"tuning": {"method": "halving", "folds": 3}})
    assert tuning(folds, task, results.runs)[0].startswith(
        "Tuned by successive halving with 3-fold cross-validation on the training part: SMO chose"
    )


@pytest.fixture
def grid_of(make, results_of):
    """What the page says of runs with these trials, by solver: tables, and the best points."""

    def build(**trials):
        trace = make.trace([1e3], [0.1])
        records = [
            make.finished("a", solver, 0, trace, tuning=json.dumps(tried), suboptimality=None)
            for solver, tried in trials.items()
        ]
        (section,) = grid_section(results_of(records, {"a": TASK}))
        return section.data["tables"], section.data["best"].rows

    return build


def test_parameters_may_be_of_any_type_and_solvers_with_others_have_a_grid_of_their_own(grid_of):
    values = ("last", "voted", True, 10, [1, 2])
    (table, other), best = grid_of(
        SMO=[
            trial({"output": value, "C": C}, (n + 1) / 10)
            for n, value in enumerate(values)
            for C in (1.0, 2.0)
        ],
        Neighbours=[trial({"n_neighbors": n}, n / 100) for n in (9, 1)],
    )
    texts = [f"output = {text}" for text in ("last", "voted", "true", "10", "[1, 2]")]
    assert [heading.title for heading in table.headings][1:] == texts
    for row in table.rows:
        assert [cell.number for cell in row][1:] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [cell.value for cell in best[0]][2:4] == ["last", "1"]
    assert (table.name, other.name) == ("grid-a", "grid-a-2")
    assert [[cell.number for cell in row][1:] for row in other.rows] == [[0.01, 0.09]]


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
def test_the_best_point_of_halving_is_one_that_it_left(grid_of, second, best):
    trials = [trial({"C": C}, error) for C, error in ((1.0, 0.1), (2.0, 0.2), (4.0, 0.2))]
    for C, error in second:
        trials.append(trial({"C": C}, error, 1, "not tried" if error is None else "completed"))
    (row,) = grid_of(SMO=trials)[1]
    assert row[2].number == best


def test_a_point_that_lacks_a_fold_is_not_the_best(make, results_of):
    tasks = {name: {"C": C, "folds": 2} for name, C in (("a", 1.0), ("b", 2.0), ("c", 3.0))}
    trace = make.trace([1e3], [0.1])
    records = [
        make.finished("a", "SMO", 0, trace, test_error=0.1),
        make.record("a", "SMO", 1, status="crashed"),
        *(make.finished("b", "SMO", seed, trace, test_error=0.3) for seed in (0, 1)),
        *(make.finished("c", "SMO", seed, trace, test_error=0.4) for seed in (0, 1)),
    ]
    (section,) = grid_section(results_of(records, tasks))
    (row,) = section.data["best"].rows
    assert row[2].number == 2.0
