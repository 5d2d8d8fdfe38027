"""Small fixed tasks of the suites: points, kernels, settings of the solvers, and certified optima.

Points come from NumPy's legacy generator, whose streams never change. Only the estimators' public
interface is used, so that the suites run on commits of different age.
"""

from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise
from sklearn.svm import SVC

C = 1.0
#: The parameters of each kernel.
KERNELS = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.2},
    "poly": {"gamma": 0.3, "degree": 2, "coef0": 1.0},
    "linear": {},
    "precomputed": {},
}
STORAGE = ("dense", "sparse")
#: Solvers without every kernel -> those that they have.
FEWER_KERNELS = {
    "BSCA": ("rbf",),
    "BSGD": ("rbf",),
    "RandomFourierFeatures": ("rbf",),
    "LIBSVM": ("rbf", "poly", "linear", "precomputed"),
    "LIBSVMSubsample": ("rbf", "poly", "linear", "precomputed"),
    "OneDAL": ("rbf", "poly", "linear"),
}
#: What the fits are given beside kernel, C, bias and seed. They end at a fixed amount of work or
#: at a tolerance that takes a fraction of a second.
SETTINGS = {
    "SMO": {"tol": 1e-3},
    "SBP": {"max_epochs": 10},
    "BatchPerceptron": {"max_iter": 500},
    "Pegasos": {"max_epochs": 10},
    "Perceptron": {"max_epochs": 10},
    "SDCA": {"max_epochs": 50, "tol": 1e-3},
    "SGD": {"max_epochs": 10},
    "BSCA": {"budget": 40, "max_epochs": 5},
    "BSGD": {"budget": 40, "max_epochs": 5},
    "LinearPegasos": {"max_epochs": 10},
    "LinearSDCA": {"max_epochs": 200, "tol": 1e-3},
    "SIMBA": {"max_epochs": 20},
    "BundleClassifier": {"tol": 1e-3},
    "OCAS": {"tol": 1e-3},
    "LowRankSVM": {"n_components": 60, "max_epochs": 200, "tol": 1e-3},
    "Nystrom": {"n_components": 60, "max_epochs": 200, "tol": 1e-3},
    "RandomFourierFeatures": {"max_epochs": 100, "tol": 1e-3},
    "Falkon": {"n_components": 60, "tol": 1e-6},
    "EigenPro": {"n_subsample": 100, "max_batch_size": 20, "max_epochs": 10},
    "CuttingPlane": {"tol": 1e-3},
    "MPKFP": {"max_iter": 200},
    "KPCT": {"max_iter": 200},
    "KVN": {"max_iter": 200},
    "SNKP": {"max_iter": 200},
    "ISNKPVN": {"max_iter": 200},
    "LIBSVM": {"tol": 1e-3},
    "LIBSVMSubsample": {"n_samples": 0.5, "tol": 1e-3},
    "OneDAL": {"tol": 1e-3},
    "SklearnSGD": {"max_epochs": 200, "min_improvement": 1e-3},
    "LIBLINEAR": {"max_epochs": 200, "tol": 1e-3},
    "LIBLINEAROfficial": {"tol": 1e-3},
}
_FUNCTIONS = {
    "rbf": pairwise.rbf_kernel,
    "laplacian": pairwise.laplacian_kernel,
    "poly": pairwise.polynomial_kernel,
    "linear": pairwise.linear_kernel,
}
#: Largest certified gap of a reference optimum, relative to its value.
REFERENCE_GAP = 1e-6
_N_TRAIN, _N_TEST = 200, 400


@dataclass(frozen=True)
class Points:
    """Training and test points of one storage, with labels -1 and 1."""

    X: object
    y: np.ndarray
    Z: object
    z: np.ndarray

    def dense(self):
        """Both as float64 arrays."""
        return [
            np.asarray(part.todense() if sparse.issparse(part) else part, dtype=np.float64)
            for part in (self.X, self.Z)
        ]


@cache
def points(storage):
    """Two overlapping classes, of numbers ("dense") or of rows like documents ("sparse")."""
    rng = np.random.RandomState(0)
    n = _N_TRAIN + _N_TEST
    if storage == "dense":
        X = rng.standard_normal((n, 6))
        scores = X[:, 0] + X[:, 1] * X[:, 2] + 0.6 * rng.standard_normal(n)
    else:
        X = (rng.uniform(size=(n, 80)) < 0.1) * rng.uniform(0.5, 1.5, size=(n, 80))
        scores = X @ rng.standard_normal(80) + 0.3 * rng.standard_normal(n)
        X = sparse.csr_matrix(X)
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    return Points(X[:_N_TRAIN], y[:_N_TRAIN], X[_N_TRAIN:], y[_N_TRAIN:])


@cache
def gram(kernel, storage):
    """Kernel entries of training points with training points and of test points with them."""
    X, Z = points(storage).dense()
    if kernel == "precomputed":
        return gram("rbf", storage)
    function, params = _FUNCTIONS[kernel], KERNELS[kernel]
    return function(X, X, **params), function(Z, X, **params)


