"""Returned models as plain numbers, and what they are worth on the task's own points.

A model's arrays are taken over (coefficients, positions, free points, weights) and checked; the
kernel and the scores that it gives are not. Errors and objectives are recomputed with kernel
entries of the harness, which count towards no solver's cost.
"""

from __future__ import annotations

import hashlib
import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...solvers.kernels import Kernel, Linear, Points
from ...solvers.kernels.scoring import linear_scores, sum_of_rows
from ...solvers.models import BudgetExpansion, KernelExpansion, LinearModel, Model
from ...solvers.models.fourier import FourierExpansion
from ...solvers.models.objectives import dual_value, hinge, primal_value
from ...solvers.models.several import OneVsRestModel
from ...solvers.models.voting import VotedExpansion, votes
from ...solvers.numeric.matrices import Matrix, matmul
from ...solvers.numeric.threads import in_parts
from ..errors import EvaluationError

Array = npt.NDArray[Any]

#: The arrays of each kind of model, and what messages call them.
_ARRAYS: dict[str, dict[str, str]] = {
    "kernel expansion": {"support": "support", "coef": "coefficients"},
    "budget expansion": {"points": "points", "coef": "coefficients"},
    "linear": {"weights": "weights", "dual_coef": "dual coefficients"},
    "Fourier expansion": {"frequencies": "frequencies", "weights": "weights"},
    "voted expansion": {
        "support": "support",
        "coef": "coefficients",
        "mistakes": "mistakes",
        "survivals": "survivals",
    },
}


#: What a model of several classes is called, and how many it may have.
SEVERAL = OneVsRestModel.kind
_MAX_PARTS = 10_000
# The predictor of a class that a run has not come to yet: w = 0.
_NOTHING: dict[str, Array] = {"support": np.empty(0, dtype=np.int64), "coef": np.empty(0)}


