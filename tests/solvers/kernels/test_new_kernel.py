"""A kernel is one file: nothing else names it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from marginbench import solvers
from marginbench.solvers import SMO, Kernel, register_kernel
from marginbench.solvers.kernels import Points, is_registered
from marginbench.solvers.kernels.base import placed

ROOT = Path(solvers.__file__).parents[1]
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
USE = """
import json, sys
import numpy as np
from marginbench import Model, SMO, solvers
from marginbench.harness.study.toml import load_study

X = np.random.default_rng(0).standard_normal((30, 2))
y = np.where(X[:, 0] > 0, 1, -1)
(task,) = load_study(sys.argv[1]).task
fit = SMO(**task.kernel_parameters, C=task.C, dtype="float64", tol=1e-8).fit(X, y)
by_name = SMO("rational", gamma=0.5, dtype="float64", tol=1e-8).fit(X, y)
fit.model_.save(sys.argv[2])
assert Model.load(sys.argv[2]).kernel == fit.model_.kernel == solvers.Rational(0.5, 2.0)
print(json.dumps({
    "description": task.kernel_description,
    "scores": fit.decision_function(X).tolist(),
    "by_name": by_name.decision_function(X).tolist(),
}))
"""


def test_one_file_makes_a_kernel_of_solvers_models_and_studies(tmp_path):
    # A copy of the package, with its bytecode, and one more file.
    package = tmp_path / "copy" / "marginbench"
    shutil.copytree(Path(sys.modules["marginbench"].__file__).parent, package)
    for name in ("data_loaders", "solvers", "harness", "studies"):
        if not (package / name).is_dir():
            shutil.copytree(ROOT / name, package / name)
    (package / "solvers" / "kernels" / "rational.py").write_text(RATIONAL)
    (tmp_path / "study.toml").write_text(STUDY)
    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path / "study.toml"), str(tmp_path / "model.npz")],
        cwd=package.parent,
        # Interpreted: compiling takes longer than these thirty points.
        env=os.environ | {"PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["description"] == {"name": "rational", "gamma": 0.5, "power": 2.0}

    X = np.random.default_rng(0).standard_normal((30, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    for scores, power in (("scores", 2.0), ("by_name", 1.0)):
        K = (1 + 0.5 * np.square(X[:, None] - X).sum(axis=2)) ** -power
        expected = SMO("precomputed", dtype="float64", tol=1e-8).fit(K, y).decision_function(K)
        np.testing.assert_allclose(found[scores], expected, atol=1e-6)


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
