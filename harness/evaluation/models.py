"""Returned models as plain numbers, and their scores and objectives on the task's points.

A model's arrays are taken over (coefficients, positions, free points, weights) and checked; the
kernel and the scores that it gives are not. Errors and objectives are recomputed with kernel
entries of the harness, which count towards no solver's cost.
"""

from __future__ import annotations

import hashlib
import mmap
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ...solvers.kernels import Kernel, Linear, Points
from ...solvers.kernels.base import row_blocks
from ...solvers.kernels.scoring import add_rows, linear_scores
from ...solvers.models import BudgetExpansion, KernelExpansion, LinearModel, Model
from ...solvers.models.fourier import FourierExpansion
from ...solvers.models.objectives import dual_value, hinge, primal_value
from ...solvers.models.several import OneVsRestModel
from ...solvers.models.voting import VotedExpansion, votes
from ...solvers.numeric.matrices import Matrix, matmul
from ..errors import EvaluationError

if TYPE_CHECKING:
    from ...data_loaders import Dataset

Array = npt.NDArray[Any]
Role: TypeAlias = Literal["train", "test"]

#: The arrays of each kind of model.
_ARRAYS: dict[type[Model], tuple[str, ...]] = {
    KernelExpansion: ("support", "coef"),
    BudgetExpansion: ("points", "coef"),
    LinearModel: ("weights", "dual_coef"),
    FourierExpansion: ("frequencies", "weights"),
    VotedExpansion: ("support", "coef", "mistakes", "survivals"),
}
#: What messages call some of them.
_WORDS = {"coef": "coefficients", "dual_coef": "dual coefficients"}
#: What a model of several classes is called.
_SEVERAL = OneVsRestModel.kind


@dataclass(frozen=True)
class PlainModel:
    """A model as real numbers; whoever uses the arrays checks shapes and values."""

    kind: str
    intercept: float
    arrays: Mapping[str, Array] = field(default_factory=dict)
    parts: tuple[PlainModel, ...] = ()  # of several classes: the predictor of each against the rest

    @property
    def finite(self) -> bool:
        """Whether all of its numbers are finite."""
        finite = all(np.isfinite(item).all() for item in self.arrays.values())
        return finite and bool(np.isfinite(self.intercept)) and all(p.finite for p in self.parts)

    @property
    def intercepts(self) -> tuple[float, ...]:
        """Of each predictor."""
        return tuple(part.intercept for part in self.parts) or (self.intercept,)

    @property
    def digest(self) -> bytes:
        """A hash of its content."""
        total = hashlib.sha256(repr((self.kind, self.intercept)).encode())
        for name, array in self.arrays.items():
            total.update(f"{name} {array.dtype.str} {array.shape}".encode())
            total.update(np.ascontiguousarray(array).data)
        for part in self.parts:
            total.update(part.digest)
        return total.digest()


# The predictor of a class that a run has not come to yet: w = 0.
_NOTHING = PlainModel(
    KernelExpansion.kind, 0.0, {"support": np.empty(0, dtype=np.int64), "coef": np.empty(0)}
)


def plain_model(model: object) -> PlainModel:
    """A returned model as numbers, without its kernel and its own scores."""
    if isinstance(model, PlainModel):
        return model
    if isinstance(model, OneVsRestModel):
        if any(isinstance(part, OneVsRestModel) for part in model.parts):
            raise EvaluationError("the model of a class is itself one of several classes")
        parts = tuple(_NOTHING if part is None else plain_model(part) for part in model.parts)
        return PlainModel(_SEVERAL, 0.0, parts=parts)
    kind = next((kind for kind in _ARRAYS if isinstance(model, kind)), None)
    if kind is None:
        what = "a model of another kind" if isinstance(model, Model) else "no marginbench.Model"
        raise EvaluationError(
            f"model_ is a {type(model).__name__}, {what}: its scores cannot be recomputed"
        )
    source: Any = model
    holders = (source.last, source) if isinstance(model, VotedExpansion) else (source,)
    arrays: dict[str, Array] = {}
    for name in _ARRAYS[kind]:
        value = next(getattr(holder, name) for holder in holders if hasattr(holder, name))
        if value is not None:
            arrays[name] = np.asarray(value)
            if arrays[name].dtype.kind not in "fiu":
                words, dtype = _WORDS.get(name, name), arrays[name].dtype
                raise EvaluationError(f"the model's {words} have type {dtype}, not real")
    try:
        return PlainModel(kind.kind, float(source.intercept), arrays)
    except (TypeError, ValueError):
        raise EvaluationError(
            f"the model's intercept is {source.intercept!r:.40}, not a number"
        ) from None