@dataclass(frozen=True)
class PlainModel:
    """A model as numbers.

    Attributes
    ----------
    kind : str
        What sort of model it is; a key of the table above, or "one-vs-rest".
    intercept : float
    arrays : mapping of str to ndarray
        Whatever the solver put there: types, shapes and values are checked by whoever uses them.
    parts : tuple of PlainModel
        Of several classes: the predictor of each against the rest.
    """

    kind: str
    intercept: float
    arrays: Mapping[str, Array] = field(default_factory=dict)
    parts: tuple[PlainModel, ...] = ()

    @property
    def finite(self) -> bool:
        """Whether there is neither infinity nor NaN in it."""
        floats = (array for array in self.arrays.values() if array.dtype.kind == "f")
        own = np.isfinite(self.intercept) and all(np.isfinite(item).all() for item in floats)
        return bool(own) and all(part.finite for part in self.parts)

    @property
    def intercepts(self) -> tuple[float, ...]:
        """Of each predictor."""
        return tuple(part.intercept for part in self.parts) or (self.intercept,)

    @property
    def digest(self) -> bytes:
        """A hash of all that is in it."""
        found = hashlib.sha256(repr((self.kind, self.intercept)).encode())
        for name, array in self.arrays.items():
            found.update(f"{name} {array.dtype.str} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
        for part in self.parts:
            found.update(part.digest)
        return found.digest()


def plain_model(model: object) -> PlainModel:
    """A returned model as numbers; its kernel and the scores that it would give are left behind.

    Raises
    ------
    EvaluationError
        If it is no model of a known kind, or its numbers are none.
    """
    if isinstance(model, PlainModel):
        return model
    if isinstance(model, OneVsRestModel):
        return _several([_part(part) for part in model.parts])
    if isinstance(model, KernelExpansion):
        return _plain("kernel expansion", model, model)
    if isinstance(model, BudgetExpansion):
        return _plain("budget expansion", model, model)
    if isinstance(model, LinearModel):
        return _plain("linear", model, model)
    if isinstance(model, FourierExpansion):
        return _plain("Fourier expansion", model, model)
    if isinstance(model, VotedExpansion):
        return _plain("voted expansion", model, model.last, model)
    what = "a model of another kind" if isinstance(model, Model) else "no marginbench.Model"
    raise EvaluationError(
        f"model_ is a {type(model).__name__}, {what}: its scores cannot be recomputed"
    )


def _part(model: object) -> PlainModel:
    if model is None:
        return PlainModel("kernel expansion", 0.0, _NOTHING)
    if isinstance(model, OneVsRestModel | PlainModel):
        raise EvaluationError("the model of a class is itself one of several classes")
    return plain_model(model)


def _several(parts: list[PlainModel]) -> PlainModel:
    if not 2 < len(parts) <= _MAX_PARTS:
        raise EvaluationError(f"a model of several classes has {len(parts)} predictors")
    return PlainModel(SEVERAL, 0.0, parts=tuple(parts))


def _plain(kind: str, model: Any, *parts: Any) -> PlainModel:
    arrays: dict[str, Array] = {}
    for name, words in _ARRAYS[kind].items():
        value = next(getattr(part, name) for part in parts if hasattr(part, name))
        if value is None:
            continue
        arrays[name] = np.asarray(value)
        if arrays[name].dtype.kind not in "fiu":
            raise EvaluationError(f"the model's {words} have type {arrays[name].dtype}, not real")
    try:
        return PlainModel(kind, float(model.intercept), arrays)
    except (TypeError, ValueError):
        raise EvaluationError(
            f"the model's intercept is {model.intercept!r:.40}, not a number"
        ) from None


#: All entries of a task must fit into so many bytes, otherwise none is kept.
KEPT_BYTES = 32 * 2**20
# So many are computed at a time.
_BLOCK_ENTRIES = 2**18


class KeptEntries:
    """k(x, z) of training points x with all points z of a task, computed when first needed.

    Parameters
    ----------
    kernel : Kernel
    vectors : Points
        The training points.
    sets : sequence of Points
        The points to score, one set after the other.
    """

    def __init__(self, kernel: Kernel, vectors: Points, *sets: Points) -> None:
        self._kernel, self._vectors, self._sets = kernel, vectors, sets
        self._rows: Array | None = None
        self._known = np.zeros(len(vectors), dtype=bool)

    @staticmethod
    def fit(n_train: int, n_points: int, dtype: str) -> bool:
        """Whether all entries of a task fit."""
        return n_train * n_points * np.dtype(dtype).itemsize <= KEPT_BYTES

    def scores(self, support: Array, coef: Array) -> Array:
        """sum_j coef_j k(x_j, z) of each point z, with float64 sums.

        Parameters
        ----------
        support : ndarray of int
            Training points.
        coef : ndarray of float64
            Their coefficients.
        """
        sums = np.zeros(sum(map(len, self._sets)))
        if len(support):
            known = self._known[support]
            rows = self._rows if known.all() else self._with(self._missing(support[~known]))
            in_parts(sum_of_rows, len(sums), rows, support, coef, sums)
        return sums

    def _missing(self, new: Array) -> Array:
        """These rows, or all that are missing where they take one block."""
        missing = np.flatnonzero(~self._known)
        width = sum(map(len, self._sets))
        return missing if len(missing) * width <= _BLOCK_ENTRIES else new

    def _with(self, new: Array) -> Array:
        """The rows of all entries, with those of further training points."""
        vectors, stop = self._vectors.take(new), 0
        for points in self._sets:
            for part in _parts(len(points), len(new)):
                block = self._kernel.block(points.take(part), vectors)
                start, stop = stop, stop + len(block)
                if self._rows is None:
                    width = sum(map(len, self._sets))
                    self._rows = _mapped((len(self._known), width), block.dtype)
                self._rows[new, start:stop] = block.T
        self._known[new] = True
        assert self._rows is not None
        return self._rows


def _parts(n: int, width: int) -> list[slice]:
    """Points in parts of few enough entries to stay in a cache."""
    step = max(1, _BLOCK_ENTRIES // max(1, width))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _mapped(shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """Zeros that take memory where they are written to, and give it back when they are gone.

    The C library may keep what it was given back for the next run, whose memory is measured.
    """
    size = shape[0] * shape[1]
    return np.frombuffer(mmap.mmap(-1, size * dtype.itemsize), dtype, size).reshape(shape)


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


# How far alpha may leave [0, C], relative to C, and y'alpha leave 0, relative to sum alpha.
_FEASIBILITY = 1e-6


@dataclass(frozen=True)
class Evaluation:
    """What a model is worth on a task.

    Attributes
    ----------
    train_error, test_error : float
        Fractions of misclassified points; f(x) > 0 predicts the positive class, and of several
        classes the largest f_c(x) its class.
    n_support : int
        Points that the model keeps with a non-zero coefficient, those shared by classes once; 0
        for a model that keeps none.
    primal : float or None
        1/2 ||w||^2 + C sum hinge, in C units, with w in the space of the model's own features;
        None for a vote, which has no w. This and what follows are sums over several classes.
    dual : float or None
        Dual value, in C units; None if the coefficients are no feasible dual point.
    squared_norm : float or None
        ||w||^2.
    mean_hinge : float
        Mean hinge loss on the training set.
    mistakes : ndarray of bool, shape (n_test,)
        Which test points are misclassified.
    """

    train_error: float
    test_error: float
    n_support: int
    primal: float | None
    dual: float | None
    squared_norm: float | None
    mean_hinge: float
    mistakes: Array = field(
        default_factory=lambda: np.zeros(0, dtype=bool), compare=False, repr=False
    )

    @property
    def gap(self) -> float | None:
        """Primal minus dual, in C units."""
        return None if self.dual is None or self.primal is None else self.primal - self.dual

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.mean_hinge if self.primal is None else self.primal))


@dataclass(frozen=True)
class Scored:
    """A predictor's scores on both parts, float64, and what it is worth."""

    evaluation: Evaluation
    train_scores: Array
    test_scores: Array


class Evaluator:
    """Evaluates models on one task of two classes.

    Parameters
    ----------
    points : TaskPoints
        With the task's kernel; the one that a model claims is not looked at.
    C : float
    fit_intercept : bool
        Whether the task has an unregularised bias.
    y_train, y_test : ndarray, shape (n_points,)
        Labels, -1 or +1.
    dual_certificate : bool
        Whether the coefficients are y_i alpha_i of a dual point, so that a gap is defined.
    """

    #: How many problems are solved for the task.
    n_problems = 1

    def __init__(
        self,
        points: TaskPoints,
        *,
        C: float,
        fit_intercept: bool,
        y_train: Array,
        y_test: Array,
        dual_certificate: bool,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.dual_certificate = dual_certificate
        self.y_train = np.asarray(y_train, dtype=np.float64)
        self.y_test = np.asarray(y_test, dtype=np.float64)
        self.n_train, self.n_test = len(y_train), len(y_test)
        self._train_positive, self._test_positive = self.y_train > 0, self.y_test > 0
        self._points = points

    def evaluate(self, model: Model | PlainModel, dtype: str = "float64") -> Evaluation:
        """Scores, errors and objectives of a model.

        Parameters
        ----------
        model : Model or PlainModel
        dtype : {"float32", "float64"}
            Type of the kernel entries; sums are float64.

        Raises
        ------
        EvaluationError
            If the model is not well-formed or not one of this task.
        """
        return self.scored(plain_model(model), dtype).evaluation

    def scored(self, model: PlainModel, dtype: str) -> Scored:
        """The same, with the scores themselves."""
        # A diverged model has infinities and NaNs; they are a result here, not a surprise.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._scored(self._predictor(model), dtype)

    def _scored(self, predictor: Predictor, dtype: str) -> Scored:
        # w's own scores, without the bias: they can give the norm too.
        responses = predictor.train_scores(dtype)
        squared_norm = predictor.squared_norm(responses, dtype)
        scores = responses + predictor.intercept
        test_scores = predictor.test_scores(dtype) + predictor.intercept
        margins = self.y_train * scores
        mistakes = (test_scores > 0) != self._test_positive
        evaluation = Evaluation(
            train_error=_share((scores > 0) != self._train_positive),
            test_error=_share(mistakes),
            n_support=predictor.n_support,
            primal=None if squared_norm is None else primal_value(squared_norm, margins, self.C),
            dual=None if squared_norm is None else self._dual(predictor, squared_norm),
            squared_norm=squared_norm,
            mean_hinge=float(hinge(margins).mean()),
            mistakes=mistakes,
        )
        return Scored(evaluation, scores, test_scores)

    def _predictor(self, model: Model | PlainModel) -> Predictor:
        plain = plain_model(model)
        if plain.kind == SEVERAL:
            raise EvaluationError("the task has two classes, but the model is one of several")
        return predictor_of(plain, self._points)

    def test_scores(self, model: Model | PlainModel, rows: Array) -> Array:
        """f(x) of some test points, with float64 entries, shape (len(rows),)."""
        predictor = self._predictor(model)
        return predictor.test_scores("float64", rows) + predictor.intercept

    def score_bounds(self, model: Model | PlainModel, rows: Array) -> tuple[Array, Array]:
        """Least and greatest f(x) of some test points that float32 entries can explain."""
        return self._predictor(model).score_bounds(rows)

    def score_noise(self, model: Model | PlainModel) -> float:
        """A bound on the error of a score that was computed with float32 kernel entries.

        Zero for a model without a kernel, and for votes, which have no common bound.
        """
        return self._predictor(model).noise()

    def _dual(self, predictor: Predictor, squared_norm: float) -> float | None:
        coef = predictor.dual_coef
        if not self.dual_certificate or coef is None:
            return None
        alpha = coef * self.y_train
        slack = _FEASIBILITY * self.C
        if not bool(np.all((alpha >= -slack) & (alpha <= self.C + slack))):
            return None
        if self.fit_intercept and abs(coef.sum()) > _FEASIBILITY * max(self.C, alpha.sum()):
            return None
        return dual_value(alpha, predictor.dual_squared_norm(squared_norm))


def _share(flags: Array) -> float:
    """The share of those that are true, without the overhead of ``np.mean`` on flags."""
    return float(np.count_nonzero(flags)) / len(flags)
