"""What the harness itself costs: its CPU seconds for a run that takes milliseconds."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from marginbench.harness.execution.progress import PlainProgress, Recorded
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.plan import Run
from marginbench.harness.results.records import RecordBase
from marginbench.harness.study.svm import Study

_RUNS = 100
# CPU time of a run in the parent, in units of the work below. Some 9 were measured with
# twenty busy processes on two cores, when nothing stays in a cache; a quiet machine needs fewer.
_MOST = 18.0
_TABLE = {f"column {number}": [number / 7] * 5 for number in range(40)}


def unit_of_work() -> None:
    """About a millisecond of what the harness does as well: JSON, dictionaries, texts."""
    for _ in range(8):
        assert json.loads(json.dumps(_TABLE)) == _TABLE


class Clocked(PlainProgress):
    """Measures the CPU time of this process from the first run to the last, and that of a unit."""

    def __init__(self) -> None:
        super().__init__(1, io.StringIO())
        self.began = self.ended_at = self.units_s = 0.0

    def begin(self, pending: Sequence[Run], recorded: Recorded = ()) -> None:
        super().begin(pending, recorded)
        self.began = time.process_time()

    def ended(self, record: RecordBase) -> None:
        super().ended(record)
        started = time.process_time()
        unit_of_work()
        self.ended_at = time.process_time()
        self.units_s += self.ended_at - started

    @property
    def units(self) -> float:
        """CPU time of all runs in units of work, each of which was done once a run."""
        return (self.ended_at - self.began - self.units_s) / self.units_s


@pytest.mark.slow
def test_a_short_run_costs_the_command_little(
    tmp_path: Path, make_study: Callable[..., Study]
) -> None:
    task = {
        "label": "board",
        "dataset": "checkers",
        "dataset_params": {"n_train": 50, "n_test": 50},
        "gamma": 10.0,
        "C": 1.0,
        "reference": False,
    }
    solver = {"name": "Pegasos", "params": {"max_epochs": 2}}
    # Imported by the first record that is written.
    import pandas  # noqa: F401

    progress = Clocked()
    study = make_study(seeds=_RUNS, task=[task], solver=[solver])
    assert run_study(study, tmp_path, progress=progress).statuses == {"budget": _RUNS}
    assert progress.units < _MOST
