"""Local timings of the quickstart study's runs: ``pytest --benchmark-only``."""

import pytest

from marginbench.harness.study_file import load_study
from marginbench.harness.workbench import estimator_and_data, planned_runs

STUDY = load_study("quickstart")


@pytest.fixture(scope="module")
def runs():
    return planned_runs(STUDY)


@pytest.mark.parametrize("solver", [entry.label for entry in STUDY.solver])
@pytest.mark.parametrize("task", [task.label for task in STUDY.task])
def test_fit(benchmark, runs, task, solver):
    run = runs[task, solver]
    if run.skip_reason:
        pytest.skip(run.skip_reason)
    estimator, data = estimator_and_data(run)
    benchmark.group = task
    estimator.fit(data.X_train, data.y_train)  # compiles, outside the clock

    benchmark(estimator.fit, data.X_train, data.y_train)

    benchmark.extra_info["test_error"] = 1 - estimator.score(data.X_test, data.y_test)
    benchmark.extra_info["n_support"] = len(estimator.support_)
    if estimator.counters_ is not None:
        benchmark.extra_info["kernel_evals"] = estimator.counters_.kernel_evals
