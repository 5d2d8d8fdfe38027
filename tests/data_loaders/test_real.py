"""Facts of the real files, where the tests are started with a mirror that has them.

Their raw content is that of the pinned fingerprints; here is what is made of it.
"""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse

from marginbench.data_loaders import find, load
from marginbench.data_loaders.files import gather

MIRROR = os.environ.get("MARGINBENCH_MIRROR", "")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    """The first test that wants a dataset reads its files."""
    return tmp_path_factory.mktemp("real")


@pytest.fixture
def source(name, monkeypatch):
    """The source of that name, if the mirror that the tests were started with has its files."""
    found = find(name)
    folder = Path(MIRROR) / (found.mirror_folder or name)
    if not folder.is_dir() and not Path(found.files[0].installed or "").is_file():
        pytest.skip(f"MARGINBENCH_MIRROR is not a folder with {folder.name}: no real data here")
    monkeypatch.setenv("MARGINBENCH_MIRROR", MIRROR)
    return found


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
def test_sizes_and_classes(source, shared_cache, name, shapes, positives):
    data = load(source, cache_dir=shared_cache)
    assert (data.n_train, data.n_test, data.n_features) == shapes
    counts = int((data.y_train == 1).sum()), int((data.y_test == 1).sum())
    # Of one published file the sum alone is known: every third row, or a draw, is the test part.
    assert positives in (counts, sum(counts))
    assert counts[0] / data.n_train == pytest.approx(counts[1] / data.n_test, abs=0.03)
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    assert data.y_train.dtype == np.int8
    assert issparse(data.X_train) == (name in ("reuters_moneyfx", "adult", "adult-sample"))


@pytest.mark.parametrize("name", ["mnist", "cod-rna"])
def test_reading_is_fast(source, tmp_path):
    files = gather(source.name, source.files, tmp_path, source.mirror_folder)
    started = time.process_time()  # other tests may run on the same cores
    source.read(files, source.resolve(None))
    assert time.process_time() - started < 5