#: All entries of a task must fit into so many bytes, otherwise none is kept.
KEPT_BYTES = 32 * 2**20
# So many are computed at a time.
_BLOCK_ENTRIES = 2**18


class TaskPoints:
    """The points of a task, prepared for its kernel in the type that is in use."""

    def __init__(self, kernel: Kernel, X_train: Matrix, X_test: Matrix) -> None:
        self.kernel = kernel
        self.X: dict[Role, Matrix] = {"train": X_train, "test": X_test}
        self.n_train, self.n_features = map(int, X_train.shape)
        self._n_all = self.n_train + int(X_test.shape[0])
        self._dtype = ""
        self._prepared: dict[Role, Points] = {}
        # Rows of kept entries, and which of them have been computed.
        self._rows: Array | None = None
        self._computed = np.zeros(self.n_train, dtype=bool)

    def prepared(self, role: Role, dtype: str, rows: Array | None = None) -> Points:
        """The training or the test points, or some of the test points."""
        # Only one type is kept: each is a copy of the data.
        if dtype != self._dtype:
            self._dtype, self._rows = dtype, None
            self._computed[:] = False
            self._prepared = {"train": self.kernel.prepare(self.X["train"], dtype)}
        train = self._prepared["train"]
        if rows is not None:
            return self.kernel.prepare(self.X[role][rows], dtype, like=train)
        if role not in self._prepared:
            self._prepared[role] = self.kernel.prepare(self.X[role], dtype, like=train)
        return self._prepared[role]

    def kept_scores(self, support: Array, coef: Array, dtype: str) -> dict[Role, Array] | None:
        """sum_j coef_j k(x_j, z) of all points, from entries that are kept for further states.

        None for float64 entries, which the last state alone has, and if there are too many.
        """
        if dtype != "float32" or self.n_train * self._n_all * np.dtype(dtype).itemsize > KEPT_BYTES:
            return None
        sets, sums = [self.prepared(role, dtype) for role in self.X], np.zeros(self._n_all)
        if len(support):
            new = support[~self._computed[support]]
            if len(new):
                # All that are missing, where they take one block.
                missing = np.flatnonzero(~self._computed)
                self._keep(missing if len(missing) * self._n_all <= _BLOCK_ENTRIES else new, *sets)
            assert self._rows is not None
            add_rows(self._rows, support, coef[None], sums[None])
        return {"train": sums[: self.n_train], "test": sums[self.n_train :]}

    def _keep(self, new: Array, train: Points, test: Points) -> None:
        """Compute the rows of further training points."""
        vectors, stop = train.take(new), 0
        step = max(1, _BLOCK_ENTRIES // len(new))
        for points in (train, test):
            for start in range(0, len(points), step):
                part = slice(start, min(start + step, len(points)))
                block = self.kernel.block(points.take(part), vectors)
                if self._rows is None:
                    # Memory that is given back when it is gone: the C library may keep what was
                    # freed for the next run, whose memory is measured.
                    memory = mmap.mmap(-1, self.n_train * self._n_all * block.dtype.itemsize)
                    self._rows = np.frombuffer(memory, block.dtype).reshape(-1, self._n_all)
                self._rows[new, stop : stop + len(block)] = block.T
                stop += len(block)
        self._computed[new] = True


class _Predictor(ABC):
    """A well-formed model on a task; scores are float64, without the intercept.

    ``dual_coef`` are the coefficients that can be y_i alpha_i of a dual point, shape (n_train,).
    """

    n_support = 0
    dual_coef: Array | None = None

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        self.points, self.intercept = points, model.intercept

    @abstractmethod
    def scores(self, role: Role, dtype: str, rows: Array | None = None) -> Array:
        """f(x) of the training or the test points, or of some test points."""

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
        scores = self.scores("test", "float64", rows) + self.intercept
        return scores - self.noise(), scores + self.noise()


class _Expansion(_Predictor):
    """sum_j coef_j k(x_j, x) over training points, or over points of the model's own."""

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        super().__init__(model, points)
        self._kept: dict[Role, Array] | None = None
        self._own: dict[str, Points] = {}
        self.support: Array | None = None
        if "points" in model.arrays:
            self.coef = _array(model, "coef", None)
            self._free = _array(model, "points", len(self.coef), points.n_features)
            if not np.isfinite(self._free).all():
                raise EvaluationError("the model has points that are not finite")
        else:
            support, n = _array(model, "support", None, whole=True), points.n_train
            if len(support) and (support.min() < 0 or support.max() >= n):
                raise EvaluationError(
                    f"the model's support reaches from {support.min()} to {support.max()}; there "
                    f"are {n} training points"
                )
            self.dual_coef = np.zeros(n)
            np.add.at(self.dual_coef, support, _array(model, "coef", len(support)))
            self.support = np.flatnonzero(self.dual_coef)
            self.coef = self.dual_coef[self.support]
        self.n_support = int(np.count_nonzero(self.coef))

    def scores(self, role: Role, dtype: str, rows: Array | None = None) -> Array:
        if self._kept is None and self.support is not None and rows is None:
            self._kept = self.points.kept_scores(self.support, self.coef, dtype)
        if self._kept is None or rows is not None:
            return self._scores(self.points.prepared(role, dtype, rows), dtype)
        return self._kept[role]

    def squared_norm(self, train_scores: Array, dtype: str) -> float:
        if self.support is None:
            return float(matmul(self.coef, self._scores(self.vectors(dtype), dtype)))
        return float(matmul(self.coef, train_scores[self.support]))

    def noise(self) -> float:
        # Errors of the entries add up to at most sum |coef| times that of one; the bound of a
        # kernel that knows none is infinite.
        total = float(np.abs(self.coef).sum())
        sets = [self.points.prepared("train", "float64")]
        if self.support is None:
            # They may lie farther out than any training point.
            sets.append(self.vectors("float64"))
        return total * max(map(self.points.kernel.entry_noise, sets)) if total else 0.0

    def vectors(self, dtype: str) -> Points:
        """The x_j, prepared."""
        train = self.points.prepared("train", dtype)
        if self.support is not None:
            return train.take(self.support)
        if dtype not in self._own:
            try:
                self._own[dtype] = self.points.kernel.prepare(self._free, dtype, like=train)
            except ValueError as error:
                raise EvaluationError(f"the model's points: {error}") from None
        return self._own[dtype]

    def _scores(self, Z: Points, dtype: str) -> Array:
        scores = np.zeros(len(Z))
        if len(self.coef):
            sums = scores[None]
            self.points.kernel.weighted_sums(Z, self.vectors(dtype), self.coef[None], sums)
        return scores


class _Weights(_Predictor):
    """A vector of weights: on the features of a task with a linear kernel, or on Fourier's."""

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        super().__init__(model, points)
        self.model: FourierExpansion | LinearModel
        if "frequencies" in model.arrays:
            frequencies = _array(model, "frequencies", None, points.n_features)
            weights = _array(model, "weights", 2 * len(frequencies))
            self.model = FourierExpansion(frequencies, weights)
            return
        if not isinstance(points.kernel, Linear):
            raise EvaluationError(
                f"a linear model is no solution of a task with the {points.kernel.name} kernel"
            )
        self.model = LinearModel(_array(model, "weights", points.n_features))
        if "dual_coef" in model.arrays:
            self.dual_coef = _array(model, "dual_coef", points.n_train)

    def scores(self, role: Role, dtype: str, rows: Array | None = None) -> Array:
        X = self.points.X[role]
        return self.model.decision_function(X if rows is None else X[rows])

    def squared_norm(self, train_scores: Array, dtype: str) -> float:
        return self.model.squared_norm()

    def dual_squared_norm(self, squared_norm: float) -> float:
        # The weights need not be those of the dual point: that one is judged by itself.
        assert self.dual_coef is not None
        weights = linear_scores(self.points.X["train"].T, self.dual_coef)
        return float(matmul(weights, weights))


class _Votes(_Predictor):
    """The vote of every predictor of a perceptron's run."""

    def __init__(self, model: PlainModel, points: TaskPoints) -> None:
        super().__init__(model, points)
        self.last = _Expansion(model, points)
        self.mistakes = _array(model, "mistakes", None, whole=True)
        self.survivals = _array(model, "survivals", len(self.mistakes), whole=True)
        self.n_support = self.last.n_support
        self.signs = np.sign(self.last.coef)
        inside = (self.mistakes >= 0) & (self.mistakes < self.n_support)
        counted = np.bincount(self.mistakes[inside], minlength=self.n_support)
        if not inside.all() or not np.array_equal(counted * self.signs, self.last.coef):
            raise EvaluationError("the model's mistakes do not add up to its last predictor")

    def scores(self, role: Role, dtype: str, rows: Array | None = None) -> Array:
        scores, _ = self._votes(self.points.prepared(role, dtype, rows), dtype, 0.0)
        return scores

    def squared_norm(self, train_scores: Array, dtype: str) -> None:
        return None

    def score_bounds(self, rows: Array) -> tuple[Array, Array]:
        # The vote of a predictor whose score is zero but for rounding may go either way.
        noise = self.points.kernel.entry_noise(self.points.prepared("train", "float64"))
        return self._votes(self.points.prepared("test", "float64", rows), "float64", noise)

    def _votes(self, Z: Points, dtype: str, noise: float) -> tuple[Array, Array]:
        bounds, vectors = np.zeros((2, len(Z))), self.last.vectors(dtype)
        for part, own, room in row_blocks(Z, vectors, bounds) if self.n_support else ():
            block = self.points.kernel.block(part, vectors, room)
            votes(block, self.signs, self.mistakes, self.survivals, noise, *own)
        return bounds[0], bounds[1]


_PREDICTORS: dict[str, type[_Predictor]] = {
    KernelExpansion.kind: _Expansion,
    BudgetExpansion.kind: _Expansion,
    LinearModel.kind: _Weights,
    FourierExpansion.kind: _Weights,
    VotedExpansion.kind: _Votes,
}


def _array(model: PlainModel, name: str, *shape: int | None, whole: bool = False) -> Array:
    """An array of a model as float64 or int64, of this shape; None: of any length."""
    values, words = model.arrays[name], _WORDS.get(name, name)
    # What is empty has whatever type.
    if whole and values.size and values.dtype.kind not in "iu":
        raise EvaluationError(f"the model's {words} are no whole numbers")
    wanted = zip(shape, values.shape, strict=False)
    if values.ndim != len(shape) or any(n not in (None, found) for n, found in wanted):
        expected = str(shape).replace("None", "any")
        raise EvaluationError(f"the model's {words} have shape {values.shape}, not {expected}")
    return values.astype(np.int64 if whole else np.float64)


#: The objectives of the predictor of one problem by name, and its scores on both parts.
_Scored: TypeAlias = tuple[dict[str, Any], dict[Role, Array]]
# How far alpha may leave [0, C], relative to C, and y'alpha leave 0, relative to sum alpha.
_FEASIBILITY = 1e-6


@dataclass(frozen=True)
class Evaluation:
    """Scores, errors and objectives of a model on a task.

    Objectives are in C units and, of several classes, sums. Errors are fractions of misclassified
    points: f(x) > 0 predicts the class with the larger label, and of several classes the largest
    f_c(x) its class.
    """

    train_error: float
    test_error: float
    # Points that the model keeps with a non-zero coefficient, those shared by classes once; 0 for a
    # model that keeps none.
    n_support: int
    # 1/2 ||w||^2 + C sum hinge, with w in the space of the model's own features; None for a vote,
    # which has no w.
    primal: float | None
    dual: float | None  # None if the coefficients are no feasible dual point
    squared_norm: float | None
    mean_hinge: float  # on the training set
    # Which test points are misclassified, shape (n_test,).
    mistakes: Array = field(
        default_factory=lambda: np.zeros(0, dtype=bool), compare=False, repr=False
    )

    @property
    def gap(self) -> float | None:
        """Primal minus dual, in C units."""
        return None if self.dual is None or self.primal is None else self.primal - self.dual

    @property
    def finite(self) -> bool:
        """Whether the objective, or where there is none the loss, is a number."""
        return bool(np.isfinite(self.mean_hinge if self.primal is None else self.primal))


class Evaluator:
    """Evaluates models on one task.

    More than two classes are a problem each, against the rest, with the same kernel, C and bias:
    errors are those of the largest score, objectives are added up. What the predictor of a class is
    worth is computed again only when it has changed.

    The kernel that a model claims is not looked at. With ``certificate``, coefficients are
    y_i alpha_i of a dual point, so that a gap is defined.
    """

    def __init__(
        self, kernel: Kernel, dataset: Dataset, C: float, *, fit_intercept: bool, certificate: bool
    ) -> None:
        self.C, self.fit_intercept, self._certificate = C, fit_intercept, certificate
        y_train, y_test = dataset.y_train, dataset.y_test
        self.n_train, self.n_test = len(y_train), len(y_test)
        self._points = TaskPoints(kernel, dataset.X_train, dataset.X_test)
        self._y: dict[Role, Array] = {"train": y_train, "test": y_test}
        self._classes = np.unique(y_train)
        # Of each problem the signs of the training points: of two classes there is one.
        labels = self._classes if len(self._classes) > 2 else self._classes[-1:]
        self._signs = [np.where(self._y["train"] == label, 1.0, -1.0) for label in labels]
        self._last: dict[int, tuple[tuple[bytes, str], _Scored]] = {}

    @property
    def n_problems(self) -> int:
        """How many problems are solved for the task."""
        return len(self._signs)

    def evaluate(self, model: Model | PlainModel, dtype: str = "float64") -> Evaluation:
        """Scores, errors and objectives of a model."""
        parts = self._parts(model)
        # A diverged model has infinities and NaNs; they are a result here, not a surprise.
        with np.errstate(over="ignore", invalid="ignore"):
            each = [self._scored(c, part, dtype) for c, part in enumerate(parts)]
            wrong: dict[Role, Array] = {
                role: mistaken(
                    self._columns([scores[role] for _, scores in each]), y, self._classes
                )
                for role, y in self._y.items()
            }
        totals = {name: _sum([values[name] for values, _ in each]) for name in each[0][0]}
        if len(parts) > 1 and all("support" in part.arrays for part in parts):
            # Points kept by any class; points of the models' own are of one class each.
            used = [part.arrays["support"][part.arrays["coef"] != 0] for part in parts]
            totals["n_support"] = len(np.unique(np.concatenate(used)))
        return Evaluation(
            train_error=float(np.count_nonzero(wrong["train"])) / self.n_train,
            test_error=float(np.count_nonzero(wrong["test"])) / self.n_test,
            mistakes=wrong["test"],
            **totals,
        )

    def test_scores(self, model: Model | PlainModel, rows: Array) -> Array:
        """f(x) of some test points with float64 entries, shape (len(rows),); a column per class."""
        predictors = self._predictors(model)
        return self._columns(
            [each.scores("test", "float64", rows) + each.intercept for each in predictors]
        )

    def score_bounds(self, model: Model | PlainModel, rows: Array) -> tuple[Array, Array]:
        """Least and greatest f(x) of some test points that float32 entries can explain."""
        bounds = [each.score_bounds(rows) for each in self._predictors(model)]
        low, high = (self._columns([*ends]) for ends in zip(*bounds, strict=True))
        return low, high

    def score_noise(self, model: Model | PlainModel) -> float:
        """A bound on the error of a score that was computed with float32 kernel entries.

        Zero for a model without a kernel, and for votes, which have no common bound; the sum over
        several classes.
        """
        return sum(each.noise() for each in self._predictors(model))

    def _parts(self, model: Model | PlainModel) -> tuple[PlainModel, ...]:
        """The model of each problem."""
        plain = plain_model(model)
        if self.n_problems == 1:
            if plain.kind == _SEVERAL:
                raise EvaluationError("the task has two classes, but the model is one of several")
            return (plain,)
        if len(plain.parts) != self.n_problems:
            classes = f"{len(plain.parts)} classes" if plain.parts else "two classes"
            raise EvaluationError(
                f"the task has {self.n_problems} classes, but the model is one of {classes}"
            )
        return plain.parts

    def _predictors(self, model: Model | PlainModel) -> list[_Predictor]:
        return [_PREDICTORS[part.kind](part, self._points) for part in self._parts(model)]

    def _columns(self, each: list[Array]) -> Array:
        return each[0] if self.n_problems == 1 else np.stack(each, axis=1)

    def _scored(self, c: int, model: PlainModel, dtype: str) -> _Scored:
        state = model.digest, dtype
        if c in self._last and self._last[c][0] == state:
            return self._last[c][1]
        predictor, y = _PREDICTORS[model.kind](model, self._points), self._signs[c]
        # w's own scores, without the bias: they can give the norm too.
        responses = predictor.scores("train", dtype)
        norm = predictor.squared_norm(responses, dtype)
        scores: dict[Role, Array] = {
            "train": responses + predictor.intercept,
            "test": predictor.scores("test", dtype) + predictor.intercept,
        }
        margins = y * scores["train"]
        values = {
            "n_support": predictor.n_support,
            "squared_norm": norm,
            "primal": None if norm is None else primal_value(norm, margins, self.C),
            "dual": None if norm is None else self._dual(predictor, norm, y),
            "mean_hinge": float(hinge(margins).mean()),
        }
        self._last[c] = state, (values, scores)
        return values, scores

    def _dual(self, predictor: _Predictor, squared_norm: float, y: Array) -> float | None:
        coef = predictor.dual_coef
        if not self._certificate or coef is None:
            return None
        alpha = coef * y
        slack = _FEASIBILITY * self.C
        if not bool(np.all((alpha >= -slack) & (alpha <= self.C + slack))):
            return None
        if self.fit_intercept and abs(coef.sum()) > _FEASIBILITY * max(self.C, alpha.sum()):
            return None
        return dual_value(alpha, predictor.dual_squared_norm(squared_norm))


def mistaken(scores: Array, y: Array, classes: Array) -> Array:
    """Which points a model's scores, a column for each of several classes, put into another class.

    Of a diverged model nothing is right: a score that is not finite is a mistake.
    """
    if scores.ndim == 1:
        wrong = np.where(scores > 0, classes[-1], classes[0]) != y
        return np.asarray(wrong | ~np.isfinite(scores))
    # For argmax NaN is the largest number.
    diverged = ~np.isfinite(scores).all(axis=1)
    return np.asarray((classes[scores.argmax(axis=1)] != y) | diverged)


def _sum(values: list[Any]) -> Any:
    return None if None in values else sum(values)
