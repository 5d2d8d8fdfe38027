"""What the user sees, and the forecast of the time that is left."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from marginbench.harness.feasibility.records import FeasibilityRecord
from marginbench.harness.jobs import DatasetWork, Limits
from marginbench.harness.kinds import Run
from marginbench.harness.progress import Forecast, LiveProgress, PlainProgress, outcome_line, span
from marginbench.harness.svm.records import Record


def planned(task: str, solver: str, seed: int) -> Run:
    return Run("k", task, solver, seed, DatasetWork("digits", {}), Limits({}, 1.0), {})


def record(task: str, solver: str, seed: int, **values: Any) -> Record:
    settings = {"status": "converged", "wall_s": 1.25, "test_error": 0.0312, **values}
    return Record(
        key="k", study="s", task=task, dataset="d", solver=solver, solver_class="c", seed=seed,
        **settings,
    )  # fmt: skip


def test_the_forecast_uses_the_most_alike_runs() -> None:
    forecast = Forecast()
    assert forecast.remaining({("a", "SMO"): 2}) is None
    forecast.add("a", "SMO", 10.0)
    forecast.add("a", "SMO", 20.0)
    forecast.add("b", "SMO", 60.0)
    forecast.add("b", "SBP", 1.0)
    assert forecast.expected("a", "SMO") == 15.0
    assert forecast.expected("c", "SMO") == 30.0
    assert forecast.expected("c", "Pegasos") == pytest.approx(91 / 4)
    assert forecast.remaining({("a", "SMO"): 2, ("b", "SBP"): 3}) == 33.0
    assert Forecast(jobs=2).remaining({}) == 0.0


def test_plain_lines_count_the_runs() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream=stream)
    runs = [planned("digits", "SMO", seed) for seed in (0, 1)]
    progress.begin(runs)
    for run in runs:
        progress.started(run)
        progress.ended(record("digits", "SMO", run.seed))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "2 runs to do"
    assert lines[1].startswith("[1/2] digits · SMO · seed 0: converged, 1.25 s, test error 3.12 %")
    assert lines[1].endswith("left")
    assert lines[2] == "[2/2] digits · SMO · seed 1: converged, 1.25 s, test error 3.12 %"


def test_a_failure_says_why() -> None:
    line = outcome_line(
        record("a", "X", 0, status="crashed", reason="killed", wall_s=None, test_error=None)
    )
    assert line == "a · X · seed 0: crashed (killed)"


def test_the_line_of_a_feasibility_run_says_what_was_found() -> None:
    common = {"key": "k", "study": "s", "task": "cell", "solver": "VN", "solver_class": "c"}
    found = FeasibilityRecord(
        **common, seed=3, status="converged", found="separable", n_iter=12, wall_s=0.5
    )
    assert outcome_line(found) == (
        "cell · VN · seed 3: converged, separable, 12 iterations, 0.50 s"
    )
    cut = FeasibilityRecord(**common, seed=0, status="budget", found="budget", test_error=0.25)
    assert outcome_line(cut) == "cell · VN · seed 0: budget, test error 25.00 %"


def test_the_live_display_shows_what_runs_and_takes_names_as_they_are() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    progress = LiveProgress(console=console)
    run = planned("[red]x[/nonsense]", "SMO", 0)
    progress.begin([run])
    progress._drawn = 0.0
    progress.started(run)
    progress.ended(record("[red]x[/nonsense]", "SMO", 0))
    progress.say("[brackets] stay")
    progress.close()
    shown = stream.getvalue()
    assert "[red]x[/nonsense] · SMO · seed 0" in shown
    assert "[brackets] stay" in shown
    assert "1 of 1 runs left" in shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (61, "1 min 01 s"), (3599, "59 min 59 s"),
     (3600, "1 h 00 min"), (36061, "10 h 01 min")],
)  # fmt: skip
def test_spans_of_time(seconds: float, words: str) -> None:
    assert span(seconds) == words
