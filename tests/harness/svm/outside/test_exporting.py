"""Data for programs: every number reads back as the same double, and files are looked after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from marginbench.harness.evaluation.outside.exporting import exported, libsvm_text
from marginbench.harness.execution.process import SCRATCH

LABELS = np.array([-1, 1, 7])


def read_back(text: bytes, n_features: int) -> tuple[list[int], np.ndarray]:
    lines = text.decode("ascii").splitlines()
    X = np.zeros((len(lines), n_features))
    for row, line in zip(X, lines, strict=True):
        for pair in line.split()[1:]:
            index, value = pair.split(":")
            row[int(index) - 1] = float(value)
    return [int(line.split()[0]) for line in lines], X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_exact(dtype: type) -> None:
    tiny = np.nextafter(dtype(0), dtype(1))
    X = np.array([[0.1, 0.0, -1e-30], [1 / 3, tiny, 1e30], [0.0, 0.0, 0.0]], dtype=dtype)
    for form in (X, sparse.csr_matrix(X)):
        labels, found = read_back(b"".join(libsvm_text(form, LABELS)), 3)
        assert labels == LABELS.tolist()
        assert np.array_equal(found, X.astype(np.float64))


def test_long_data_are_written_in_parts() -> None:
    X = np.arange(2500.0)[:, None]
    parts = list(libsvm_text(X, np.ones(2500, dtype=np.int64)))
    assert len(parts) == 3
    assert np.array_equal(read_back(b"".join(parts), 1)[1], X)


def test_a_file_is_written_once_and_again_if_a_program_changed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCRATCH, str(tmp_path / "scratch"))
    X = np.eye(3)
    path = exported("points.txt", X, LABELS)
    content, first = path.read_bytes(), path.stat().st_mtime_ns
    assert exported("points.txt", X, LABELS).stat().st_mtime_ns == first
    path.write_bytes(content.replace(b"1:1.0", b"1:2.0"))
    assert exported("points.txt", X, LABELS).read_bytes() == content
    path.unlink()
    assert exported("points.txt", X, LABELS).read_bytes() == content
