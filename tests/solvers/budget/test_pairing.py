"""What the pairing of points does to the accuracy of BSCA and BSGD."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from marginbench.data_loaders import load
from marginbench.solvers import BSCA, BSGD

MIRROR = Path(os.environ.get("MARGINBENCH_MIRROR", ""))


def errors(method, parts, **params):
    """The test errors of three seeds, in percent."""
    X, y, X_test, y_test = parts
    found = []
    for seed in range(3):
        solver = method(random_state=seed, **params).fit(X, y)
        found.append(100 * (1 - solver.score(X_test, y_test)))
    return found


@pytest.fixture(scope="module")
def generated():
    """Two classes that overlap, of a shape that some 1 700 of 4 000 points are needed for."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 6)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5
    y = np.where(score + 0.8 * rng.standard_normal(8000) > 0, 1, -1)
    return X[:4000], y[:4000], X[4000:], y[4000:]


def test_bscas_default_is_more_accurate_than_pairing_by_sign(generated):
    params = {"gamma": 0.3, "C": 32.0, "budget": 50}
    default, by_sign = (
        errors(BSCA, generated, **params, **other) for other in ({}, {"pairing": "sign"})
    )
    assert max(default) < min(by_sign)
    assert np.median(default) < np.median(by_sign) - 1


def test_for_bsgd_label_and_sign_are_the_same(generated):
    X, y, *_ = generated
    # Nothing is pruned by golden section, so nothing can make a difference.
    params = {"gamma": 0.3, "C": 32.0, "budget": 50, "max_epochs": 3, "random_state": 0}
    by_sign, by_label = (
        BSGD(maintenance="merge-golden", pairing=pairing, **params).fit(X, y)
        for pairing in ("sign", "label")
    )
    assert by_sign.trace_[-1].maintenance > 100
    np.testing.assert_array_equal(by_sign.dual_coef_, by_label.dual_coef_)
    np.testing.assert_array_equal(by_sign.support_vectors_, by_label.support_vectors_)
    assert BSGD().pairing == "sign"


@pytest.mark.slow
@pytest.mark.skipif(
    not (MIRROR / "ijcnn1" / "ijcnn1.trn.bz2").is_file(),
    reason="MARGINBENCH_MIRROR is not a folder with ijcnn1/ijcnn1.trn.bz2: no real data here",
)
@pytest.mark.parametrize(("budget", "margin"), [(200, 0.8), (500, 0.2)])
def test_bscas_default_is_more_accurate_on_ijcnn1(budget, margin):
    data = load("ijcnn1")
    parts = data.X_train, data.y_train, data.X_test, data.y_test
    params = {"gamma": 2.0, "C": 32.0, "budget": budget}
    default, by_sign = (
        errors(BSCA, parts, **params, **other) for other in ({}, {"pairing": "sign"})
    )
    assert max(default) < min(by_sign)
    assert np.median(default) < np.median(by_sign) - margin