@dataclass(frozen=True)
class Cell:
    """One fit: a solver on a task."""

    solver: str
    kernel: str
    storage: str
    bias: bool

    @property
    def name(self):
        return f"{self.solver} {self.kernel} {self.storage}{' bias' if self.bias else ''}"

    def estimator(self, classes):
        """The estimator, not fitted, of one of the classes by name."""
        solver = classes[self.solver]
        known = solver().get_params()
        wanted = {"C": C, "random_state": 0, "fit_intercept": self.bias, **SETTINGS[self.solver]}
        if "nu" in known:
            wanted["nu"] = optimum(self.kernel, self.storage, self.bias).nu
        if "kernel" in known:
            wanted |= {"kernel": self.kernel, **KERNELS[self.kernel]}
        return solver(**{name: value for name, value in wanted.items() if name in known})

    def training(self):
        """What the estimator is fitted to."""
        data = points(self.storage)
        return (gram("precomputed", self.storage)[0] if self._given else data.X), data.y

    def testing(self):
        """What it predicts, and the labels there."""
        data = points(self.storage)
        return (gram("precomputed", self.storage)[1] if self._given else data.Z), data.z

    @property
    def _given(self):
        return self.kernel == "precomputed"


def lacks_package(solver):
    """Whether a solver class needs a package that is not installed."""
    package = getattr(solver, "requires", "")
    try:
        return bool(package) and not metadata.version(package)
    except metadata.PackageNotFoundError:
        return True


def cells(classes):
    """Every combination that a solver is for."""
    return [
        Cell(name, kernel, storage, bias)
        for name, solver in classes.items()
        for kernel in kernels_of(name, solver)
        for storage in STORAGE
        if (kernel, storage) != ("precomputed", "sparse")
        for bias in (False, True)
        if (solver.supports_bias if bias else solver.supports_no_bias)
    ]


def kernels_of(name, solver):
    """The kernels that a solver is tried with; a linear one is with the linear kernel."""
    if "kernel" not in solver().get_params():
        return ("linear",)
    return FEWER_KERNELS.get(name, tuple(KERNELS))


class Optimum(NamedTuple):
    """What is known of the least objective of a task.

    ``bound`` is not above it, and within :data:`REFERENCE_GAP` of it. ``nu`` is the mean hinge loss
    of the reference over its norm: with it the slack-constrained form (SBP12 eq. 2.3) has the same
    solution.
    """

    bound: float
    nu: float


@cache
def optimum(kernel, storage, bias):
    """The optimum of a task, from float64 kernel entries."""
    return certified(gram(kernel, storage)[0], points(storage).y, C, bias)


def certified(K, y, C, bias):
    """The optimum for a kernel matrix of float64; a RuntimeError if its certificate does not hold.

    The dual variables come from scikit-learn; P and D are computed here.
    """
    alpha = _dual(K, y, C) if bias else _dual_without_bias(K, y, C)
    scores = K @ (alpha * y)
    norm, hinge = (alpha * y) @ scores, _least_hinge(scores, y, bias)
    primal, dual = 0.5 * norm + C * hinge, alpha.sum() - 0.5 * norm
    if not primal - dual <= REFERENCE_GAP * primal:
        raise RuntimeError(f"no certified optimum, only {primal} and {dual}")
    return Optimum(dual, hinge / (len(y) * np.sqrt(norm)))


def _dual(K, y, C):
    model = SVC(kernel="precomputed", C=C, tol=1e-9).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


def _dual_without_bias(K, y, C):
    """That of each point and its mirror image at the origin: by symmetry their best bias is 0."""
    Q = K * np.outer(y, y)
    alpha = _dual(np.block([[Q, -Q], [-Q, Q]]), np.repeat([1.0, -1.0], len(y)), C / 2)
    return alpha[: len(y)] + alpha[len(y) :]


def _least_hinge(scores, y, bias):
    """The sum of the hinge losses at the best offset, one of the breaks of a piecewise line."""
    if not bias:
        return np.maximum(0.0, 1.0 - y * scores).sum()
    offsets = y - scores
    return min(np.maximum(0.0, 1.0 - y * (scores + b)).sum() for b in offsets)


def suboptimality(model, cell):
    """How far the objective of a fitted model is above the optimum, relative to it.

    The objective comes from the model's coefficients and float64 kernel entries.
    """
    data, best = points(cell.storage), optimum(cell.kernel, cell.storage, cell.bias)
    if hasattr(model, "dual_coef_") and not hasattr(model, "support_"):
        # Merged points are none of the training points.
        X, V = data.dense()[0], np.asarray(model.support_vectors_, dtype=np.float64)
        beta = np.ravel(model.dual_coef_)
        function, params = _FUNCTIONS[cell.kernel], KERNELS[cell.kernel]
        scores, norm = function(X, V, **params) @ beta, beta @ function(V, V, **params) @ beta
    else:
        scores, norm = scores_and_norm(model, gram(cell.kernel, cell.storage)[0], data.dense()[0])
    offset = float(np.ravel(model.intercept_)[0]) if cell.bias else 0.0
    return objective(scores + offset, norm, data.y, C) / best.bound - 1


def scores_and_norm(model, K, X):
    """Scores of the training points, and the squared norm, from a model's coefficients.

    The model has ``support_`` and ``dual_coef_``, or ``coef_``; K is that of the training points X.
    """
    if hasattr(model, "dual_coef_"):
        beta = np.ravel(model.dual_coef_)
        scores = K[:, model.support_] @ beta
        return scores, beta @ scores[model.support_]
    w = np.ravel(model.coef_)
    return X @ w, w @ w


def objective(scores, squared_norm, y, C):
    """1/2 ||w||^2 + C sum of hinge losses."""
    return 0.5 * squared_norm + C * np.maximum(0.0, 1.0 - y * scores).sum()
