"""What the user sees, and the forecast of the time that is left."""

import io
import json
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

from rich.console import Console

from marginbench.harness.execution.progress import (
    JsonProgress,
    LiveProgress,
    PlainProgress,
    outcome_line,
)
from marginbench.harness.jobs import Limits
from marginbench.harness.planning.forecast import Forecast, span
from marginbench.harness.planning.plan import Run, in_rounds
from marginbench.harness.planning.status import Monitor
from marginbench.harness.results.description import SCHEMA_VERSION, write_description
from marginbench.harness.results.journal import Journal

from .test_journal import feasibility_record, svm_record


def planned(task, solver, seed):
    return Run("k", task, solver, seed, Limits({}, 1.0))


def record(task, solver, seed, **values):
    told = {"wall_s": 1.25, "test_error": 0.0312, **values}
    return svm_record(task=task, solver=solver, seed=seed, **told)


def test_a_pair_takes_the_mean_of_its_runs_or_as_long_as_others():
    forecast, known = Forecast(), ("a", "SMO")
    assert forecast.remaining({known: 2}) is None
    recorded = ((known, 5.0), (known, 15.0), (("b", "SMO"), 30.0), (("a", "SBP"), 1.0))
    for pair, seconds in recorded:
        forecast.add(pair, seconds)
    for pair, expected in (
        (known, 10.0),
        (("c", "SMO"), 20.0),
        (("b", "SBP"), 1.0),
        (("a", "New"), (10.0 + 30.0 + 1.0) / 3),
    ):
        assert forecast.remaining({pair: 1}) == expected
    assert forecast.remaining({known: 2}) == 20.0
    # Runs that have begun count, and none is spread over several jobs.
    forecast, slow, fast = Forecast(jobs=2), ("a", "slow"), ("a", "fast")
    assert forecast.remaining({}) is None
    forecast.add(slow, 100.0)
    forecast.add(fast, 2.0)
    assert forecast.remaining({fast: 10}, [(fast, 1.0), (slow, 300.0)]) == 10.5
    assert forecast.remaining({fast: 1}, [(slow, 10.0)]) == 90.0


def test_a_look_at_a_folder_that_two_commands_fill(tmp_path, monkeypatch):
    clock = [time.time()]
    monkeypatch.setattr("time.time", lambda: clock[0])
    a = {"task": "a", "solver": "SMO"}
    cells = [{**a, "seed": seed, "key": f"{seed:064}"} for seed in range(12)]
    described = {"schema_version": SCHEMA_VERSION, "name": "board", "jobs": 2, "planned": cells}
    write_description(tmp_path, described)
    with closing(Journal(tmp_path)) as journal, closing(Journal(tmp_path)) as other:
        for cell, status in zip(cells, ("converged", "crashed"), strict=False):
            journal.append_record(svm_record(**cell, status=status, wall_s=100.0))
        journal.append_start(cells[2]["key"], ("a", "SMO", 2))
        other.begin()
        clock[0] += 40.0
        look = Monitor(tmp_path).look()
    # Of four jobs: nine runs, and the rest of one.
    assert list(look.in_words()) == [
        "board: 2 of 12 runs recorded, about 4 min 00 s left",
        "1 converged, 1 crashed",
        "2 commands at work",
        "another machine: 2 done, 1 failed, 1 running",
        "running 40 s: a / SMO / seed 2",
    ]
    assert (look.left, look.damaged, len(look.failures)) == (10, 0, 1)


