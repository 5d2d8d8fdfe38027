"""Structural SVMs with kernels: several classes, sequences, custom structures; their predictor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ..interface.convergence import warn_unconverged
from ..interface.declaration import hyperparameters
from ..interface.inputs import dtype_name, generator, new_points, training_points
from ..interface.monitor import Monitor, Progress
from ..interface.parameters import SeedParameters
from ..kernels import Kernel, make_kernel
from ..kernels.oracle import KernelOracle
from ..kernels.scoring import expansion_scores
from ..models import KernelExpansion, Model
from ..numeric.counters import Counters
from ..numeric.matrices import Matrix
from ..numeric.validation import check_one_of, check_positive
from .cutting_plane import CutParameters
from .structure import Examples, LinearChain, MultiClass, StructuredProblem


@dataclass(frozen=True)
class StructuredExpansion(Model):
    """``f_s(x) = sum_j coef_js k(x_j, x)`` in each channel s, and weights beside the kernel.

    Attributes
    ----------
    kernel, points
        As those of :class:`KernelExpansion`.
    coef : ndarray of float64, shape (n_support, n_channels)
        No row is zero.
    weights : ndarray of float64, shape (n_explicit,)
        Weights outside of the kernel's space.
    support, n_train, dtype
        As those of :class:`KernelExpansion`.
    """

    kernel: Kernel
    points: Matrix
    coef: np.ndarray
    weights: np.ndarray
    support: np.ndarray
    n_train: int
    dtype: str = "float32"
    kind: ClassVar[str] = "structured expansion"
    intercept: ClassVar[float] = 0.0  # type: ignore[misc]

    @property
    def n_support(self) -> int:
        """Number of support vectors, the kernel evaluations that one point's scores cost."""
        return len(self.coef)

    def channel(self, s: int) -> KernelExpansion:
        """f_s alone; its coefficients may be zero."""
        about = self.support, self.n_train, self.dtype
        return KernelExpansion(self.kernel, self.points, self.coef[:, s], 0.0, *about)

    def decision_function(self, Z: Matrix) -> np.ndarray:
        """f_s(z) for each row of Z and each channel, float64, shape (len(Z), n_channels)."""
        if self.n_support == 0:
            return np.zeros((Z.shape[0], self.coef.shape[1]))
        support = self.channel(0).prepared()
        return expansion_scores(self.kernel, support, self.coef.T, Z, self.dtype)

    def squared_norm(self) -> float:
        """||w||^2, the plain weights included; ValueError for a precomputed kernel."""
        norms = (self.channel(s).squared_norm() for s in range(self.coef.shape[1]))
        return float((self.weights**2).sum()) + sum(norms)

    def attributes(self) -> dict[str, Any]:
        """``dual_coef_`` (a row per channel), ``support_`` and so on, and ``explicit_coef_``."""
        return {
            "dual_coef_": self.coef.T,
            "support_": self.support,
            "support_vectors_": self.points,
            "explicit_coef_": self.weights,
        }


