"""Predictions of kernel expansions beside those of oneDAL.

``python -m benchmarks.compare.predictions`` prints, for expansions of many shapes, the time of
``decision_function`` over that of scikit-learn-intelex's SVC with the same support vectors, in wall
and CPU time, and how far the decision values are apart. Both are measured in turn in one process
with all cores. It needs ``pip install marginbench[peers]``.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from benchmarks import generators
from benchmarks.compare.common import heading, in_turn, row, timed
from marginbench.solvers import OneDAL

# With a tiny C every training point is a support vector at its bound.
_C = 1e-3
_ROUNDS = 15
_SECONDS = 4.0


@dataclass(frozen=True)
class Shape:
    """An expansion over n_support points and n_points to predict, of one kind of points."""

    points: str
    n_support: int
    n_features: int
    n_points: int
    kernel: str = "rbf"
    dtype: str = "float32"

    def data(self):
        """Support vectors and points to predict, of the type of the kernel entries."""
        n, d = self.n_support + self.n_points, self.n_features
        rng = np.random.default_rng(0)
        if self.points == "dense":
            X = rng.standard_normal((n, d)) / np.sqrt(d)
        elif self.points == "zero-one":
            X = sparse.csr_matrix(generators.zero_one(n, d, rng)[0])
        else:
            X = generators.text_points(n, d, 50)
        X = X.astype(self.dtype)
        return X[: self.n_support], X[self.n_support :]


SHAPES = [
    Shape("dense", 50, 2, 50_000),
    Shape("dense", 500, 10, 1),
    Shape("dense", 500, 10, 1_000),
    Shape("dense", 2_500, 22, 50_000),
    Shape("dense", 7_000, 8, 10_000),
    Shape("dense", 5_000, 2, 10_000),
    Shape("dense", 11_500, 123, 10_000),
    Shape("dense", 20_000, 784, 1),
    Shape("dense", 20_000, 784, 100),
    Shape("dense", 4_000, 784, 10_000),
    Shape("dense", 500, 784, 50_000),
    Shape("dense", 2_500, 22, 20_000, dtype="float64"),
    Shape("dense", 4_000, 784, 2_000, dtype="float64"),
    Shape("dense", 2_500, 22, 20_000, kernel="poly"),
    Shape("dense", 2_500, 100, 10_000, kernel="poly", dtype="float64"),
    Shape("dense", 4_000, 100, 10_000, kernel="linear"),
    Shape("zero-one", 8_000, 300, 10_000),
    Shape("zero-one", 500, 300, 10_000),
    Shape("text", 5_000, 2_000, 5_000),
    Shape("text", 3_000, 10_000, 10_000),
    Shape("text", 3_000, 10_000, 1),
    Shape("text", 3_000, 10_000, 3_000, dtype="float64"),
    Shape("text", 3_000, 10_000, 3_000, kernel="poly"),
    Shape("text", 3_000, 10_000, 3_000, kernel="linear"),
]


def compare(shape):
    """Milliseconds of a call of ours, ratios of wall and CPU time to oneDAL's, the difference.

    The difference is the largest of a decision value, relative to the sum of the coefficients'
    sizes times the largest kernel entry.
    """
    from sklearnex.svm import SVC

    X, Z = shape.data()
    y = np.where(np.arange(X.shape[0]) % 2 == 0, 1.0, -1.0)
    norms = X.multiply(X) if sparse.issparse(X) else X * X
    parameters = {"kernel": shape.kernel, "C": _C, "gamma": 0.5 * X.shape[0] / float(norms.sum())}
    if shape.kernel == "poly":
        parameters |= {"degree": 3, "coef0": 1.0}
    ours = OneDAL(dtype=shape.dtype, **parameters).fit(X, y)
    peer = SVC(**parameters).fit(X, y)
    kernel = ours.model_.kernel
    size = _C * X.shape[0] * float(np.abs(kernel.diag(kernel.prepare(X, "float64"))).max())
    calls = [lambda: ours.decision_function(Z), lambda: np.ravel(peer.decision_function(Z))]
    apart = float(np.abs(calls[0]() - calls[1]()).max()) / size
    each = sum(timed(call, time.perf_counter)[0] for call in calls)
    # Short calls are repeated within a round.
    repeats = max(1, int(5e-3 / each))
    rounds = int(np.clip(_SECONDS / (repeats * each), 3, _ROUNDS))
    cpu, wall, _ = in_turn(calls, rounds, repeats)
    ratios = (np.median(seconds[:, 0] / seconds[:, 1]) for seconds in (wall, cpu))
    return 1e3 * np.median(wall[:, 0]), *ratios, apart


def main():
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", help="only shapes of these points: dense, zero-one, text")
    options = parser.parse_args()
    counts = ("support", "features", "points")
    heading("points", "kernel", "type", *counts, "ms", "wall", "CPU", "apart")
    for shape in SHAPES:
        if options.points in (None, shape.points):
            *numbers, apart = compare(shape)
            shown = [f"{number:.2f}" for number in numbers]
            row(shape.points, shape.kernel, shape.dtype, shape.n_support, shape.n_features,
                shape.n_points, *shown, f"{apart:.1g}")  # fmt: skip


if __name__ == "__main__":
    main()
