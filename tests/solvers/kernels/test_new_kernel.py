"""A kernel is one file: nothing else names it."""

import importlib
import shutil
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from marginbench import Model, solvers
from marginbench.harness.study.toml import load_study
from marginbench.solvers import SMO, Kernel, kernels, register_kernel, registration
from marginbench.solvers.kernels import Points, is_registered
from marginbench.solvers.kernels.base import placed

RATIONAL = '''
from dataclasses import dataclass

import numpy as np

from marginbench.solvers.kernels.base import Kernel, Points, placed, rounding_unit
from marginbench.solvers.kernels.parameters import finite, parameter, width
from marginbench.solvers.numeric.matrices import as_dense
from marginbench.solvers.registration import register_kernel


@register_kernel("rational")
@dataclass(frozen=True)
class Rational(Kernel):
    """(1 + gamma ||x - z||^2)^-power."""

    words = "rational quadratic kernel"
    unit_diagonal = True

    gamma: float = parameter(width, default=1.0)
    power: float = parameter(finite, default=1.0)

    def prepare(self, X, dtype, like=None):
        return Points(np.asarray(as_dense(X), dtype=dtype))

    def block(self, A, B, out=None):
        squares = np.square(A.values[:, None] - B.values).sum(axis=2)
        return placed((1 + self.gamma * squares) ** -self.power, out)

    def diag(self, A):
        return np.ones(len(A))

    def entry_noise(self, points, dtype="float32"):
        return rounding_unit(dtype) * (1 + 4 * self.gamma * np.square(points.values).sum())
'''
STUDY = """
kind = "svm"
name = "rational"

[[task]]
dataset = "digits"
kernel = "rational"
gamma = 0.5
C = 1.0
kernel_params = { power = 2.0 }

[[solver]]
name = "SMO"
"""


@pytest.fixture
def rational(tmp_path, monkeypatch):
    """The folder of kernels has one more file."""
    folder = tmp_path / "kernels"
    shutil.copytree(kernels.__path__[0], folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "rational.py").write_text(RATIONAL)
    monkeypatch.setattr(registration, "_HERE", tmp_path)
    monkeypatch.setattr(kernels, "__path__", [*kernels.__path__, str(folder)])
    registration.kernel_entries.cache_clear()
    yield importlib.reload(solvers)
    monkeypatch.undo()
    registration.kernel_entries.cache_clear()
    importlib.reload(solvers)
    sys.modules.pop("marginbench.solvers.kernels.rational", None)


@pytest.mark.usefixtures("rational")
def test_one_file_makes_a_kernel_of_solvers_models_and_studies(tmp_path, linear_task):
    (tmp_path / "study.toml").write_text(STUDY)
    (task,) = load_study(tmp_path / "study.toml").task
    assert task.kernel_description == {"name": "rational", "gamma": 0.5, "power": 2.0}
    X, y = linear_task.X, linear_task.y
    exact = {"dtype": "float64", "tol": 1e-8}
    fit = SMO(**task.kernel_parameters, C=task.C, **exact).fit(X, y)
    by_name = SMO("rational", gamma=0.5, **exact).fit(X, y)
    fit.model_.save(tmp_path / "model.npz")
    loaded = Model.load(tmp_path / "model.npz")
    assert loaded.kernel == solvers.Rational(0.5, 2.0)
    for found, power in ((fit, 2.0), (loaded, 2.0), (by_name, 1.0)):
        K = (1 + 0.5 * cdist(X, X, "sqeuclidean")) ** -power
        expected = SMO("precomputed", **exact).fit(K, y).decision_function(K)
        np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-6)


@register_kernel("constant")
@dataclass(frozen=True)
class Constant(Kernel):
    """A kernel of somebody's own file."""

    def prepare(self, X, dtype, like=None):
        return Points(X.astype(dtype))

    def block(self, A, B, out=None):
        return placed(A.values @ B.values.T + A.values.dtype.type(1), out)

    def diag(self, A):
        return (A.values**2).sum(axis=1) + 1.0


def test_a_kernel_of_another_file_is_passed_itself(linear_task):
    X, y = linear_task.X, linear_task.y
    K = X @ X.T + 1
    found = SMO(Constant(), dtype="float64", tol=1e-8).fit(X, y).decision_function(X)
    expected = SMO("precomputed", dtype="float64", tol=1e-8).fit(K, y).decision_function(K)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert not is_registered(Constant())
    with pytest.raises(ValueError, match="unknown kernel 'constant'"):
        SMO("constant").fit(X, y)
