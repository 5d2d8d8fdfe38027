"""The real Adult files, where the tests are started with a mirror that has them."""

import bz2
import time

import numpy as np

from marginbench.data_loaders import find, libsvm, load, verify
from marginbench.data_loaders.content import Content, Part, fingerprint
from marginbench.data_loaders.files import LocalFile


def test_facts(real_mirror):
    data = load("adult")
    assert (data.n_train, data.n_test, data.n_features) == (32561, 16281, 123)
    assert data.X_train.nnz == 451592
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    assert np.sum(data.y_train == 1) == 7841
    assert np.sum(data.y_test == 1) == 3846
    assert set(np.unique(data.y_train)) == {-1, 1}
    assert data.X_test.indices.max() == 121  # the file stops at feature 122
    assert set(np.unique(data.X_train.data)) == {1.0}
    assert verify("adult").state == "ok"
    # Raw values are 0 and 1: the transform loses nothing.
    assert data.fingerprint == find("adult").fingerprint


def test_fingerprint_does_not_depend_on_storage_or_file_format(real_mirror, tmp_path):
    parts = []
    for name in ("a9a", "a9a.t"):
        packed = tmp_path / name
        packed.write_bytes(bz2.compress((real_mirror / "adult" / name).read_bytes(), 1))
        part = libsvm.read_file(LocalFile(packed, name), 123, (-1, 1))
        parts.append(Part(part.X.toarray(), part.y))
    assert fingerprint(Content(*parts)) == find("adult").fingerprint


def test_parsing_is_fast(real_mirror):
    path = real_mirror / "adult" / "a9a"
    started = time.perf_counter()
    libsvm.read_file(LocalFile(path, str(path)), 123, (-1, 1))
    assert time.perf_counter() - started < 1.5
