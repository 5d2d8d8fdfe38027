"""Time and memory of fits: every registered solver, shapes of data, real data, parts of solvers.

These depend on the machine and only advise; the counts of the same code are in ``work`` and
``shapes``.
"""

import numpy as np

import marginbench.solvers
from benchmarks import generators, shapes, tasks
from benchmarks.compare.exact_solvers import TASKS, ours
from marginbench.data_loaders import DataError, ldfp
from marginbench.solvers import BSCA, MPLFP, FeasibilityProblem
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


class Shape(_BaseTimed):
    """The fits of the suite ``shapes``, with all threads."""

    params = (list(shapes.CELLS),)
    param_names = ("cell",)
    rounds = 1
    repeat = (6, 6, 10.0)
    number = 1

    def setup(self, name):
        self.model = shapes.estimator(name)
        self.data = shapes.CELLS[name].training()
        self.model.fit(*self.data)

    def time_fit(self, name):
        self.model.fit(*self.data)


class Exact(_BaseTimed):
    """The exact solver on real data; sets without files are left out."""

    params = (sorted(TASKS),)
    param_names = ("task",)
    timeout = 600
    rounds = 1
    repeat = (1, 3, 10.0)
    number = 1

    def setup(self, name):
        try:
            self.X, self.y, *_ = TASKS[name].data()
        except DataError as error:
            # asv's way to say that a benchmark does not apply here.
            raise NotImplementedError(str(error)) from error
        self.solver = ours(TASKS[name], 1024.0)
        ours(TASKS[name], 100.0).fit(self.X[::50], self.y[::50])

    def time_fit(self, name):
        self.solver.fit(self.X, self.y)

    def peakmem_fit(self, name):
        self.solver.fit(self.X, self.y)


class Epoch(_BaseTimed):
    """An epoch on a budget, for each way to keep the budget."""

    params = (["merge", "merge-golden", "remove"],)
    param_names = ("maintenance",)

    def setup(self, maintenance):
        self.X, self.y = generators.overlapping(20_000, 18, np.random.default_rng(0))
        self.solver = BSCA(
            C=32.0, gamma=2.0**-7, budget=500, max_epochs=1, maintenance=maintenance, random_state=0
        )
        self.solver.fit(self.X[:2000], self.y[:2000])

    def time_epoch(self, maintenance):
        self.solver.fit(self.X, self.y)

    def peakmem_epoch(self, maintenance):
        self.solver.fit(self.X, self.y)


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


class Iteration(_BaseTimed):
    """Twelve iterations of mirror prox, for columns that are stored in either order."""

    params = ([100, 1000], ["C", "F"])
    param_names = ("m", "order")

    def setup(self, m, order):
        self.problem = FeasibilityProblem.linear(np.asarray(ldfp(m, 5000).A, order=order))
        self.method = MPLFP(max_iter=12, tol=0.0, stop="gap")
        self.method.solve(self.problem)

    def time_iterations(self, m, order):
        self.method.solve(self.problem)
