"""Local timings: pytest-benchmark times of the installed code what asv times of commits."""

import warnings
from functools import cache
from itertools import product

import numba
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.kernels import Rows
from benchmarks.predict import Predict
from benchmarks.quickstart import Quickstart
from benchmarks.solve import Fit, Separate

SUITES = (Quickstart, Fit, Separate, Predict, Rows)
#: A suite, and the values of its parameters: the first names the row of a table, the others and the
#: suite the table.
CASES = [
    (suite, (row, *rest), ", ".join(map(str, rest)), row)
    for suite in SUITES
    for row, *rest in product(*suite.params)
]


@cache
def shared(suite):
    """What a suite makes once for all of its cells."""
    return (suite().setup_cache(),) if hasattr(suite, "setup_cache") else ()


@pytest.fixture
def one_thread():
    """One thread, as in studies: CPU time then is the time of the work.

    Threads of BLAS spin while they wait for each other: longer than they work, if others do too.
    """
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    with threadpool_limits(1):
        yield
    numba.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("suite", "values", "table", "row"),
    CASES,
    ids=[f"{suite.__name__} {table} {row}" for suite, _, table, row in CASES],
)
def test_time(benchmark, suite, values, table, row):
    timed, given = suite(), (*shared(suite), *values)
    benchmark.group = f"{suite.__name__}, {table}" if table else suite.__name__
    [name] = [name for name in dir(suite) if name.startswith("time_")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some end at a fixed number of epochs
        try:
            timed.setup(*given)  # compiles, too
        except NotImplementedError as error:
            pytest.skip(str(error))
        benchmark(getattr(timed, name), *given)
