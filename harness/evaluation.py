"""Scores of a returned model, recomputed from the task's own data with entries of its own.

Nothing here counts towards a solver's cost, and nothing is taken over from a solver but the
coefficients, the intercept and the positions of the support vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import EvaluationError
from solvers.kernels import RBF, Kernel, Points, Polynomial
from solvers.matrices import Matrix, matmul, squared_norms
from solvers.models import KernelExpansion
from solvers.objectives import dual_value, hinge, primal_value

Array = npt.NDArray[Any]

#: Blocks of kernel entries are at most this large, so that memory does not grow with n^2.
BLOCK_BYTES = 64 * 2**20
# How far alpha may leave [0, C], relative to C, and y'alpha leave 0, relative to sum alpha.
_FEASIBILITY = 1e-6


@dataclass(frozen=True)
class Evaluation:
    """What a model is worth on a task.

    Attributes
    ----------
    train_error, test_error : float
        Fractions of misclassified points; f(x) > 0 predicts the positive class.
    n_support : int
        Training points with a non-zero coefficient.
    primal : float
        1/2 ||w||^2 + C sum hinge, in C units.
    dual : float or None
        Dual value, in C units; None if the coefficients are no feasible dual point.
    squared_norm : float
        ||w||^2.
    mean_hinge : float
        Mean hinge loss on the training set.
    """

    train_error: float
    test_error: float
    n_support: int
    primal: float
    dual: float | None
    squared_norm: float
    mean_hinge: float

    @property
    def gap(self) -> float | None:
        """Primal minus dual, in C units."""
        return None if self.dual is None else self.primal - self.dual

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.primal))


class Evaluator:
    """Evaluates models on one task.

    Parameters
    ----------
    kernel : Kernel
        The task's kernel; the one that a model claims is not looked at.
    C : float
    fit_intercept : bool
        Whether the task has an unregularised bias.
    X_train, X_test : ndarray or csr_matrix, shape (n_points, n_features)
    y_train, y_test : ndarray, shape (n_points,)
        Labels, -1 or +1.
    dual_certificate : bool
        Whether the coefficients are y_i alpha_i of a dual point, so that a gap is defined.
    """

    def __init__(
        self,
        *,
        kernel: Kernel,
        C: float,
        fit_intercept: bool,
        X_train: Matrix,
        y_train: Array,
        X_test: Matrix,
        y_test: Array,
        dual_certificate: bool,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.fit_intercept = fit_intercept
        self.dual_certificate = dual_certificate
        self.X_train = X_train
        self.X_test = X_test
        self.y_train = np.asarray(y_train, dtype=np.float64)
        self.y_test = np.asarray(y_test, dtype=np.float64)
        self._prepared_dtype = ""
        self._prepared: tuple[Points, Points] | None = None

    def evaluate(self, model: KernelExpansion, dtype: str = "float64") -> Evaluation:
        """Scores, errors and objectives of a model.

        Parameters
        ----------
        model : KernelExpansion
        dtype : {"float32", "float64"}
            Type of the kernel entries; sums are float64.

        Raises
        ------
        EvaluationError
            If the model is not a well-formed expansion over the training set.
        """
        # A diverged model has infinities and NaNs; they are a result here, not a surprise.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._evaluate(model, dtype)

    def _evaluate(self, model: KernelExpansion, dtype: str) -> Evaluation:
        coef = self._coefficients(model)
        support = np.flatnonzero(coef)
        intercept = float(model.intercept)
        train, test = self._points(dtype)
        # w's own scores, without the bias: they give the norm too.
        responses = self._scores(train, train, support, coef)
        squared_norm = float(matmul(coef[support], responses[support]))
        scores = responses + intercept
        test_scores = self._scores(test, train, support, coef) + intercept
        margins = self.y_train * scores
        return Evaluation(
            train_error=float(np.mean((scores > 0) != (self.y_train > 0))),
            test_error=float(np.mean((test_scores > 0) != (self.y_test > 0))),
            n_support=len(support),
            primal=primal_value(squared_norm, margins, self.C),
            dual=self._dual(coef[support], self.y_train[support], squared_norm),
            squared_norm=squared_norm,
            mean_hinge=float(hinge(margins).mean()),
        )

    def test_scores(self, model: KernelExpansion, rows: Array) -> Array:
        """f(x) of some test points, with float64 entries, shape (len(rows),)."""
        coef = self._coefficients(model)
        train, _ = self._points("float64")
        points = self.kernel.prepare(self.X_test[rows], "float64", like=train)
        scores = self._scores(points, train, np.flatnonzero(coef), coef)
        return scores + float(model.intercept)

    def score_noise(self, model: KernelExpansion) -> float:
        """A bound on the error of a score that was computed with float32 kernel entries.

        An inner product of float32 numbers is off by a few units of rounding of the largest
        squared norm; the kernel passes that on by its derivative. Over the expansion the errors
        add up to at most sum |coef| times that of one entry.
        """
        train, _ = self._points("float64")
        return float(np.abs(self._coefficients(model)).sum()) * _entry_noise(self.kernel, train)

    def _points(self, dtype: str) -> tuple[Points, Points]:
        # Only the type that is in use is kept: each is a copy of the data.
        if self._prepared is None or dtype != self._prepared_dtype:
            self._prepared = None
            train = self.kernel.prepare(self.X_train, dtype)
            self._prepared = (train, self.kernel.prepare(self.X_test, dtype, like=train))
            self._prepared_dtype = dtype
        return self._prepared

    def _coefficients(self, model: KernelExpansion) -> Array:
        """One signed coefficient per training point, shape (n,)."""
        n = len(self.y_train)
        if not isinstance(model, KernelExpansion):
            raise EvaluationError(
                f"model_ is a {type(model).__name__}, not a solvers.KernelExpansion"
            )
        support, given = np.asarray(model.support), np.asarray(model.coef)
        if given.dtype.kind not in "fiu":
            raise EvaluationError(f"the model's coefficients have type {given.dtype}, not real")
        if support.ndim != 1 or given.shape != support.shape:
            raise EvaluationError(
                f"the model has {given.shape} coefficients for {support.shape} support vectors"
            )
        if len(support) and not np.issubdtype(support.dtype, np.integer):
            raise EvaluationError(f"the model's support has type {support.dtype}, not integers")
        if len(support) and (support.min() < 0 or support.max() >= n):
            raise EvaluationError(
                f"the model's support reaches from {support.min()} to {support.max()}; "
                f"there are {n} training points"
            )
        coef = np.zeros(n)
        np.add.at(coef, support.astype(np.int64), given)
        return coef

    def _scores(self, points: Points, train: Points, support: Array, coef: Array) -> Array:
        """sum_j coef_j k(x_j, x) for each point, block by block, float64."""
        scores = np.zeros(len(points))
        if len(support) == 0:
            return scores
        vectors, weights = train.take(support), coef[support]
        # A float32 block is widened for the sum, so a row costs its float64 size besides.
        step = max(1, BLOCK_BYTES // (12 * len(support)))
        for start in range(0, len(points), step):
            rows = slice(start, min(start + step, len(points)))
            block = self.kernel.block(points.take(rows), vectors)
            scores[rows] = matmul(block.astype(np.float64, copy=False), weights)
        return scores

    def _dual(self, coef: Array, y: Array, squared_norm: float) -> float | None:
        if not self.dual_certificate:
            return None
        alpha = coef * y
        slack = _FEASIBILITY * self.C
        if not bool(np.all((alpha >= -slack) & (alpha <= self.C + slack))):
            return None
        if self.fit_intercept and abs(coef.sum()) > _FEASIBILITY * max(self.C, alpha.sum()):
            return None
        return dual_value(alpha, squared_norm)


def _entry_noise(kernel: Kernel, train: Points) -> float:
    """A bound on the absolute error of one float32 kernel entry between training-like points."""
    unit = 8 * float(np.finfo(np.float32).eps)
    if isinstance(kernel, RBF):
        assert train.norms is not None
        # The exponent is a sum of terms up to 4 gamma ||x||^2; exp passes its error on.
        return unit * (1.0 + 4.0 * float(train.norms.max(initial=0.0)))
    largest = float(squared_norms(train.values).max(initial=0.0))
    if isinstance(kernel, Polynomial):
        reach = abs(kernel.gamma) * largest + abs(kernel.coef0)
        return unit * kernel.degree * float(reach**kernel.degree)
    return unit * largest
