"""Returned models, checked, with scores that are recomputed on the task's own points.

A model's arrays are taken over (coefficients, positions, free points, weights); the kernel that it
claims and the scores that it would give are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...solvers.kernels import Kernel, Linear, Points
from ...solvers.kernels.scoring import linear_scores
from ...solvers.models.fourier import FourierExpansion
from ...solvers.models.voting import votes
from ...solvers.numeric.matrices import Matrix, matmul
from ..errors import EvaluationError
from .entries import KeptEntries
from .plain import PlainModel

Array = npt.NDArray[Any]

#: Blocks of kernel entries are at most this large, so that memory does not grow with n^2.
BLOCK_BYTES = 64 * 2**20


class TaskPoints:
    """The points of a task, prepared for its kernel in the type that is in use.

    Parameters
    ----------
    kernel : Kernel
    X_train, X_test : ndarray or csr_matrix, shape (n_points, n_features)
    """

    def __init__(self, kernel: Kernel, X_train: Matrix, X_test: Matrix) -> None:
        self.kernel = kernel
        self.X_train, self.X_test = X_train, X_test
        self._dtype = ""
        self._train: Points | None = None
        self._test: Points | None = None
        self._kept: KeptEntries | None = None

    @property
    def n_train(self) -> int:
        return int(self.X_train.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X_train.shape[1])

    def train(self, dtype: str) -> Points:
        """The training points."""
        # Only one type is kept: each is a copy of the data.
        if self._train is None or dtype != self._dtype:
            self._train, self._test = self.kernel.prepare(self.X_train, dtype), None
            self._kept = None
            self._dtype = dtype
        return self._train

    def kept(self, dtype: str) -> KeptEntries | None:
        """Entries of all points, training points first, that are kept for further states.

        None for float64 entries, which the last state alone has, and if there are too many.
        """
        n_train, n_test = self.n_train, int(self.X_test.shape[0])
        if dtype != "float32" or not KeptEntries.fit(n_train, n_train + n_test, dtype):
            return None
        train = self.train(dtype)
        if self._kept is None:
            self._kept = KeptEntries(self.kernel, train, train, self.test(dtype))
        return self._kept

    def test(self, dtype: str, rows: Array | None = None) -> Points:
        """The test points, or some of them."""
        train = self.train(dtype)
        if rows is not None:
            return self.kernel.prepare(self.X_test[rows], dtype, like=train)
        if self._test is None:
            self._test = self.kernel.prepare(self.X_test, dtype, like=train)
        return self._test


class Predictor(ABC):
    """A model on a task.

    Attributes
    ----------
    n_support : int
    intercept : float
    dual_coef : ndarray, shape (n_train,), or None
        The coefficients that can be y_i alpha_i of a dual point.
    """

    n_support: int
    intercept: float
    dual_coef: Array | None = None

    @abstractmethod
    def train_scores(self, dtype: str) -> Array:
        """f(x) without the intercept, of the training points, float64."""

    @abstractmethod
    def test_scores(self, dtype: str, rows: Array | None = None) -> Array:
        """f(x) without the intercept, of the test points or some of them, float64."""

    @abstractmethod
    def squared_norm(self, train_scores: Array, dtype: str) -> float | None:
        """||w||^2; None if the predictor is no linear function of any features."""

    def dual_squared_norm(self, squared_norm: float) -> float:
        """||w(alpha)||^2 of ``dual_coef``, if w itself has this squared norm."""
        return squared_norm

    def noise(self) -> float:
        """A bound on the error of a score that was computed with float32 kernel entries."""
        return 0.0

    def score_bounds(self, rows: Array) -> tuple[Array, Array]:
        """Between what the scores of some test points lie if they have float32 entries."""
        scores = self.test_scores("float64", rows) + self.intercept
        return scores - self.noise(), scores + self.noise()


def predictor_of(model: PlainModel, points: TaskPoints) -> Predictor:
    """The model on these points.

    Raises
    ------
    EvaluationError
        If it is not well-formed, or not one of this task.
    """
    return _PREDICTORS[model.kind](model, points)


class _OnTrainingPoints(Predictor):
    """An expansion over training points."""

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        self.points = points
        self.dual_coef = _coefficients(model, points.n_train)
        self.support = np.flatnonzero(self.dual_coef)
        self.coef = self.dual_coef[self.support]
        self.n_support = len(self.support)
        self.intercept = model.intercept
        self._all_scores: Array | None = None

    def train_scores(self, dtype: str) -> Array:
        known = self._kept_scores(dtype)
        if known is not None:
            return known[: self.points.n_train]
        return self._scores(self.points.train(dtype), dtype)

    def test_scores(self, dtype: str, rows: Array | None = None) -> Array:
        known = None if rows is not None else self._kept_scores(dtype)
        if known is not None:
            return known[self.points.n_train :]
        return self._scores(self.points.test(dtype, rows), dtype)

    def _kept_scores(self, dtype: str) -> Array | None:
        """Scores of all points from kept entries; None if none are kept."""
        kept = self.points.kept(dtype)
        if kept is None:
            return None
        if self._all_scores is None:
            self._all_scores = kept.scores(self.support, self.coef)
        return self._all_scores

    def squared_norm(self, train_scores: Array, dtype: str) -> float:
        return float(matmul(self.coef, train_scores[self.support]))

    def noise(self) -> float:
        # Errors of the entries add up to at most sum |coef| times that of one.
        return _summed_noise(self.points.kernel, self.coef, self.points.train("float64"))

    def _scores(self, Z: Points, dtype: str) -> Array:
        vectors = self.points.train(dtype).take(self.support)
        return _expansion_scores(self.points.kernel, Z, vectors, self.coef)


class _OnFreePoints(Predictor):
    """An expansion over points of its own."""

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        self.points = points
        self.coef = _real_vector("coefficients", model.arrays["coef"])
        self.free = model.arrays["points"]
        if self.free.shape != (len(self.coef), points.n_features):
            raise EvaluationError(
                f"the model has points of shape {self.free.shape} for {len(self.coef)} "
                f"coefficients in {points.n_features} dimensions"
            )
        if self.free.dtype.kind not in "fiu":
            raise EvaluationError(f"the model's points have type {self.free.dtype}, not real")
        if not np.isfinite(self.free).all():
            raise EvaluationError("the model has points that are not finite")
        self.n_support = int(np.count_nonzero(self.coef))
        self.intercept = model.intercept
        self._prepared: dict[str, Points] = {}

    def train_scores(self, dtype: str) -> Array:
        return self._scores(self.points.train(dtype), dtype)

    def test_scores(self, dtype: str, rows: Array | None = None) -> Array:
        return self._scores(self.points.test(dtype, rows), dtype)

    def squared_norm(self, train_scores: Array, dtype: str) -> float:
        return float(matmul(self.coef, self._scores(self._vectors(dtype), dtype)))

    def noise(self) -> float:
        # Points of its own may lie farther out than any training point.
        sets = (self.points.train("float64"), self._vectors("float64"))
        return _summed_noise(self.points.kernel, self.coef, *sets)

    def _vectors(self, dtype: str) -> Points:
        if dtype not in self._prepared:
            try:
                train = self.points.train(dtype)
                prepared = self.points.kernel.prepare(self.free, dtype, like=train)
            except ValueError as error:
                raise EvaluationError(f"the model's points: {error}") from None
            self._prepared[dtype] = prepared
        return self._prepared[dtype]

    def _scores(self, Z: Points, dtype: str) -> Array:
        return _expansion_scores(self.points.kernel, Z, self._vectors(dtype), self.coef)


class _Weights(Predictor):
    """A vector of weights, on a task with a linear kernel."""

    n_support = 0

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        if not isinstance(points.kernel, Linear):
            raise EvaluationError(
                f"a linear model is no solution of a task with the {points.kernel.name} kernel"
            )
        self.points = points
        self.weights = _real_vector("weights", model.arrays["weights"], points.n_features)
        self.intercept = model.intercept
        dual_coef = model.arrays.get("dual_coef")
        if dual_coef is not None:
            self.dual_coef = _real_vector("dual coefficients", dual_coef, points.n_train)

    def train_scores(self, dtype: str) -> Array:
        return linear_scores(self.points.X_train, self.weights)

    def test_scores(self, dtype: str, rows: Array | None = None) -> Array:
        X = self.points.X_test
        return linear_scores(X if rows is None else X[rows], self.weights)

    def squared_norm(self, train_scores: Array, dtype: str) -> float:
        return float(matmul(self.weights, self.weights))

    def dual_squared_norm(self, squared_norm: float) -> float:
        # The weights need not be those of the dual point: that one is judged by itself.
        assert self.dual_coef is not None
        own = linear_scores(self.points.X_train.T, self.dual_coef)
        return float(matmul(own, own))


class _OnFeatures(Predictor):
    """Weights on random Fourier features."""

    n_support = 0

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        self.points = points
        frequencies = model.arrays["frequencies"]
        if frequencies.ndim != 2 or frequencies.shape[1] != points.n_features:
            raise EvaluationError(
                f"the model has frequencies of shape {frequencies.shape}; the points have "
                f"{points.n_features} features"
            )
        weights = _real_vector("weights", model.arrays["weights"], 2 * len(frequencies))
        self.model = FourierExpansion(frequencies, weights)
        self.intercept = model.intercept

    def train_scores(self, dtype: str) -> Array:
        return self.model.decision_function(self.points.X_train)

    def test_scores(self, dtype: str, rows: Array | None = None) -> Array:
        X = self.points.X_test
        return self.model.decision_function(X if rows is None else X[rows])

    def squared_norm(self, train_scores: Array, dtype: str) -> float:
        return self.model.squared_norm()


class _Votes(Predictor):
    """The vote of every predictor of a perceptron's run."""

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        self.last = _OnTrainingPoints(model, points)
        self.points = points
        self.mistakes = model.arrays["mistakes"]
        self.survivals = model.arrays["survivals"]
        for name, given in (("mistakes", self.mistakes), ("survivals", self.survivals)):
            if given.dtype.kind not in "iu" or given.ndim != 1:
                raise EvaluationError(f"the model's {name} are no sequence of whole numbers")
        if len(self.mistakes) != len(self.survivals):
            raise EvaluationError(
                f"the model has {len(self.mistakes)} mistakes and {len(self.survivals)} survivals"
            )
        self.n_support = self.last.n_support
        self.intercept = self.last.intercept
        self.signs = np.sign(self.last.coef)
        inside = (self.mistakes >= 0) & (self.mistakes < self.n_support)
        counted = np.bincount(self.mistakes[inside], minlength=self.n_support)
        if not inside.all() or not np.array_equal(counted * self.signs, self.last.coef):
            raise EvaluationError("the model's mistakes do not add up to its last predictor")

    def train_scores(self, dtype: str) -> Array:
        return self._votes(self.points.train(dtype), dtype, 0.0)[0]

    def test_scores(self, dtype: str, rows: Array | None = None) -> Array:
        return self._votes(self.points.test(dtype, rows), dtype, 0.0)[0]

    def squared_norm(self, train_scores: Array, dtype: str) -> None:
        return None

    def score_bounds(self, rows: Array) -> tuple[Array, Array]:
        # The vote of a predictor whose score is zero but for rounding may go either way.
        noise = self.points.kernel.entry_noise(self.points.train("float64"))
        return self._votes(self.points.test("float64", rows), "float64", noise)

    def _votes(self, Z: Points, dtype: str, noise: float) -> tuple[Array, Array]:
        low, high = np.zeros(len(Z)), np.zeros(len(Z))
        vectors = self.points.train(dtype).take(self.last.support)
        for rows in _blocks(len(Z), self.n_support):
            block = self.points.kernel.block(Z.take(rows), vectors)
            votes(
                block, self.signs, self.mistakes, self.survivals, noise, low[rows], high[rows]
            )  # fmt: skip
        return low, high


