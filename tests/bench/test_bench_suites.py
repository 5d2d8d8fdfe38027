"""Local timings: pytest-benchmark times of the installed code what asv times of commits."""

import warnings
from itertools import product

import pytest

from benchmarks.compare.common import one_thread
from benchmarks.solve import Fit, Predict, Rows, Separate

SUITES = (Fit, Separate, Predict, Rows)
#: A suite, and the values of its parameters: the first names the row of a table, the others and the
#: suite the table.
CASES = [
    (suite, (row, *rest), ", ".join(map(str, rest)), row)
    for suite in SUITES
    for row, *rest in product(*suite.params)
]


@pytest.mark.parametrize(
    ("suite", "values", "table", "row"),
    CASES,
    ids=[f"{suite.__name__} {table} {row}" for suite, _, table, row in CASES],
)
def test_time(benchmark, suite, values, table, row):
    timed = suite()
    benchmark.group = f"{suite.__name__}, {table}" if table else suite.__name__
    [name] = [name for name in dir(suite) if name.startswith("time_")]
    # One thread, as in studies: CPU time then is the time of the work.
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")  # some end at a fixed number of epochs
        try:
            timed.setup(*values)  # compiles, too
        except NotImplementedError as error:
            pytest.skip(str(error))
        benchmark(getattr(timed, name), *values)
