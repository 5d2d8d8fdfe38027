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
from typing import Any, Literal, TypeAlias

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


class _KeptEntries:
    """k(x, z) of training points x with all points z of a task, computed when first needed."""

    def __init__(self, kernel: Kernel, train: Points, test: Points) -> None:
        self._kernel, self._train, self._sets = kernel, train, (train, test)
        self._width = len(train) + len(test)
        self._rows: Array | None = None
        self._computed = np.zeros(len(train), dtype=bool)

    def scores(self, support: Array, coef: Array) -> Array:
        """sum_j coef_j k(x_j, z) of each point z, the training points first, with float64 sums."""
        sums = np.zeros(self._width)
        if len(support):
            new = support[~self._computed[support]]
            if len(new):
                # All that are missing, where they take one block.
                missing = np.flatnonzero(~self._computed)
                self._add(missing if len(missing) * self._width <= _BLOCK_ENTRIES else new)
            assert self._rows is not None
            add_rows(self._rows, support, coef[None], sums[None])
        return sums

    def _add(self, new: Array) -> None:
        """Compute the rows of further training points."""
        vectors, stop = self._train.take(new), 0
        step = max(1, _BLOCK_ENTRIES // len(new))
        for points in self._sets:
            for start in range(0, len(points), step):
                part = slice(start, min(start + step, len(points)))
                block = self._kernel.block(points.take(part), vectors)
                if self._rows is None:
                    # Memory that is given back when it is gone: the C library may keep what was
                    # freed for the next run, whose memory is measured.
                    size = len(self._computed) * self._width
                    memory = mmap.mmap(-1, size * block.dtype.itemsize)
                    self._rows = np.frombuffer(memory, block.dtype).reshape(-1, self._width)
                self._rows[new, stop : stop + len(block)] = block.T
                stop += len(block)
        self._computed[new] = True


class TaskPoints:
    """The points of a task, prepared for its kernel in the type that is in use."""

    def __init__(self, kernel: Kernel, X_train: Matrix, X_test: Matrix) -> None:
        self.kernel = kernel
        self.X: dict[Role, Matrix] = {"train": X_train, "test": X_test}
        self.n_train, self.n_features = map(int, X_train.shape)
        self._dtype = ""
        self._prepared: dict[Role, Points] = {}
        self._kept: _KeptEntries | None = None

    def prepared(self, role: Role, dtype: str, rows: Array | None = None) -> Points:
        """The training or the test points, or some of the test points."""
        # Only one type is kept: each is a copy of the data.
        if dtype != self._dtype:
            self._dtype, self._kept = dtype, None
            self._prepared = {"train": self.kernel.prepare(self.X["train"], dtype)}
        train = self._prepared["train"]
        if rows is not None:
            return self.kernel.prepare(self.X[role][rows], dtype, like=train)
        if role not in self._prepared:
            self._prepared[role] = self.kernel.prepare(self.X[role], dtype, like=train)
        return self._prepared[role]

    def kept(self, dtype: str) -> _KeptEntries | None:
        """Entries of all points, training points first, that are kept for further states.

        None for float64 entries, which the last state alone has, and if there are too many.
        """
        n_all = self.n_train + int(self.X["test"].shape[0])
        if dtype != "float32" or self.n_train * n_all * np.dtype(dtype).itemsize > KEPT_BYTES:
            return None
        sets = self.prepared("train", dtype), self.prepared("test", dtype)
        if self._kept is None:
            self._kept = _KeptEntries(self.kernel, *sets)
        return self._kept


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
        self._all_scores: Array | None = None
        self._own: dict[str, Points] = {}
        self.support: Array | None = None
        if "points" in model.arrays:
            self.coef = _vector(model, "coef")
            self._free, expected = model.arrays["points"], (len(self.coef), points.n_features)
            if self._free.shape != expected or not np.isfinite(self._free).all():
                raise EvaluationError(
                    f"the model has points of shape {self._free.shape} for {expected[0]} "
                    f"coefficients in {expected[1]} dimensions, or points that are not finite"
                )
        else:
            support, n = model.arrays["support"], points.n_train
            values = _vector(model, "coef", support.size)
            if support.ndim != 1 or (support.dtype.kind not in "iu" and len(support)):
                raise EvaluationError("the model's support is no vector of integers")
            if len(support) and (support.min() < 0 or support.max() >= n):
                raise EvaluationError(
                    f"the model's support reaches from {support.min()} to {support.max()}; there "
                    f"are {n} training points"
                )
            self.dual_coef = np.zeros(n)
            np.add.at(self.dual_coef, support.astype(np.int64), values)
            self.support = np.flatnonzero(self.dual_coef)
            self.coef = self.dual_coef[self.support]
        self.n_support = int(np.count_nonzero(self.coef))

    def scores(self, role: Role, dtype: str, rows: Array | None = None) -> Array:
        kept = None if self.support is None or rows is not None else self.points.kept(dtype)
        if kept is None or self.support is None:
            return self._scores(self.points.prepared(role, dtype, rows), dtype)
        if self._all_scores is None:
            self._all_scores = kept.scores(self.support, self.coef)
        n_train = self.points.n_train
        return self._all_scores[:n_train] if role == "train" else self._all_scores[n_train:]

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
        frequencies, d = model.arrays.get("frequencies"), points.n_features
        self.model: FourierExpansion | LinearModel
        if frequencies is not None:
            if frequencies.ndim != 2 or frequencies.shape[1] != d:
                raise EvaluationError(
                    f"the model has frequencies of shape {frequencies.shape}; the points have {d} "
                    "features"
                )
            weights = _vector(model, "weights", 2 * len(frequencies))
            self.model = FourierExpansion(frequencies, weights)
            return
        if not isinstance(points.kernel, Linear):
            raise EvaluationError(
                f"a linear model is no solution of a task with the {points.kernel.name} kernel"
            )
        self.model = LinearModel(_vector(model, "weights", d))
        if "dual_coef" in model.arrays:
            self.dual_coef = _vector(model, "dual_coef", points.n_train)

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
        self.mistakes, self.survivals = model.arrays["mistakes"], model.arrays["survivals"]
        numbers = self.mistakes, self.survivals
        if numbers[0].shape != numbers[1].shape or any(
            each.dtype.kind not in "iu" or each.ndim != 1 for each in numbers
        ):
            raise EvaluationError(
                "the model's mistakes and survivals are no sequences of whole numbers, one of each"
            )
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


def _vector(model: PlainModel, name: str, length: int | None = None) -> Array:
    """A float64 vector of this length, if one is given."""
    values = model.arrays[name]
    if values.ndim != 1 or (length is not None and len(values) != length):
        expected = "a vector" if length is None else f"({length},)"
        words = _WORDS.get(name, name)
        raise EvaluationError(f"the model's {words} have shape {values.shape}, not {expected}")
    return values.astype(np.float64)


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


@dataclass(frozen=True)
class _Scored:
    """Scores on both parts, and objectives, of the predictor of one problem."""

    n_support: int
    squared_norm: float | None
    primal: float | None
    dual: float | None
    mean_hinge: float
    scores: dict[Role, Array]


class Evaluator:
    """Evaluates models on one task.

    More than two classes are a problem each, against the rest, with the same kernel, C and bias:
    errors are those of the largest score, objectives are added up. What the predictor of a class is
    worth is computed again only when it has changed.

    The kernel is that of ``points``; the one that a model claims is not looked at. Labels are
    those of two classes or more. With ``dual_certificate``, coefficients are y_i alpha_i of a
    dual point, so that a gap is defined.
    """

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
        self.C, self.fit_intercept, self.dual_certificate = C, fit_intercept, dual_certificate
        self.n_train, self.n_test = len(y_train), len(y_test)
        self._points = points
        self._y: dict[Role, Array] = {"train": np.asarray(y_train), "test": np.asarray(y_test)}
        self._classes = np.unique(y_train)
        # Of each problem the signs of the training points: of two classes there is one.
        labels = self._classes if len(self._classes) > 2 else self._classes[-1:]
        self._signs = [np.where(self._y["train"] == label, 1.0, -1.0) for label in labels]
        self._last: dict[int, tuple[bytes, str, _Scored]] = {}

    @property
    def n_problems(self) -> int:
        """How many problems are solved for the task."""
        return len(self._signs)

    def evaluate(self, model: Model | PlainModel, dtype: str = "float64") -> Evaluation:
        """Scores, errors and objectives of a model."""
        parts = self._parts(model)
        # A diverged model has infinities and NaNs; they are a result here, not a surprise.
        with np.errstate(over="ignore", invalid="ignore"):
            each = [self._score(c, part, dtype) for c, part in enumerate(parts)]
            wrong: dict[Role, Array] = {
                role: mistaken(self._columns([one.scores[role] for one in each]), y, self._classes)
                for role, y in self._y.items()
            }
        if len(each) == 1 or any("support" not in part.arrays for part in parts):
            n_support = sum(one.n_support for one in each)
        else:
            # Points kept by any class; points of the models' own are of one class each.
            used = [part.arrays["support"][part.arrays["coef"] != 0] for part in parts]
            n_support = len(np.unique(np.concatenate(used)))
        return Evaluation(
            train_error=float(np.count_nonzero(wrong["train"])) / self.n_train,
            test_error=float(np.count_nonzero(wrong["test"])) / self.n_test,
            n_support=n_support,
            primal=_sum([one.primal for one in each]),
            dual=_sum([one.dual for one in each]),
            squared_norm=_sum([one.squared_norm for one in each]),
            mean_hinge=sum(one.mean_hinge for one in each),
            mistakes=wrong["test"],
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

    def _score(self, c: int, model: PlainModel, dtype: str) -> _Scored:
        digest = model.digest
        if c not in self._last or self._last[c][:2] != (digest, dtype):
            self._last[c] = (digest, dtype, self._scored(c, model, dtype))
        return self._last[c][2]

    def _scored(self, c: int, model: PlainModel, dtype: str) -> _Scored:
        predictor, y = _PREDICTORS[model.kind](model, self._points), self._signs[c]
        # w's own scores, without the bias: they can give the norm too.
        responses = predictor.scores("train", dtype)
        squared_norm = predictor.squared_norm(responses, dtype)
        scores = responses + predictor.intercept
        margins = y * scores
        return _Scored(
            n_support=predictor.n_support,
            squared_norm=squared_norm,
            primal=None if squared_norm is None else primal_value(squared_norm, margins, self.C),
            dual=None if squared_norm is None else self._dual(predictor, squared_norm, y),
            mean_hinge=float(hinge(margins).mean()),
            scores={
                "train": scores,
                "test": predictor.scores("test", dtype) + predictor.intercept,
            },
        )

    def _dual(self, predictor: _Predictor, squared_norm: float, y: Array) -> float | None:
        coef = predictor.dual_coef
        if not self.dual_certificate or coef is None:
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


def _sum(values: list[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) if len(present) == len(values) else None
