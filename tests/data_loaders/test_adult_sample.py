"""The sample of Adult: which rows it takes."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from marginbench.data_loaders.content import Content, Part
from marginbench.data_loaders.datasets import libsvm_text
from marginbench.data_loaders.errors import DataError


def numbered(n):
    """Rows that say which they are."""
    part = Part(csr_matrix(np.arange(1.0, n + 1)[:, None]), np.where(np.arange(n) % 4, -1, 1))
    return Content(part, Part(csr_matrix([[-1.0]]), np.array([1])))


def rows(part):
    return part.X.toarray()[:, 0].astype(int)


def test_the_parts_are_all_rows_once():
    content = libsvm_text.sample(numbered(30_000), {"test": "rest"})
    assert len(content.train.y) == 22_697
    both = np.concatenate([rows(content.train), rows(content.test)])
    np.testing.assert_array_equal(np.sort(both), np.arange(1, 30_001))
    for part in (content.train, content.test):
        np.testing.assert_array_equal(part.y, np.where((rows(part) - 1) % 4, -1, 1))
        assert part.X.dtype == np.float32
    # A draw, not the first rows.
    assert abs(rows(content.train).mean() - 15_000) < 5 * 8_660 / np.sqrt(22_697)


def test_all_rows_may_be_tested():
    content = libsvm_text.sample(numbered(30_000), {"test": "all"})
    np.testing.assert_array_equal(rows(content.test), np.arange(1, 30_001))
    again = libsvm_text.sample(numbered(30_000), {"test": "rest"})
    np.testing.assert_array_equal(rows(again.train), rows(content.train))


def test_too_few_rows_are_refused():
    with pytest.raises(DataError, match="adult-sample: 22697 rows"):
        libsvm_text.sample(numbered(22_697), {"test": "rest"})
