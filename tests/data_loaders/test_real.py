"""Facts of the real files, where the tests are started with a mirror that has them.

Their raw content is that of the pinned fingerprints; here is what is made of it.
"""

import time

import numpy as np
import pytest
from scipy.sparse import issparse

from marginbench.data_loaders import find
from marginbench.data_loaders.files import gather

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def read_before(tmp_path_factory):
    return tmp_path_factory.mktemp("real") / "cache"


@pytest.fixture(autouse=True)
def shared_cache(cache, read_before, monkeypatch):
    """One cache for the tests of this file: the first one that wants a dataset reads its files."""
    monkeypatch.setenv("MARGINBENCH_CACHE", str(read_before))


@pytest.mark.parametrize(
    ("name", "shapes", "positives"),
    [
        ("adult", (32561, 16281, 123), (7841, 3846)),
        ("adult-sample", (22697, 9864, 123), 7841),
        ("ijcnn1", (49990, 91701, 22), (4853, 8712)),
        ("cod-rna", (59535, 271617, 8), (19845, 90539)),
        ("covtype-sample", (14503, 7251, 54), 10663),
        ("heart", (180, 90, 13), 120),
        ("mnist", (60000, 10000, 784), (5851, 974)),
        ("fashion-mnist", (60000, 10000, 784), (6000, 1000)),
        ("reuters_moneyfx", (7770, 3299, 8315), (538, 179)),
    ],
)
def test_sizes_and_classes(real_data, name, shapes, positives):
    data = real_data(name)
    assert (data.n_train, data.n_test, data.n_features) == shapes
    counts = int((data.y_train == 1).sum()), int((data.y_test == 1).sum())
    # Of one published file the sum alone is known: every third row, or a draw, is the test part.
    assert positives in (counts, sum(counts))
    assert counts[0] / data.n_train == pytest.approx(counts[1] / data.n_test, abs=0.03)
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    assert data.y_train.dtype == np.int8
    assert issparse(data.X_train) == (name in ("reuters_moneyfx", "adult", "adult-sample"))


@pytest.mark.parametrize(("name", "seconds"), [("mnist", 5), ("cod-rna", 5)])
def test_reading_is_fast(real_data, tmp_path, name, seconds):
    real_data(name)
    source = find(name)
    files = gather(name, source.files, tmp_path, source.mirror_folder)
    started = time.process_time()  # other tests may run on the same cores
    source.read(files, source.resolve(None))
    assert time.process_time() - started < seconds
