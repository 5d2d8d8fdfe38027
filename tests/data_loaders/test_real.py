"""Facts of the real files, where the tests are started with a mirror that has them."""

import hashlib
import os
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse

from marginbench.data_loaders import find, idx, load, verify
from marginbench.data_loaders.files import LocalFile, gather

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def read_before(tmp_path_factory):
    return tmp_path_factory.mktemp("real") / "cache"


@pytest.fixture(autouse=True)
def shared_cache(cache, read_before, monkeypatch):
    """One cache for the tests of this file: the first one that wants a dataset reads its files."""
    monkeypatch.setenv("MARGINBENCH_CACHE", str(read_before))


def positives(y: np.ndarray) -> int:
    return int(np.count_nonzero(y == 1))


@pytest.mark.parametrize(
    ("name", "shapes", "n_positive"),
    [
        ("adult", (32561, 16281, 123), (7841, 3846)),
        ("ijcnn1", (49990, 91701, 22), (4853, 8712)),
        ("cod-rna", (59535, 271617, 8), (19845, 90539)),
        ("mnist", (60000, 10000, 784), (5851, 974)),
        ("fashion-mnist", (60000, 10000, 784), (6000, 1000)),
        ("reuters_moneyfx", (7770, 3299, 8315), (538, 179)),
    ],
)
def test_sizes_and_classes_of_sets_published_in_two_parts(real_data, name, shapes, n_positive):
    data = real_data(name)
    assert (data.n_train, data.n_test, data.n_features) == shapes
    assert (positives(data.y_train), positives(data.y_test)) == n_positive
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    assert data.y_train.dtype == np.int8
    assert set(np.unique(data.y_train)) == {-1, 1}
    assert issparse(data.X_train) == (name in ("reuters_moneyfx", "adult"))
    assert verify(name).state == "ok"


@pytest.mark.parametrize(
    ("name", "shapes", "n_positive"),
    [
        ("heart", (180, 90, 13), 120),
        ("covtype-sample", (14503, 7251, 54), 10663),
        ("adult-sample", (22697, 9864, 123), 7841),
    ],
)
def test_sizes_and_classes_of_sets_published_in_one_part(real_data, name, shapes, n_positive):
    data = real_data(name)
    assert (data.n_train, data.n_test, data.n_features) == shapes
    assert positives(data.y_train) + positives(data.y_test) == n_positive
    assert issparse(data.X_train) == (name == "adult-sample")
    assert data.X_train.dtype == np.float32
    # Every third row, or a draw: the parts are alike.
    shares = positives(data.y_train) / data.n_train, positives(data.y_test) / data.n_test
    assert shares[0] == pytest.approx(shares[1], abs=0.02)


def test_mnist(real_data):
    data = real_data("mnist")
    values = data.X_train.astype(np.float64)
    assert values.mean() == pytest.approx(0.1307, abs=5e-5)
    assert values.std() == pytest.approx(0.3081, abs=5e-5)
    assert (data.X_train.min(), data.X_train.max()) == (0, 1)
    every = load("mnist", {"positive": "none"})
    assert np.bincount(every.y_train).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949
    ]  # fmt: skip
    np.testing.assert_array_equal(np.where(every.y_test == 8, 1, -1), data.y_test)
    np.testing.assert_array_equal(every.X_test, data.X_test)


def test_the_images_of_mnist_are_the_known_bytes(real_data):
    real_data("mnist")
    path = Path(os.environ["MARGINBENCH_MIRROR"]) / "mnist" / idx.FILES[0][0]
    pixels = idx.read_array(LocalFile(path, str(path)), 3)
    header = bytes.fromhex("00000803 0000ea60 0000001c 0000001c")
    digest = hashlib.sha256(header + pixels.tobytes()).hexdigest()
    assert digest == "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"


def test_the_scales_of_cod_rna(real_data):
    data, raw = real_data("cod-rna"), real_data("cod-rna", {"scale": "none"})
    np.testing.assert_array_equal(data.X_train.min(axis=0), -1)
    np.testing.assert_array_equal(data.X_train.max(axis=0), 1)
    assert (
        raw.X_train[0].tolist()
        == np.float32(
            [-766, 128, 0.140625, 0.304688, 0.234375, 0.140625, 0.304688, 0.234375]
        ).tolist()
    )
    low, high = raw.X_train.min(axis=0), raw.X_train.max(axis=0)
    expected = 2 * (raw.X_test.astype(np.float64) - low) / (high - low) - 1
    np.testing.assert_allclose(data.X_test, expected, rtol=1e-5, atol=1e-6)
    standard = real_data("cod-rna", {"scale": "standard"}).X_train.astype(np.float64)
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(standard.std(axis=0), 1, rtol=1e-6)


def test_the_scale_of_the_sample_of_covertype(real_data):
    data, raw = real_data("covtype-sample"), real_data("covtype-sample", {"scale": "none"})
    assert (raw.X_train == np.round(raw.X_train)).all()
    assert (raw.X_train[:, 10:].min(), raw.X_train[:, 10:].max()) == (0, 1)  # areas, soil types
    assert (raw.X_train[:, 10:14].sum(axis=1) == 1).all()
    assert (raw.X_train[:, 14:].sum(axis=1) == 1).all()
    assert (data.X_train.min(), data.X_train.max()) == (0, 1)


@pytest.mark.parametrize(("name", "seconds"), [("mnist", 5), ("cod-rna", 5), ("adult", 3)])
def test_reading_is_fast(real_data, tmp_path, name, seconds):
    real_data(name)
    source = find(name)
    files = gather(name, source.files, tmp_path, source.mirror_folder)
    started = time.process_time()  # other tests may run on the same cores
    source.read(files, source.resolve(None))
    assert time.process_time() - started < seconds
