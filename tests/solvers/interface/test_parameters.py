"""Hyper-parameters are declared and documented once, and scikit-learn and the harness see them."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpydoc.docscrape import ClassDoc
from sklearn.base import BaseEstimator, clone

from marginbench.harness.loading import load_class
from marginbench.harness.planning.preflight import DescribeWork
from marginbench.solvers import (
    KernelParameters,
    Solution,
    Solver,
    SolverParameters,
    hyperparameters,
)

PAGE = Path(__file__).parents[3] / "docs" / "adding-a-solver.md"


@hyperparameters
class Scaled(Solver, SolverParameters, KernelParameters):
    """A solver for these tests.

    Parameters
    ----------
    scale_ : float > 0
        Factor of the scores.
    gamma
        Width.
    """

    #: Neither of these is a parameter.
    limit: ClassVar[int] = 3
    supports = True

    scale_: float = 2.0
    degree: int = 5

    def _solve(self, problem, monitor):
        return Solution(problem.expansion(self.scale_ * problem.y), 0, "converged")


def section(cls):
    """Of each documented parameter its type and the lines of its description."""
    return {entry.name: (entry.type, entry.desc) for entry in ClassDoc(cls)["Parameters"]}


def test_a_declared_estimator_has_the_parameters_of_its_bases_and_its_own_like_any_other():
    expected = {
        "kernel": "rbf", "gamma": "scale", "degree": 5, "coef0": 0.0, "dtype": "float32",
        "random_state": None, "fit_intercept": False, "verbose": False, "scale_": 2.0,
    }  # fmt: skip
    assert Scaled().get_params() == expected
    assert list(inspect.signature(Scaled).parameters) == list(expected)
    estimator = Scaled("poly", scale_=3.0)
    for copy in (estimator, clone(estimator), pickle.loads(pickle.dumps(estimator))):
        assert copy.get_params() == {**expected, "kernel": "poly", "scale_": 3.0}
    assert repr(estimator) == "Scaled(kernel='poly', scale_=3.0)"
    assert estimator != Scaled("poly", scale_=3.0)
    assert hash(estimator) == object.__hash__(estimator)
    with pytest.raises(TypeError, match="gama"):
        Scaled(gama=1.0)


def test_the_docstring_is_completed_from_the_bases():
    found = section(Scaled)
    assert list(found) == list(inspect.signature(Scaled).parameters)
    assert found["scale_"] == ("float > 0, default=2.0", ["Factor of the scores."])
    # A default of its own with the description of the base, and the other way round.
    assert found["degree"] == ("int >= 1, default=5", ['Degree of "poly".'])
    assert found["gamma"] == ('float > 0, "scale" or "auto", default="scale"', ["Width."])
    assert found["random_state"][1] == section(SolverParameters)["random_state"][1]


class Plain(Solver):
    """A solver with a constructor of its own."""

    def __init__(self, kernel="rbf", *, gamma=1.0, scale=2.0):
        self.kernel = kernel
        self.gamma = gamma
        self.scale = scale

    def _solve(self, problem, monitor):
        raise NotImplementedError


def test_a_constructor_written_by_hand_holds():
    class Derived(Plain):
        limit: int = 3

    for cls in (Plain, Derived):
        solver = cls("linear", scale=0.5)
        assert clone(solver).get_params() == {"kernel": "linear", "gamma": 1.0, "scale": 0.5}
    with pytest.raises(TypeError, match=r"Derived: Plain\.__init__ is written by hand"):
        hyperparameters(Derived)


def test_fit_keeps_parameters_that_end_like_fitted_attributes(points):
    solver = Scaled(scale_=5.0)
    for _ in range(2):
        assert solver.fit(*points).scale_ == 5.0
        np.testing.assert_array_equal(np.abs(solver.dual_coef_), 5.0)


def test_the_example_of_the_documentation(tmp_path, rbf_task):
    path = tmp_path / "centroid.py"
    path.write_text(re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1])
    centroid = load_class(f"{path}:Centroid")
    assert section(centroid)["scale"][1]
    assert section(centroid)["gamma"] == section(KernelParameters)["gamma"]
    X, y = rbf_task.X, rbf_task.y
    scores = centroid(gamma=0.5, scale=3.0, dtype="float64").fit(X, y).decision_function(X)
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    expected = 3 * (K[:, y > 0].mean(axis=1) - K[:, y <= 0].mean(axis=1))
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-12)

    known = DescribeWork(f"{path}:Centroid", "svm").run(print)
    assert known.defaults == centroid().get_params()
    assert known.required == ()
    assert known.summary.startswith("The difference of the class means")


def test_parameters_do_not_need_docstrings(monkeypatch):
    """``python -OO`` leaves none."""
    bases = (BaseEstimator, SolverParameters, KernelParameters)
    for base in bases[1:]:
        monkeypatch.setattr(base, "__doc__", None)
    bare = type("Bare", bases, {"scale": 2.0, "__annotations__": {"scale": float}})
    found = hyperparameters(bare)("linear", scale=3.0).get_params()
    assert (found["kernel"], found["scale"], bare.__doc__) == ("linear", 3.0, None)
