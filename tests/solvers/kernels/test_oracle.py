"""The oracle counts what was asked and what was computed; the cache is a bounded LRU."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from marginbench.solvers import RBF, Counters, KernelOracle

N = 9
X = np.random.default_rng(0).standard_normal((N, 3))
ITEM = 8
# Bytes: none, less than two rows, exactly two, two and a bit, four, everything.
CACHES = [0, N * ITEM, 2 * N * ITEM - 1, 2 * N * ITEM, 3 * N * ITEM - 1, 4 * N * ITEM, 10**6]


def entry(p, q):
    return float(np.sin(p @ q) + (p - q) @ (p - q))


GRAM = np.array([[entry(p, q) for q in X] for p in X])


class CountingKernel:
    """Evaluates one entry at a time, and counts them."""

    def __init__(self):
        self.count = 0

    def __call__(self, A, B):
        entries = np.empty((len(A), len(B)))
        for i, p in enumerate(A):
            for j, q in enumerate(B):
                entries[i, j] = entry(p, q)
                self.count += 1
        return entries


indices = st.integers(0, N - 1)
index_lists = st.lists(indices, max_size=2 * N)
requests = st.lists(
    st.one_of(
        st.tuples(st.just("row"), indices),
        st.tuples(st.just("rows"), index_lists),
        st.tuples(st.just("block"), index_lists, index_lists),
        st.tuples(st.just("diag")),
    ),
    max_size=25,
)


def expected_entries(request):
    name, *arguments = request
    if name == "row":
        return GRAM[arguments[0]]
    if name == "rows":
        return GRAM[np.array(arguments[0], dtype=int)]
    if name == "block":
        return GRAM[np.ix_(*(np.array(a, dtype=int) for a in arguments))]
    return np.diag(GRAM)


@given(requests=requests, cache_bytes=st.sampled_from(CACHES))
@settings(max_examples=150, deadline=None)
def test_counters_agree_with_a_kernel_that_counts(requests, cache_bytes):
    kernel = CountingKernel()
    oracle = KernelOracle(kernel, X, "float64", cache_bytes)
    asked, diag_known = 0, False
    for request in requests:
        name, *arguments = request
        entries = getattr(oracle, name)(*arguments)
        expected = expected_entries(request)
        np.testing.assert_allclose(entries, expected, rtol=1e-14, atol=1e-14)
        asked += 0 if name == "diag" and diag_known else expected.size
        diag_known |= name == "diag"
        assert oracle.counters.kernel_evals == asked
        assert oracle.counters.kernel_evals_computed == kernel.count
    assert oracle.counters.kernel_evals_computed <= oracle.counters.kernel_evals
    assert oracle.counters.matvec_entries == oracle.counters.inner_products == 0


@pytest.mark.parametrize("cache_bytes", CACHES)
def test_rows_for_loops_and_fresh_blocks_cost_every_entry_they_give(cache_bytes):
    kernel = CountingKernel()
    oracle = KernelOracle(kernel, X, "float64", cache_bytes)
    asked = 0
    for index in ([4, 1], [1], [7, 4], []):
        index = np.array(index, dtype=np.int64)
        storage, slots = oracle.stored_rows(index)
        np.testing.assert_allclose(storage[slots], GRAM[index], rtol=1e-14, atol=1e-14)
        asked += len(index) * N
        columns = np.array([0, 3, 3, 8])
        block = oracle.fresh_block(index, columns)
        np.testing.assert_allclose(block, GRAM[np.ix_(index, columns)], rtol=1e-14, atol=1e-14)
        asked += len(index) * 4
        assert oracle.counters.kernel_evals == asked
        assert oracle.counters.kernel_evals_computed == kernel.count


class ModelCache:
    """Least recently used rows in an OrderedDict; counts the rows that had to be computed."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.rows = OrderedDict()

    def read(self, i):
        if i in self.rows:
            self.rows.move_to_end(i)
        return i in self.rows

    def store(self, i):
        self.rows[i] = None
        if len(self.rows) > self.capacity:
            self.rows.popitem(last=False)


@given(
    requests=st.lists(
        st.one_of(
            st.tuples(st.just("row"), indices),
            st.tuples(st.just("rows"), index_lists),
            st.tuples(st.just("block"), index_lists, st.just([3, 1])),
        ),
        max_size=40,
    ),
    capacity=st.integers(2, N + 1),
)
@settings(max_examples=150, deadline=None)
def test_rows_leave_the_cache_in_lru_order(requests, capacity):
    oracle = KernelOracle(RBF(0.3), X, "float64", capacity * N * ITEM)
    model = ModelCache(min(capacity, N))
    computed = 0
    for name, index, *columns in requests:
        getattr(oracle, name)(index, *columns)
        wanted = [index] if name == "row" else index
        missing = list(dict.fromkeys(i for i in wanted if not model.read(i)))
        computed += len(missing) * (2 if columns else N)
        if not columns:
            for i in missing:
                model.store(i)
        assert oracle.counters.kernel_evals_computed == computed


@pytest.mark.parametrize("cache_bytes", [0, 2 * N * ITEM, 10**6])
def test_rows_are_read_only_and_blocks_the_callers_own(cache_bytes):
    oracle = KernelOracle(RBF(0.3), X, "float64", cache_bytes)
    for row in (oracle.row(0), oracle.row(0), oracle.row(1)):
        with pytest.raises(ValueError, match="read-only"):
            row[0] = 2.0
    before = oracle.rows([0, 1]).copy()
    for entries in (oracle.rows([0, 1]), oracle.block([0], [1])):
        entries[:] = -1.0
    np.testing.assert_array_equal(oracle.rows([0, 1]), before)


def test_a_hot_row_stays_valid_while_its_partner_is_fetched():
    oracle = KernelOracle(RBF(0.3), X, "float64", 2 * N * ITEM)
    uncached = KernelOracle(RBF(0.3), X, "float64")
    for i, j in [(0, 1), (1, 2), (1, 0), (3, 1), (3, 3), (2, 3)]:
        row_i, row_j = oracle.row(i), oracle.row(j)
        np.testing.assert_array_equal(row_i, uncached.row(i))
        np.testing.assert_array_equal(row_j, uncached.row(j))


def test_a_given_matrix_is_asked_but_never_computed():
    oracle = KernelOracle("precomputed", GRAM, "float64", 10**6)
    oracle.row(0)
    oracle.rows([1, 1])
    oracle.block([0, 2], [1, 2, 3])
    oracle.diag()
    expected = N + 2 * N + 6 + N
    assert oracle.counters == Counters(kernel_evals=expected, kernel_evals_computed=0)


def test_a_point_has_kernel_one_with_itself_however_far_off_rounding_is():
    # The squared norms are 1e7 times the resolution of float32.
    with pytest.warns(UserWarning, match="most points lie so far"):
        oracle = KernelOracle(RBF(1.0), 1e4 * X)
    index = [4, 0, 8, 4]
    for columns in (range(N), [4], [8, 8, 1, 0]):
        entries = oracle.block(index, columns)
        same = np.equal.outer(index, columns)
        assert (entries[same] == 1).all()
        assert (entries[~same] < 1e-30).all()
