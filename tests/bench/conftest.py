"""One thread for everything that is timed, as in studies: CPU time then is the time of the work."""

import numba
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread(request):
    """Keep BLAS and compiled loops to one thread in tests that time something.

    Threads of BLAS spin while they wait for each other: longer than they work, if others do too.
    """
    if "benchmark" not in request.fixturenames:
        yield
        return
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    with threadpool_limits(1):
        yield
    numba.set_num_threads(before)
