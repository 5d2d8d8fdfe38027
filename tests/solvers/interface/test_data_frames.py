"""Data frames of pandas and polars: names of features, types of columns, labels, mistakes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from marginbench.solvers import SMO, BundleRegressor, RandomFourierMap

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
fitted = pytest.mark.parametrize(
    ("library", "make"),
    [
        *(("pandas", SMO), ("polars", SMO)),
        *(("pandas", RandomFourierMap), ("polars", BundleRegressor)),
    ],
)


def coarse(points):
    """Two features with a digit after the point."""
    return np.round(points[0][:, :2], 1), points[1]


def frame(library, X, names=("age", "income")):
    return FRAMES[library]({name: X[:, j] for j, name in enumerate(names)})


@fitted
def test_names_of_features_are_kept_and_compared(points, library, make):
    X, y = coarse(points)
    solver = make().fit(frame(library, X), y)
    assert solver.feature_names_in_.tolist() == ["age", "income"]
    predict = solver.transform if make is RandomFourierMap else solver.predict
    expected = make().fit(X, y)
    expected = expected.transform if make is RandomFourierMap else expected.predict
    if make is not RandomFourierMap:  # seeded anew by each fit
        np.testing.assert_array_equal(predict(frame(library, X)), expected(X))
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        predict(frame(library, X, ("income", "age")))
    with pytest.raises(
        ValueError, match=r"unseen at fit time:\n- salary\n.*now missing:\n- income"
    ):
        predict(frame(library, X, ("age", "salary")))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        predict(X)


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "float32", "int8", "category", "bool"])
def test_numeric_columns_of_any_type_are_numbers(points, dtype):
    X, y = coarse(points)
    X = (X > 0).astype(float) if dtype == "bool" else np.round(X)
    given = frame("pandas", X).astype(dtype)
    expected = SMO(gamma=0.5).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(SMO(gamma=0.5).fit(given, y).decision_function(given), expected)


@fitted
def test_a_column_of_text_is_named(points, library, make):
    X, y = coarse(points)
    cities = ["7", "8.5", "1e3", *["Paris"] * 37]
    given = FRAMES[library]({"age": X[:, 0], "city": cities})
    with pytest.raises(ValueError, match=r"^column 'city' holds text \('Paris' in row 3\): encode"):
        make().fit(given, y)
    solver = make().fit(frame(library, X, ("age", "city")), y)
    predict = solver.transform if make is RandomFourierMap else solver.predict
    with pytest.raises(ValueError, match=r"^column 'city' holds text \('Paris' in row 3\)") as told:
        predict(given)
    assert "\n" not in str(told.value)


def test_other_columns_without_numbers_are_named(points):
    X, y = coarse(points)
    given = frame("pandas", X)
    dates = given.assign(when=pd.Timestamp("2020-02-03"))
    with pytest.raises(ValueError, match=r"^column 'when' holds dates or times"):
        SMO().fit(dates, y)
    with pytest.raises(ValueError, match=r"^column 'sex' holds text \('f' in row 0\)"):
        SMO().fit(given.assign(sex=pd.Categorical(["f", "m"] * 20)), y)
    with pytest.raises(ValueError, match=r"^column 1 holds text \('low' in row 2\)"):
        SMO().fit([[1, 2], [3, 4], [5, "low"], [6, 7]], [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"NaN at row 4, column 1"):
        SMO().fit(given.assign(income=pd.array([1, 2, 3, 4, None] * 8, dtype="Int64")), y)