_PREDICTORS: dict[str, Callable[[PlainModel, TaskPoints], Predictor]] = {
    "kernel expansion": _OnTrainingPoints,
    "budget expansion": _OnFreePoints,
    "linear": _Weights,
    "Fourier expansion": _OnFeatures,
    "voted expansion": _Votes,
}


def _coefficients(model: PlainModel, n: int) -> Array:
    """One signed coefficient per training point, shape (n,)."""
    support, given = model.arrays["support"], model.arrays["coef"]
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


def _real_vector(name: str, given: object, length: int | None = None) -> Array:
    """A float64 vector of this length, if one is given."""
    values = np.asarray(given)
    if values.dtype.kind not in "fiu":
        raise EvaluationError(f"the model's {name} have type {values.dtype}, not real")
    if values.ndim != 1 or (length is not None and len(values) != length):
        expected = "a vector" if length is None else f"({length},)"
        raise EvaluationError(f"the model's {name} have shape {values.shape}, not {expected}")
    return values.astype(np.float64)


def _blocks(n: int, width: int) -> list[slice]:
    """Rows in blocks of a bounded number of entries."""
    if width == 0:
        return []
    # A float32 block is widened for the sum, so a row costs its float64 size besides.
    step = max(1, BLOCK_BYTES // (12 * width))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _expansion_scores(kernel: Kernel, Z: Points, vectors: Points, coef: Array) -> Array:
    """sum_j coef_j k(x_j, z) for each point, block by block, float64."""
    scores = np.zeros(len(Z))
    for rows in _blocks(len(Z), len(coef)):
        block = kernel.block(Z.take(rows), vectors)
        scores[rows] = matmul(block.astype(np.float64, copy=False), coef)
    return scores


def _summed_noise(kernel: Kernel, coef: Array, *sets: Points) -> float:
    """A bound on the error of a score with float32 entries between points like these."""
    total = float(np.abs(coef).sum())
    # The bound of a kernel that knows none is infinite.
    return total * max(map(kernel.entry_noise, sets)) if total else 0.0
