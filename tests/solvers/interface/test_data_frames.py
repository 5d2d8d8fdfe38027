"""Data frames of pandas and polars: names of features, types of columns, labels, mistakes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from marginbench.solvers import SMO, BundleRegressor, RandomFourierMap

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
fitted = pytest.mark.parametrize(
    ("library", "solver"),
    [
        *(("pandas", SMO()), ("polars", SMO()), ("polars", BundleRegressor())),
        ("pandas", RandomFourierMap(random_state=0)),
    ],
)


def coarse(points):
    """Two features with a digit after the point."""
    return np.round(points[0][:, :2], 1), points[1]


def frame(library, X, names=("age", "income")):
    return FRAMES[library]({name: X[:, j] for j, name in enumerate(names)})


def answer(solver, X):
    return solver.transform(X) if isinstance(solver, RandomFourierMap) else solver.predict(X)


@fitted
def test_names_of_features_are_kept_and_compared(points, library, solver):
    X, y = coarse(points)
    expected = answer(solver.fit(X, y), X)
    solver.fit(frame(library, X), y)
    assert solver.feature_names_in_.tolist() == ["age", "income"]
    np.testing.assert_array_equal(answer(solver, frame(library, X)), expected)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        answer(solver, frame(library, X, ("income", "age")))
    unknown = r"unseen at fit time:\n- salary\n.*now missing:\n- income"
    with pytest.raises(ValueError, match=unknown):
        answer(solver, frame(library, X, ("age", "salary")))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        answer(solver, X)


@pytest.mark.parametrize("dtype", ["Int64", "float32", "category", "bool"])
def test_numeric_columns_of_any_type_are_numbers(points, dtype):
    X, y = coarse(points)
    X = (X > 0).astype(float) if dtype == "bool" else np.round(X)
    given = frame("pandas", X).astype(dtype)
    expected = SMO(gamma=0.5).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(SMO(gamma=0.5).fit(given, y).decision_function(given), expected)


def test_a_missing_value_is_told_by_its_place(points):
    X, y = coarse(points)
    given = frame("pandas", X)
    with pytest.raises(ValueError, match=r"NaN at row 4, column 1"):
        SMO().fit(given.assign(income=pd.array([1, 2, 3, 4, None] * 8, dtype="Int64")), y)
    with pytest.raises(ValueError, match="'Paris'"):
        SMO().fit(given.assign(city="Paris"), y)