@hyperparameters
class StructuredSVM(ClassifierMixin, CutParameters, SeedParameters, BaseEstimator):
    """Structural SVM with a kernel, by cutting planes that are exact or sampled.

    Minimises ``1/2 ||w||^2 + C sum_i max_y (Delta(y_i, y) - <w, Psi(x_i, y_i) - Psi(x_i, y)>)``
    over weights in the kernel's space, one part for each channel of the structure, and plain
    weights besides ([CUTS08]_; margin rescaling). Inputs are sequences of points: the rows of X,
    ``lengths`` of them at a time.

    Parameters
    ----------
    structure : {"multiclass", "chain"} or StructuredProblem
        "multiclass": one of several classes for each point, with the loss of Crammer and Singer.
        "chain": one of several states for each point of a sequence, with weights for pairs of
        consecutive states and the part of wrong states as the loss. Or a custom structure.
    C
        Weight of an input's loss against ``1/2 ||w||^2``: the C of [CUTS08]_ is this times the
        number of inputs.

    Attributes
    ----------
    structure_ : StructuredProblem
    classes_ : ndarray
        The classes or states, where the structure is given by name.
    dual_coef_ : ndarray of float64, shape (n_channels, n_support)
    support_ : ndarray of int64, shape (n_support,)
        The support vectors, as rows of X.
    support_vectors_ : ndarray or csr_matrix, shape (n_support, n_features)
    explicit_coef_ : ndarray of float64, shape (n_explicit,)
        Weights outside of the kernel's space; for "chain" of pairs of states, row by row.
    n_iter_ : int
        Number of cuts.
    status_ : {"converged", "budget", "stopped"}
    counters_ : Counters
        What the fit cost.
    model_ : StructuredExpansion

    Notes
    -----
    Kernel evaluations: as for :class:`CuttingPlane`, with the points of the drawn inputs; they do
    not depend on the number of channels. Memory: a number for each point and channel for each
    cut in use.
    """

    structure: str | StructuredProblem = field(default="multiclass", kw_only=False)
    # By keyword alone: the structure comes first.
    kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf"

    def fit(
        self, X: Any, y: Any, lengths: Any = None, monitor: Monitor | None = None
    ) -> StructuredSVM:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            The points of all inputs, one input after another; for ``kernel="precomputed"`` the
            Gram matrix.
        y : array-like
            A class for each point, or a state for each point; for a custom structure a
            sequence with the output of each input.
        lengths : array-like of int, optional
            Numbers of points of the inputs. By default "chain" takes all points for one sequence,
            other structures each point for an input. Not for "multiclass".
        monitor : Monitor, optional
            Watches the run.

        Returns
        -------
        StructuredSVM
            The fitted estimator itself.

        Raises
        ------
        ValueError
            For parameters out of range, NaN or infinity in X, labels that are no classes, or
            lengths that do not fit.
        """
        self._check_parameters()
        X, structure, targets, starts = self._problem(X, y, lengths)
        kernel = make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, X=X
        )
        n, self.counters_ = len(starts) - 1, Counters()
        cache_bytes = int(self.cache_size * 2**20)
        oracle = KernelOracle(kernel, X, self.dtype, cache_bytes, self.counters_)
        examples = Examples(targets, starts, np.full(n, 1.0 / n))
        finder = self._finder(oracle, structure, examples, generator(self.random_state), n)
        working = finder.working
        monitor = Progress() if monitor is None else monitor

        def snapshot() -> StructuredExpansion:
            w = working.weights()
            some = w.coef.any(axis=1)
            points = X[w.points[some]] if kernel.evaluates else np.empty((0, 0))
            about = w.points[some], oracle.n, oracle.dtype.name
            return StructuredExpansion(kernel, points, w.coef[some], working.explicit(), *about)

        with monitor.interruptible():
            monitor.start(self.counters_)
            self.n_iter_, self.status_ = finder.run(self.max_iter, monitor, snapshot)
            self.structure_, self.model_ = structure, snapshot()
            self.slack_, self.violation_ = working.xi, finder.violation
            monitor.finish(self.n_iter_, self.model_)
            for name, value in self.model_.attributes().items():
                setattr(self, name, value)
        if self.status_ == "budget" and (missing := finder.shortfall()):
            at_limit = self.n_iter_ == self.max_iter
            ended_at = f"max_iter={self.max_iter!r}" if at_limit else oracle.rounding_words
            warn_unconverged(type(self).__name__, ended_at, missing, stacklevel=3)
        return self

    def scores(self, X: Any) -> np.ndarray:
        """f_s(x) of each row of X in each channel, float64, shape (n_points, n_channels).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
            For ``kernel="precomputed"`` the entries k(x, x_i), shape (n_points, n).
        """
        X = new_points(self, X)
        return self.model_.decision_function(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores; for two classes the second's less the first's, shape (n_points,).

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
        """
        scores = self.scores(X)
        if isinstance(self.structure_, MultiClass) and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The output of the highest score of each input.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
        lengths : array-like of int, optional
            See :meth:`fit`.

        Returns
        -------
        ndarray or list
            A class or state for each point; for a custom structure the list of the outputs.
        """
        scores, fitted = self.scores(X), self._fitted_structure
        if fitted == "multiclass":
            return self.classes_[scores.argmax(axis=1)]
        starts, weights = _starts(fitted, len(scores), lengths), self.model_.weights
        outputs = [self.structure_.argmax(scores[a:b], weights) for a, b in pairwise(starts)]
        if fitted == "chain":
            return self.classes_[np.concatenate([*outputs, np.empty(0, dtype=np.int64)])]
        return outputs

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """1 less the mean loss of the predictions, over the largest possible loss.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_points, n_features)
        y : array-like
            See :meth:`fit`.
        lengths : array-like of int, optional
            See :meth:`fit`.
        """
        predicted, fitted = self.predict(X, lengths), self._fitted_structure
        if isinstance(fitted, str):
            y = column_or_1d(y)
            check_consistent_length(X, y)
        if fitted == "multiclass":
            return float(np.mean(predicted == y))
        if fitted == "chain":
            starts = _starts(fitted, len(predicted), lengths)
            right = np.split(predicted == y, starts[1:-1])
            return float(np.mean([part.mean() for part in right if len(part)]))
        losses = [self.structure_.loss(t, p) for t, p in zip(y, predicted, strict=True)]
        return 1.0 - float(np.mean(losses)) / self.structure_.max_loss

    @property
    def _fitted_structure(self) -> str | StructuredProblem:
        """What ``structure`` was when the model was fitted."""
        if not hasattr(self, "classes_"):
            return self.structure_
        return "multiclass" if isinstance(self.structure_, MultiClass) else "chain"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _check_parameters(self) -> None:
        if not isinstance(self.structure, StructuredProblem):
            check_one_of("structure", self.structure, ("multiclass", "chain"))
        self._check_cut_parameters()
        check_one_of("dtype", dtype_name(self.dtype), ("float32", "float64"))
        check_positive("tol", self.tol, zero=True)
        check_positive("cache_size", self.cache_size, zero=True)

    def _problem(
        self, X: Any, y: Any, lengths: Any
    ) -> tuple[Any, StructuredProblem, Any, np.ndarray]:
        """The points, the structure, the training outputs, and where each input begins."""
        self.__dict__.pop("classes_", None)  # of an earlier fit
        structure = self.structure
        if isinstance(structure, StructuredProblem):
            X, targets = training_points(self, X)[0], list(y)
            starts = _starts(structure, X.shape[0], lengths)
            if len(targets) != len(starts) - 1:
                raise ValueError(
                    f"y must hold an output for each input: got {len(targets)} for "
                    f"{len(starts) - 1} inputs"
                )
            return X, structure, structure.checked(targets, np.diff(starts)), starts
        X, y = training_points(self, X, y)
        check_classification_targets(y)
        starts = _starts(structure, X.shape[0], lengths)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"StructuredSVM needs two classes in y, got only one class: {self.classes_[0]}"
            )
        if structure == "multiclass":
            return X, MultiClass(len(self.classes_)), labels, starts
        return X, LinearChain(len(self.classes_)), np.split(labels, starts[1:-1]), starts


def _starts(structure: str | StructuredProblem, n_points: int, lengths: Any) -> np.ndarray:
    """Where the points of each input begin, and the number of points."""
    if lengths is None:
        lengths = [n_points] if structure == "chain" else np.ones(n_points, dtype=int)
    elif structure == "multiclass":
        raise ValueError("structure='multiclass' has a point an input: leave out lengths")
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < 1).any():
        raise ValueError("lengths must be whole numbers >= 1, one for each input")
    if lengths.sum() != n_points:
        raise ValueError(f"lengths sum to {lengths.sum()}, but X has {n_points} points")
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
