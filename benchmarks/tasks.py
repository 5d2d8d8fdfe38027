"""Small fixed tasks of the suites: points, kernels, settings of the solvers, and certified optima.

Points come from NumPy's legacy generator, whose streams never change. Only the estimators' public
interface is used, so that the suites run on commits of different age.
"""

import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
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
#: Below this relative suboptimality a change is noise, and a baseline of zero would make any noise
#: a regression.
FLOOR = 1e-3
_N_TRAIN, _N_TEST = 200, 400


class Optimum(NamedTuple):
    """What is known of the least objective of a problem.

    ``bound`` is not above it, and within :data:`REFERENCE_GAP` of it. ``nu`` is the mean hinge loss
    of the reference over its norm: with it the slack-constrained form (SBP12 eq. 2.3) has the same
    solution.
    """

    bound: float
    nu: float


@dataclass(frozen=True)
class Problem:
    """Training points X and test points Z with labels -1 and 1, and what is asked of a solver.

    ``kernel`` gives the entries between the rows of two matrices; None: X holds them already.
    """

    X: object
    y: np.ndarray
    Z: object
    z: np.ndarray
    kernel: Callable | None
    C: float
    bias: bool

    @cached_property
    def K(self):
        """Kernel entries of the training points, from float64."""
        points = self.X.astype(np.float64)
        return points if self.kernel is None else self.kernel(points, points)

    @cached_property
    def optimum(self):
        """Its optimum; a RuntimeError if the certificate of that does not hold.

        The dual variables come from scikit-learn; P and D are computed here.
        """
        K, y = self.K, self.y
        alpha = _dual(K, y, self.C) if self.bias else _dual_without_bias(K, y, self.C)
        scores = K @ (alpha * y)
        norm, hinge = (alpha * y) @ scores, _least_hinge(scores, y, self.bias)
        primal, dual = 0.5 * norm + self.C * hinge, alpha.sum() - 0.5 * norm
        if not primal - dual <= REFERENCE_GAP * primal:
            raise RuntimeError(f"no certified optimum, only {primal} and {dual}")
        return Optimum(dual, hinge / (len(y) * np.sqrt(norm)))

    def suboptimality(self, model):
        """How far the objective of a fitted model is above the optimum, relative to it.

        The objective comes from the model's coefficients and float64 kernel entries.
        """
        X = self.X.astype(np.float64)
        if not hasattr(model, "dual_coef_"):
            w = np.ravel(model.coef_)
            scores, norm = X @ w, w @ w
        else:
            beta = np.ravel(model.dual_coef_)
            if hasattr(model, "support_"):
                scores = self.K[:, model.support_] @ beta
                norm = beta @ scores[model.support_]
            else:  # merged points are none of the training points
                V = np.asarray(model.support_vectors_, dtype=np.float64)
                scores, norm = self.kernel(X, V) @ beta, beta @ self.kernel(V, V) @ beta
        offset = float(np.ravel(model.intercept_)[0]) if self.bias else 0.0
        losses = np.maximum(0.0, 1.0 - self.y * (scores + offset))
        return (0.5 * norm + self.C * losses.sum()) / self.optimum.bound - 1


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
    offsets = y - scores if bias else [0.0]
    return min(np.maximum(0.0, 1.0 - y * (scores + b)).sum() for b in offsets)


class Fit:
    """A solver with its settings on a problem; subclasses say which."""

    solver: str
    problem: Problem
    settings: dict

    def estimator(self, classes):
        """The estimator, not fitted, of one of the classes by name."""
        solver = classes[self.solver]
        known, wanted = solver().get_params(), self.settings
        if "nu" in known:
            wanted = wanted | {"nu": self.problem.optimum.nu}
        return solver(**{name: value for name, value in wanted.items() if name in known})

    def fitted(self, classes):
        """The same fitted."""
        return self.estimator(classes).fit(self.problem.X, self.problem.y)

    def measure(self, classes):
        """The measures of its fit, by name; of one that fails, the reason."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return {"failed": 0, **self.measures(self.fitted(classes))}
        except Exception:  # noqa: BLE001 (whatever it raises is a value of its cell)
            return failed()

    def measures(self, model):
        """The measures of a fitted estimator, by name; a ValueError if its values are none."""
        found = self.counted(model)
        if model.scalarization is not None:
            found["suboptimality"] = max(finite(self.problem.suboptimality(model)), FLOOR)
        return found

    def counted(self, model):
        """Those without the objective's; the test error is in percent."""
        predicted = model.predict(self.problem.Z)
        if not np.isin(predicted, (-1.0, 1.0)).all():
            raise ValueError("predictions are not labels")
        wrong = float(np.mean(predicted != self.problem.z))
        found = {"test_error": 100 * wrong, "iterations": model.n_iter_}
        if model.counters_ is not None:
            found |= counts(model.counters_)
        if hasattr(model, "dual_coef_"):
            found["support_vectors"] = np.ravel(model.dual_coef_).size
        return found


def failed():
    """The measures of what has just raised."""
    return {"failed": 1, "reason": traceback.format_exc()}


def finite(number):
    """The number as a plain one; a ValueError if it is not finite."""
    if not np.isfinite(number):
        raise ValueError(f"the distance from the optimum is {number}")
    return float(number)


def counts(counters):
    """The evaluations that were asked for and computed."""
    found = counters.as_dict()
    rest = found.get("matvec_entries", 0) + found.get("inner_products", 0)
    return {
        "evaluations": found["kernel_evals"] + rest,
        "evaluations_computed": found["kernel_evals_computed"] + rest,
    }


@cache
def problem(kernel, storage, bias):
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
    if kernel == "precomputed":
        X, function = _FUNCTIONS["rbf"](X, X[:_N_TRAIN], **KERNELS["rbf"]), None
    else:
        function = partial(_FUNCTIONS[kernel], **KERNELS[kernel])
    return Problem(X[:_N_TRAIN], y[:_N_TRAIN], X[_N_TRAIN:], y[_N_TRAIN:], function, C, bias)


@dataclass(frozen=True)
class Cell(Fit):
    """One fit: a solver on a task."""

    solver: str
    kernel: str
    storage: str
    bias: bool

    @property
    def name(self):
        return f"{self.solver} {self.kernel} {self.storage}{' bias' if self.bias else ''}"

    @property
    def problem(self):
        return problem(self.kernel, self.storage, self.bias)

    @property
    def settings(self):
        common = {"C": C, "random_state": 0, "fit_intercept": self.bias, "kernel": self.kernel}
        return common | KERNELS[self.kernel] | SETTINGS[self.solver]


def lacks_package(solver):
    """Whether a solver class needs a package that is not installed."""
    package = getattr(solver, "requires", "")
    try:
        return bool(package) and not metadata.version(package)
    except metadata.PackageNotFoundError:
        return True


def cells(classes):
    """Every combination that a solver is for; linear ones are for the linear kernel."""
    return [
        Cell(name, kernel, storage, bias)
        for name, solver in classes.items()
        for kernel in (
            FEWER_KERNELS.get(name, KERNELS) if "kernel" in solver().get_params() else ["linear"]
        )
        for storage in STORAGE
        if (kernel, storage) != ("precomputed", "sparse")
        for bias in (False, True)
        if (solver.supports_bias if bias else solver.supports_no_bias)
    ]
