"""Published files, read as anyone's own, are what the registered datasets make of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginbench.data_loaders import Dataset, load

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [("adult", "adult/a9a", "adult/a9a.t"), ("ijcnn1", "ijcnn1.trn.bz2", "ijcnn1.tst.bz2")],
)
def test_libsvm_text(
    real_mirror: Path,
    real_data: Callable[..., Dataset],
    name: str,
    train: str,
    test: str,
) -> None:
    registered = real_data(name)
    folder = real_mirror if "/" in train else real_mirror / name
    own = load(train, {"test": test, "format": "libsvm"}, folder=folder)
    assert own.fingerprint == registered.fingerprint
    assert own.decided[0].startswith("target: the label: +1 ")


def test_a_table(real_mirror: Path, real_data: Callable[..., Dataset], here: Path) -> None:
    registered = real_data("covtype-sample")
    file = real_mirror / "covtype_sample" / "covtype_union_binary_raw.csv"
    options: dict[str, Any] = {"target": 1, "test": "last 100", "scale": "none"}
    own = load(str(file), options)
    assert own.n_features == registered.n_features
    rows = np.loadtxt(file, delimiter=",")
    np.testing.assert_array_equal(own.X_test, rows[-100:, 1:].astype(np.float32))
