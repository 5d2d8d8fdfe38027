"""Time and memory of fits: every registered solver, and each feasibility method.

These depend on the machine and only advise; the counts of the same code are in ``work`` and
``shapes``.
"""

import numpy as np

import marginbench.solvers
from benchmarks import tasks
from marginbench.data_loaders import ldfp
from marginbench.solvers import FeasibilityProblem
from marginbench.solvers.registration import solver_names

_N_POINTS = 2000
#: Where the settings of the small tasks would take minutes.
_SETTINGS = {"CuttingPlane": {"max_iter": 15}}


class _BaseTimed:
    """Six samples a side are the fewest with which asv can tell a difference from noise."""

    timeout = 120
    rounds = 2
    repeat = (3, 3, 10.0)
    warmup_time = 0


class Fit(_BaseTimed):
    """Each solver once, with a Gaussian kernel if it has kernels, without a bias if it can."""

    params = (solver_names(),)
    param_names = ("solver",)

    def setup(self, solver):
        rng = np.random.RandomState(0)
        X = rng.standard_normal((_N_POINTS, 20)).astype(np.float32)
        scores = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(_N_POINTS)
        self.data = X, np.where(scores > 0, 1.0, -1.0)
        # Only this one: another that cannot be imported fails alone.
        classes = {solver: getattr(marginbench.solvers, solver)}
        if tasks.lacks_package(classes[solver]):
            # asv's way to say that a benchmark does not apply here.
            raise NotImplementedError(f"the package of {solver} is not installed")
        kernel = "rbf" if "kernel" in classes[solver]().get_params() else "linear"
        bias = not classes[solver].supports_no_bias
        self.model = tasks.Cell(solver, kernel, "dense", bias).estimator(classes)
        self.model.set_params(**_SETTINGS.get(solver, {}))
        # Compiles what is not compiled yet, outside the clock.
        self.model.fit(*self.data)

    def time_fit(self, solver):
        self.model.fit(*self.data)

    def peakmem_fit(self, solver):
        self.model.fit(*self.data)


class Separate(_BaseTimed):
    """Each feasibility method on a separable problem of 20 rows and 1000 columns."""

    params = (solver_names("feasibility"),)
    param_names = ("method",)

    def setup(self, name):
        method = getattr(marginbench.solvers, name)
        A = ldfp(20, 1000).A
        kernel = "kernel" in method().get_params()
        self.problem = FeasibilityProblem.gram(A.T @ A) if kernel else FeasibilityProblem.linear(A)
        self.method = method(max_iter=100_000)
        self.method.solve(self.problem)

    def time_separate(self, name):
        self.method.solve(self.problem)

    def peakmem_separate(self, name):
        self.method.solve(self.problem)
