"""A small results folder for the tests of exports, and the files exported from it."""

import functools

import pytest

from marginbench.reports.exports import Exported, export


def write_small(make, folder, *labels):
    """Results with a hostile name and a failed run.

    The tasks have no reference, and so two figures each: drawing takes most of the time.
    """
    records = [
        make.finished(label, solver, seed, make.trace([1e3, 1e4], [0.3, 0.1 + seed / 10]))
        for label in labels
        for solver in ("SMO", "$a_b$ & <c>")
        for seed in range(2)
    ]
    records.append(make.record(labels[0], "Lost", 0, status="crashed", reason="signal 11"))
    solvers = [make.solver(label) for label in ("SMO", "$a_b$ & <c>", "Lost")]
    return make.folder(
        folder, records, [make.task(label, reference=False) for label in labels], solvers
    )


@pytest.fixture(scope="session")
def small(make):
    """``small(folder, *labels)`` writes results with a task of each label."""
    return functools.partial(write_small, make)


@pytest.fixture(scope="session")
def results(small, tmp_path_factory):
    return small(tmp_path_factory.mktemp("exports") / "results", "a/b")


@pytest.fixture(scope="session")
def done(results):
    """What of these results is exported, to a folder in them: one figure as PDF, too."""
    # Fonts take most of the time of a PDF.
    first = export(results, formats=["svg", "csv", "tex", "parquet"])
    pdf = export(results, figures=["task-a-b-test_error-evaluations"], formats=["pdf"])
    return Exported(first.folder, first.written + pdf.written, first.unchanged + pdf.unchanged)
