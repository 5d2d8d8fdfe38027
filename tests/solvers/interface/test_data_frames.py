"""Data frames of pandas and polars: names of features, types of columns, and mistakes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from marginbench.solvers import SMO, BundleRegressor, RandomFourierMap

NAMES = ["age", "income", "size"]


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@pytest.mark.parametrize("solver", [SMO(), BundleRegressor(), RandomFourierMap(random_state=0)])
def test_names_of_the_features_are_kept_and_compared(points, solver, library):
    X, y = points
    answer = getattr(solver, "predict", None) or solver.transform
    solver.fit(X, y)
    expected, frame = answer(X), library.DataFrame(dict(zip(NAMES, X.T, strict=True)))
    solver.fit(frame, y)
    assert solver.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(answer(frame), expected)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        answer(frame[["income", "age", "size"]])
    with pytest.warns(UserWarning, match="valid feature names"):
        answer(X)


@pytest.mark.parametrize("dtype", ["Int64", "category"])
def test_numbers_may_be_of_any_type(points, dtype):
    X, y = points[0].round(), points[1]
    frame = pd.DataFrame(X, columns=NAMES).astype(dtype)
    expected = SMO(gamma=0.5).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(SMO(gamma=0.5).fit(frame, y).decision_function(frame), expected)


def test_a_missing_value_is_told_by_its_place(points):
    X, y = points
    frame = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(ValueError, match=r"NaN at row 4, column 1"):
        SMO().fit(frame.assign(income=pd.array([1, 2, 3, 4, None] * 8, dtype="Int64")), y)
    with pytest.raises(ValueError, match="'Paris'"):
        SMO().fit(frame.assign(city="Paris"), y)
