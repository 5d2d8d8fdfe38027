"""Data frames: names of features, and mistakes. Those of pandas scikit-learn's checks try, too."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from marginbench.solvers import SMO, BundleRegressor


@pytest.mark.parametrize("solver", [SMO(), BundleRegressor()])
def test_names_of_the_features_of_polars_are_kept_and_compared(points, solver):
    X, y = points
    expected, frame = solver.fit(X, y).predict(X), pl.DataFrame(X, ["age", "income", "size"])
    solver.fit(frame, y)
    assert solver.feature_names_in_.tolist() == ["age", "income", "size"]
    np.testing.assert_array_equal(solver.predict(frame), expected)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        solver.predict(frame.select("income", "age", "size"))


def test_a_missing_value_is_told_by_its_place(points):
    X, y = points
    frame = pd.DataFrame(X, columns=["age", "income", "size"])
    with pytest.raises(ValueError, match=r"NaN at row 4, column 1"):
        SMO().fit(frame.assign(income=pd.array([1, 2, 3, 4, None] * 8, dtype="Int64")), y)
    with pytest.raises(ValueError, match="'Paris'"):
        SMO().fit(frame.assign(city="Paris"), y)
