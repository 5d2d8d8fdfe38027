"""Time of rows of kernel entries, counting included; it depends on the machine and only advises."""

import numpy as np

from benchmarks.generators import dense_points, text_points
from marginbench.solvers import KernelOracle
from marginbench.solvers.kernels import kernel_class, kernel_names

_PARAMS = {
    "rbf": {"gamma": 0.02},
    "laplacian": {"gamma": 0.02},
    "poly": {"gamma": 0.02, "degree": 3, "coef0": 1.0},
}


class Rows:
    """Blocks of rows, and single ones, of each kernel."""

    params = (kernel_names(), ["dense", "sparse"], [64, 1])
    param_names = ("kernel", "storage", "rows")
    rounds = 2
    repeat = (3, 10, 5.0)

    def setup(self, kernel, storage, rows):
        cls = kernel_class(kernel)
        if not cls.evaluates and storage == "sparse":
            raise NotImplementedError("a matrix that is given is dense")
        n = 20_000 if storage == "dense" and cls.evaluates else 4000
        points = dense_points(n, 50) if storage == "dense" else text_points(n, 4000, 50)
        if not cls.evaluates:
            points = points @ points.T
        self.oracle = KernelOracle(cls.of(_PARAMS.get(kernel, {})), points, "float32")
        self.index = np.arange(rows)
        self.oracle.rows(self.index)

    def time_rows(self, kernel, storage, rows):
        self.oracle.rows(self.index)