def test_times_in_words():
    spans = [(0.4, "0 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (3600, "1 h 00 min")]
    assert [(seconds, span(seconds)) for seconds, _ in spans] == spans


def test_plain_lines_count_the_runs_and_the_time_that_is_left():
    stream = io.StringIO()
    progress = PlainProgress(stream=stream)
    runs = [planned("digits", "SMO", seed) for seed in range(3)]
    recorded = SimpleNamespace(seconds=100.0)
    progress.begin(runs[1:], [(runs[0], recorded)])
    for run, machine in zip(runs[1:], ("", "node1"), strict=True):
        progress.started(run, machine)
        progress.ended(record("digits", "SMO", run.seed))
    # The mean of 100 s and of the run that has just ended at once.
    said = "converged, 1.25 s, test error 3.12 %"
    assert stream.getvalue().splitlines() == [
        "2 runs to do",
        f"[1/2] digits · SMO · seed 1: {said}, about 50 s left",
        f"[2/2] digits · SMO · seed 2: {said}, on node1",
    ]


def test_one_run_of_each_pair_comes_first():
    runs = [
        replace(planned(task, solver, seed), key=f"{task}{solver}{seed}")
        for task in "ab"
        for solver in ("SMO", "SBP", "SDCA")
        for seed in range(5)
    ]
    ordered = in_rounds(runs, "study")
    assert ordered == in_rounds(runs, "study")
    assert len({(run.task, run.solver) for run in ordered[:6]}) == 6
    assert len({run.seed for run in ordered[:6]}) > 1  # not the first seed of each
    assert ordered[6:] != [run for run in runs if run in ordered[6:]]
    assert sorted(run.key for run in ordered) == sorted(run.key for run in runs)


def test_the_line_of_a_feasibility_run_says_what_was_found():
    run = feasibility_record(task="cell", solver="VN", seed=3, n_iter=12, wall_s=0.5)
    assert outcome_line(run) == "cell · VN · seed 3: converged, separable, 12 iterations, 0.50 s"
    cut = replace(run, status="budget", found="budget", n_iter=None, wall_s=None, test_error=0.25)
    assert outcome_line(cut) == "cell · VN · seed 3: budget, test error 25.00 %"


def test_the_live_display_shows_what_runs_and_takes_names_as_they_are(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, legacy_windows=False)
    progress = LiveProgress(console=console)

    def shown(phases, at):
        clock[0] = at
        before = len(stream.getvalue())
        progress.refresh(phases)
        return stream.getvalue()[before:]

    assert shown({"computing the reference optimum of adult": "solve"}, 107.0) == ""
    run = planned("[red]x[/nonsense]", "SMO", 0)
    progress.begin([run])
    progress.started(run)
    assert "1 of 1 runs left" in stream.getvalue()
    assert "[red]x[/nonsense] · SMO · seed 0  compiling 3 s" in shown({run.key: "compile"}, 110.0)
    assert "SMO · seed 0  4 s" in shown({run.key: "solve"}, 111.0)
    progress.ended(record("[red]x[/nonsense]", "SMO", 0))
    progress.say("[brackets] stay")
    progress.close()
    assert "[red]x[/nonsense] · SMO · seed 0: converged" in stream.getvalue()
    assert "[brackets] stay" in stream.getvalue()


def test_a_study_as_events():
    stream = io.StringIO()
    progress = JsonProgress(stream=stream)
    progress.say("two\nlines")
    progress.begin([planned("digits", "SMO", 0), planned("digits", "SMO", 1)])
    progress.started(planned("digits", "SMO", 0), "node1")
    progress.ended(record("digits", "SMO", 0, status="crashed", reason="lost"))
    progress.started(planned("digits", "SMO", 1), "node2")
    progress.refresh()
    progress.ended(record("digits", "SMO", 1, wall_s=1.5))
    progress.close()
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == [
        *("message", "begin", "started", "ended", "started", "ended", "end")
    ]
    assert all(event["time"].endswith("+00:00") for event in events)
    assert events[1]["to_do"] == 2
    first, last = events[3], events[5]
    assert (first["machine"], first["status"], first["reason"]) == ("node1", "crashed", "lost")
    assert (first["done"], first["failed"], first["running"], first["to_do"]) == (1, 1, 0, 2)
    assert first["left_s"] >= 0
    assert (last["seed"], last["wall_s"], last["left_s"]) == (1, 1.5, None)
    assert (events[6]["done"], events[6]["failed"]) == (2, 1)
