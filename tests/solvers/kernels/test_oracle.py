"""The oracle counts what was asked and what was computed; the cache is a bounded LRU."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from marginbench.solvers import RBF, Counters, KernelOracle
from marginbench.solvers.kernels.row_cache import RowCache

N = 9
X = np.random.default_rng(0).standard_normal((N, 3))
Z = np.random.default_rng(1).standard_normal((4, 3))
ITEM = 8
# Bytes: none, less than two rows, exactly two, two and a bit, four, everything.
CACHES = [0, N * ITEM, 2 * N * ITEM - 1, 2 * N * ITEM, 3 * N * ITEM - 1, 4 * N * ITEM, 10**6]


def entry(p, q):
    return float(np.sin(p @ q) + (p - q) @ (p - q))


GRAM = np.array([[entry(p, q) for q in X] for p in X])
CROSS = np.array([[entry(p, q) for q in X] for p in Z])


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
        st.tuples(st.just("against"), st.one_of(st.none(), index_lists)),
    ),
    max_size=25,
)


def ask(oracle, request):
    name, *arguments = request
    return getattr(oracle, name)(*((Z,) if name == "against" else ()), *arguments)


def expected_entries(request):
    name, *arguments = request
    if name == "row":
        return GRAM[arguments[0]]
    if name == "rows":
        return GRAM[np.array(arguments[0], dtype=int)]
    if name == "block":
        return GRAM[np.ix_(*(np.array(a, dtype=int) for a in arguments))]
    if name == "diag":
        return np.diag(GRAM)
    columns = arguments[0]
    return CROSS if columns is None else CROSS[:, np.array(columns, dtype=int)]


@given(requests=requests, cache_bytes=st.sampled_from(CACHES))
@settings(max_examples=150, deadline=None)
def test_counters_agree_with_a_kernel_that_counts(requests, cache_bytes):
    kernel = CountingKernel()
    oracle = KernelOracle(kernel, X, "float64", cache_bytes)
    asked, diag_known = 0, False
    for request in requests:
        entries = ask(oracle, request)
        expected = expected_entries(request)
        np.testing.assert_allclose(entries, expected, rtol=1e-14, atol=1e-14)
        asked += 0 if request[0] == "diag" and diag_known else expected.size
        diag_known |= request[0] == "diag"
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
        assert oracle.counters.kernel_evals == asked
        assert oracle.counters.kernel_evals_computed == kernel.count
        columns = np.array([0, 3, 3, 8])
        block = oracle.fresh_block(index, columns)
        np.testing.assert_allclose(block, GRAM[np.ix_(index, columns)], rtol=1e-14, atol=1e-14)
        asked += len(index) * 4
        assert oracle.counters.kernel_evals == asked
        assert oracle.counters.kernel_evals_computed == kernel.count


def test_rows_for_loops_are_computed_once_while_the_cache_holds_them():
    oracle = KernelOracle(CountingKernel(), X, "float64", 10**6)
    for index, computed in (([4], 1), ([4], 1), ([4, 1], 2), ([1, 7, 4], 3), ([7], 3)):
        oracle.stored_rows(np.array(index))
        assert oracle.counters.kernel_evals_computed == computed * N
    for i in (1, 4, 7):
        oracle.row(i)
    assert oracle.counters.kernel_evals_computed == 3 * N


def test_known_entries_are_not_computed_again_when_rows_are_stored():
    n, d = 60, 900
    points = np.random.default_rng(2).standard_normal((n, d))
    K = np.exp(-0.001 * ((points[:, None] - points) ** 2).sum(axis=2))
    oracle = KernelOracle(RBF(0.001), points, "float64", 10**6)
    columns = np.random.default_rng(3).permutation(n)[:55]
    # Some are there already, at places of the known block in no order.
    oracle.stored_rows(columns[:3])
    places = np.array([7, 1, 30, 0, 40, 12, *range(13, 29)])
    # Entries of a kernel of its own: what is stored says where they came from.
    oracle.complete_rows(columns[places], columns, 2 * K[np.ix_(columns, columns)], places)
    new = len(places) - 2
    assert oracle.counters.kernel_evals == 3 * n
    assert oracle.counters.kernel_evals_computed == 3 * n + new * (n - 55)
    storage, slots = oracle.stored_rows(columns[places])
    expected = K[columns[places]]
    is_new = ~np.isin(places, [0, 1])
    expected[np.ix_(is_new, columns)] *= 2
    np.testing.assert_allclose(storage[slots], expected, rtol=1e-9)
    assert oracle.counters.kernel_evals_computed == 3 * n + new * (n - 55)


@pytest.mark.parametrize(
    ("d", "cache_bytes", "known"),
    [(900, 0, 41), (900, 5 * 60 * 8, 41), (3, 10**6, 41), (900, 10**6, 9)],
)
def test_rows_are_not_completed_where_that_gains_nothing(d, cache_bytes, known):
    points = np.random.default_rng(2).standard_normal((60, d))
    oracle = KernelOracle(RBF(0.001), points, "float64", cache_bytes)
    columns = np.arange(known)
    entries = np.full((known, known), np.nan)
    oracle.complete_rows(columns[:8], columns, entries, columns[:8])
    assert oracle.counters.kernel_evals_computed == 0
    assert not oracle.stores(columns).any()


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


@given(rows=st.lists(indices, max_size=60), cache_bytes=st.sampled_from(CACHES))
@settings(max_examples=60, deadline=None)
def test_cached_rows_are_the_uncached_ones_to_the_bit(rows, cache_bytes):
    cached = KernelOracle(RBF(0.3), X, "float32", cache_bytes)
    uncached = KernelOracle(RBF(0.3), X, "float32")
    for i in rows:
        np.testing.assert_array_equal(cached.row(i), uncached.row(i))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("max_bytes", [300, 1000, 12345, 10**9])
def test_the_cache_keeps_to_its_bytes(dtype, max_bytes):
    n = 30
    itemsize = np.dtype(dtype).itemsize
    if RowCache.fits(n, dtype, max_bytes):
        cache = RowCache(n, dtype, max_bytes)
        assert cache.storage.nbytes <= max_bytes
        assert len(cache.storage) == min(n, max_bytes // (n * itemsize))
    else:
        assert max_bytes < 2 * n * itemsize


@pytest.mark.parametrize("cache_bytes", [0, 2 * N * ITEM, 10**6])
def test_rows_are_read_only(cache_bytes):
    oracle = KernelOracle(RBF(0.3), X, "float64", cache_bytes)
    for row in (oracle.row(0), oracle.row(0), oracle.row(1)):
        with pytest.raises(ValueError, match="read-only"):
            row[0] = 2.0


@pytest.mark.parametrize("cache_bytes", [0, 2 * N * ITEM, 10**6])
def test_blocks_are_the_callers_own(cache_bytes):
    oracle = KernelOracle(RBF(0.3), X, "float64", cache_bytes)
    before = oracle.rows([0, 1]).copy()
    for entries in (oracle.rows([0, 1]), oracle.block([0], [1]), oracle.against(Z)):
        entries[:] = -1.0
    np.testing.assert_array_equal(oracle.rows([0, 1]), before)


@pytest.mark.parametrize("cache_rows", [2, 3, 5])
@pytest.mark.parametrize("next_request", [("row", 1), ("block", [5], [1])])
def test_a_row_stays_valid_during_the_next_request(cache_rows, next_request):
    oracle = KernelOracle(RBF(0.3), X, "float64", cache_rows * N * ITEM)
    oracle.row(3)
    oracle.row(2)
    row = oracle.row(0)
    before = row.copy()
    ask(oracle, next_request)
    np.testing.assert_array_equal(row, before)


def test_a_hot_row_stays_valid_while_its_partner_is_fetched():
    oracle = KernelOracle(RBF(0.3), X, "float64", 2 * N * ITEM)
    uncached = KernelOracle(RBF(0.3), X, "float64")
    for i, j in [(0, 1), (1, 2), (1, 0), (3, 1), (3, 3), (2, 3)]:
        row_i, row_j = oracle.row(i), oracle.row(j)
        np.testing.assert_array_equal(row_i, uncached.row(i))
        np.testing.assert_array_equal(row_j, uncached.row(j))


def test_the_unit_diagonal_is_free():
    oracle = KernelOracle(RBF(0.3), X)
    np.testing.assert_array_equal(oracle.diag(), np.ones(N))
    assert oracle.counters == Counters()


def test_a_given_matrix_is_asked_but_never_computed():
    oracle = KernelOracle("precomputed", GRAM, "float64", 10**6)
    oracle.row(0)
    oracle.rows([1, 1])
    oracle.block([0, 2], [1, 2, 3])
    oracle.diag()
    oracle.against(CROSS)
    oracle.against(CROSS, [0, 5])
    expected = N + 2 * N + 6 + N + 4 * N + 8
    assert oracle.counters == Counters(kernel_evals=expected, kernel_evals_computed=0)


def test_charge_adds_to_the_live_counters():
    counters = Counters(kernel_evals=5)
    oracle = KernelOracle(RBF(0.3), X, counters=counters)
    oracle.charge(10, 4)
    oracle.row(0)
    assert oracle.counters is counters
    assert counters == Counters(kernel_evals=15 + N, kernel_evals_computed=4 + N)


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, N - 1), min_size=1, max_size=12),
    st.none() | st.lists(st.integers(0, N - 1), min_size=1, max_size=12),
)
def test_a_point_has_kernel_one_with_itself_however_far_off_rounding_is(index, columns):
    # The squared norms are 1e7 times the resolution of float32.
    far = 1e4 * X
    entries = KernelOracle(RBF(1.0), far).block(index, columns)
    same = np.equal.outer(index, np.arange(N) if columns is None else columns)
    assert (entries[same] == 1).all()
    assert (entries[~same] < 1e-30).all()
