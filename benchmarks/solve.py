"""Time and memory of what users wait for: fits, predictions, rows of kernels.

These depend on the machine and only advise; the counts of the same code are in ``work`` and
``shapes``.
"""

import numpy as np
from scipy import sparse

import marginbench.solvers
from benchmarks import tasks
from benchmarks.generators import dense_points, text_points
from marginbench.data_loaders import ldfp
from marginbench.solvers import (
    BSCA,
    SMO,
    FeasibilityProblem,
    KernelOracle,
    LinearSDCA,
    Nystrom,
    RandomFourierFeatures,
)
from marginbench.solvers.kernels import kernel_class, kernel_names
from marginbench.solvers.registration import solver_names

_N_POINTS = 2000
#: Where the settings of the small tasks would take minutes.
_SETTINGS = {"CuttingPlane": {"max_iter": 15}}
_MODELS = {
    "expansion": lambda: SMO(gamma=0.05),
    "budget": lambda: BSCA(gamma=0.05, budget=200, max_epochs=2, random_state=0),
    "landmarks": lambda: Nystrom(gamma=0.05, n_components=200, random_state=0),
    "random features": lambda: RandomFourierFeatures(gamma=0.05, max_epochs=20, random_state=0),
    "linear": lambda: LinearSDCA(max_epochs=20, random_state=0),
}
_KERNELS = {
    "rbf": {"gamma": 0.02},
    "laplacian": {"gamma": 0.02},
    "poly": {"gamma": 0.02, "degree": 3, "coef0": 1.0},
}


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

    peakmem_fit = time_fit


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

    peakmem_separate = time_separate


class Predict(_BaseTimed):
    """Predictions of each form of a model."""

    params = (list(_MODELS), ["dense", "sparse"])
    param_names = ("model", "storage")

    def setup(self, model, storage):
        rng = np.random.RandomState(0)
        X = rng.standard_normal((12_000, 50)).astype(np.float32)
        if storage == "sparse":
            X = sparse.csr_matrix(X * (rng.uniform(size=X.shape) < 0.1))
        y = np.where(rng.uniform(size=2000) < 0.5, 1.0, -1.0)
        self.Z = X[2000:]
        self.model = _MODELS[model]().fit(X[:2000], y)
        self.model.predict(self.Z[:10])

    def time_predict(self, model, storage):
        self.model.predict(self.Z)

    peakmem_predict = time_predict


class Rows(_BaseTimed):
    """Blocks of rows of kernel entries, and single ones, counting included."""

    params = (kernel_names(), ["dense", "sparse"], [64, 1])
    param_names = ("kernel", "storage", "rows")

    def setup(self, kernel, storage, rows):
        cls = kernel_class(kernel)
        if not cls.evaluates and storage == "sparse":
            raise NotImplementedError("a matrix that is given is dense")
        n = 20_000 if storage == "dense" and cls.evaluates else 4000
        points = dense_points(n, 50) if storage == "dense" else text_points(n, 4000, 50)
        if not cls.evaluates:
            points = points @ points.T
        self.oracle = KernelOracle(cls.of(_KERNELS.get(kernel, {})), points, "float32")
        self.index = np.arange(rows)
        self.oracle.rows(self.index)

    def time_rows(self, kernel, storage, rows):
        self.oracle.rows(self.index)
