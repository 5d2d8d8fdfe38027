"""The oracle counts what was asked and what was computed; the cache is a bounded LRU."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from marginbench.solvers import RBF, KernelOracle

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


def arrays(**options):
    """Indices of points."""
    lists = st.lists(st.integers(0, N - 1), **options)
    return lists.map(lambda index: np.array(index, dtype=np.int64))


several = arrays(max_size=2 * N)
requests = st.lists(
    st.one_of(
        st.tuples(st.just("row"), st.integers(0, N - 1)),
        st.tuples(st.just("rows"), several),
        st.tuples(st.just("block"), several, several),
        # For compiled loops.
        st.tuples(st.just("stored_rows"), arrays(max_size=2, unique=True)),
        st.tuples(st.just("fresh_block"), several, several),
        st.tuples(st.just("diag")),
    ),
    max_size=40,
)


class RecentRows:
    """Least recently used rows in an OrderedDict."""

    def __init__(self, capacity):
        # With fewer than two, a row would be lost while its partner is fetched.
        self.capacity = capacity if capacity >= 2 else 0
        self.rows = OrderedDict()

    def computed(self, name, index, columns):
        """How many entries have to be computed."""
        if name == "fresh_block" or not self.capacity:
            return len(index) * len(columns)
        for i in index:
            if i in self.rows:
                self.rows.move_to_end(i)
        missing = dict.fromkeys(i for i in index if i not in self.rows)
        if name != "block":
            self.rows |= missing
            while len(self.rows) > self.capacity:
                self.rows.popitem(last=False)
        return len(missing) * len(columns)


@given(requests=requests, cache_bytes=st.sampled_from(CACHES))
@settings(max_examples=200, deadline=None)
def test_counters_are_those_of_a_bounded_cache_of_recent_rows(requests, cache_bytes):
    kernel = CountingKernel()
    oracle = KernelOracle(kernel, X, "float64", cache_bytes)
    recent, asked, computed, diagonal = RecentRows(cache_bytes // (N * ITEM)), 0, 0, 0
    last = row = np.zeros(0)
    for name, *arguments in requests:
        entries = getattr(oracle, name)(*arguments)
        if name == "stored_rows":
            storage, slots = entries
            assert not storage.flags.writeable
            entries = storage[slots]
        if name == "diag":
            expected, diagonal = np.diag(GRAM), N
        else:
            index, columns = [*arguments, np.arange(N)][:2]
            expected = GRAM[index][..., columns]
            asked += expected.size
            computed += recent.computed(name, np.atleast_1d(index), columns)
        np.testing.assert_allclose(entries, expected, rtol=1e-14, atol=1e-14)
        # A row stays valid while its partner is fetched.
        if name == "row":
            np.testing.assert_allclose(last, row, rtol=1e-14, atol=1e-14)
        last, row = (entries, expected) if name == "row" else (row, row)
        # Rows are read-only, blocks the caller's own.
        assert entries.flags.writeable == (name not in ("row", "diag"))
        if entries.flags.writeable:
            entries[:] = -1.0
        assert oracle.counters.kernel_evals == asked + diagonal
        assert oracle.counters.kernel_evals_computed == computed + diagonal == kernel.count
    assert oracle.counters.matvec_entries == oracle.counters.inner_products == 0


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
