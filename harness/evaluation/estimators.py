"""Classifiers of other libraries: what the task decides of them, how they are fitted and judged."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from ..errors import EvaluationError, SolverError
from ..jobs import Send
from ..loading import load_named
from ..results.svm import Checkpoint, packed
from .judging import Clocks, Judgement, check_count, compared_rows
from .measurement import warm_up_rows
from .models import PlainModel
from .svm import EstimatorWork, StoppingRules
from .tuning import TrialMonitor, begun

if TYPE_CHECKING:
    from ...data_loaders import Dataset

Array = npt.NDArray[Any]

# Characters of a reason.
_REASON = 200

_KERNEL = ("kernel", "gamma", "degree", "coef0")


@dataclass(frozen=True)
class Peer:
    """A class whose parameters mean what those of a task mean."""

    decided: tuple[str, ...]  # parameters that the task decides
    # The kernels of tasks that it has as well; empty if it takes none.
    kernels: tuple[str, ...] = ()
    # Whether it solves the task's problem with bias on two classes, so that its coefficients are
    # judged and not only its predictions; None: if they turn out to.
    solves: bool | None = False
    unless: tuple[str, ...] = ()  # parameters that make another problem of it
    several: str = ""  # how it differs from the task's problem if that has several classes


_SHARED_KERNELS = ("linear", "poly", "rbf")
#: Classes of scikit-learn by name. Of every other class the task decides nothing but the seed.
PEERS: Mapping[str, Peer] = {
    "SVC": Peer(
        (*_KERNEL, "C"),
        _SHARED_KERNELS,
        solves=True,
        unless=("class_weight",),
        several="it trains one classifier for each pair of classes",
    ),
    "NuSVC": Peer(_KERNEL, _SHARED_KERNELS),
    "LinearSVC": Peer(("C",)),
    "LogisticRegression": Peer(("C", "fit_intercept")),
}
#: What a seed is called; of the parts of a pipeline with their names before it.
_SEED = "random_state"


def peer_of(maker: Any) -> Peer:
    """A class by its name if it is one of scikit-learn, else by what it says of itself."""
    if inspect.isclass(maker) and maker.__module__.startswith("sklearn."):
        return PEERS.get(maker.__qualname__, Peer(()))
    if getattr(maker, "certificate", None) == "dual":
        parameters = inspect.signature(maker).parameters
        kernels = _SHARED_KERNELS if "kernel" in parameters else ()
        decided = (*_KERNEL, "C", "fit_intercept")
        return Peer(tuple(name for name in decided if name in parameters), kernels, solves=True)
    return Peer((), solves=None)


def check_maker(maker: Any, name: str) -> None:
    """Check that this can make an estimator: a class with fit and predict, or a function."""
    if inspect.isclass(maker):
        missing = [item for item in ("fit", "predict") if not callable(getattr(maker, item, None))]
        if not missing:
            return
        raise SolverError(
            f"{name.rpartition(':')[0]}: {maker.__name__} is not a solver; derive it from "
            f"marginbench.Solver, or give it {missing[0]} for a classifier with fit and predict"
        )
    if not inspect.isfunction(maker):
        raise SolverError(
            f"{name} is a {type(maker).__name__}; give a class, or a function that makes a "
            "classifier with fit and predict"
        )


def traits_of(maker: Any) -> dict[str, Any]:
    """The traits of what makes an estimator, for planning."""
    peer = peer_of(maker)
    parameters = inspect.signature(maker).parameters.values()
    return {
        **asdict(peer),
        "outside": True,
        "supports_bias": True,
        "supports_no_bias": not peer.solves or "fit_intercept" in peer.decided,
        "supports_sparse": True,
        "scalarization": "C" if peer.solves else None,
        "certificate": "dual" if peer.solves else None,
        "instrumented": False,
        "any_parameter": any(each.kind == each.VAR_KEYWORD for each in parameters),
    }


def built(work: EstimatorWork) -> Any:
    """The estimator of a run, with its seed wherever it has one that is not set."""
    estimator = load_named(work.solver)(**work.params)
    if hasattr(estimator, "get_params") and hasattr(estimator, "set_params"):
        seeds = {
            key: work.seed
            for key, value in estimator.get_params().items()
            if value is None and (key == _SEED or key.endswith(f"__{_SEED}"))
        }
        if seeds:
            estimator.set_params(**seeds)
    return estimator


def mistakes_of(estimator: Any, X: Any, y: Array, classes: Array, part: str) -> Array:
    """Which of its predictions are wrong, shape (n_points,)."""
    labels, n = np.asarray(estimator.predict(X)), len(y)
    if labels.shape != (n,):
        raise EvaluationError(f"predict returned shape {labels.shape} for the {n} {part} points")
    if labels.dtype.kind not in "biuf":
        raise EvaluationError(
            f"predict returned values of type {str(labels.dtype)[:40]}, not the labels of the task"
        )
    of_task = np.isin(labels, classes)
    if not of_task.all():
        row = int(np.argmin(of_task))
        raise EvaluationError(
            f"the prediction for {part} point {row}, {labels[row]}, is no class of the task"
        )
    wrong: Array = labels != y
    return wrong


def expansion_of(estimator: Any) -> PlainModel:
    """The expansion of a fitted estimator of two classes; scores > 0 are of its second class."""
    try:
        coef = estimator.dual_coef_
        dense = np.ravel(coef.toarray() if hasattr(coef, "toarray") else coef)
        intercept = float(np.ravel(estimator.intercept_)[0])
        support = np.asarray(estimator.support_, dtype=np.int64)
        arrays = {"support": support, "coef": np.array(dense, dtype=np.float64)}
    except (TypeError, ValueError, IndexError):
        raise EvaluationError("support_, dual_coef_ or intercept_ are no numbers") from None
    return PlainModel("kernel expansion", intercept, arrays)


def measure_estimator(work: EstimatorWork, send: Send) -> dict[str, Any]:
    """Fit a classifier, timed, and judge its model, or what it predicts."""
    work, dataset, estimator, columns = begun(work, send, built, _warm_up, _try)
    send({"phase": "solve"})
    clocks = Clocks()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clocks.resume()
        estimator.fit(dataset.X_train, dataset.y_train)
        clocks.pause()
    send({"phase": "evaluate", "solve_s": clocks.wall_s})
    spent: dict[str, Any] = {"wall_s": clocks.wall_s, "cpu_s": clocks.cpu_s}
    reasons = [
        str(each.message).partition("\n")[0][:_REASON] or "it did not converge"
        for each in caught
        if issubclass(each.category, ConvergenceWarning)
    ]
    columns |= {"status": "budget" if reasons else "converged", "reason": "".join(reasons[:1])}
    columns |= {"judged_by": "model" if work.solves else "predictions", **spent}
    classes, errors = np.unique(dataset.y_train), dict[str, Any]()
    names = ("support_", "dual_coef_", "intercept_", "decision_function")
    has_model = len(classes) == 2 and all(hasattr(estimator, name) for name in names)
    try:
        if work.solves is not False and has_model:
            try:
                judged = _judged_model(work, estimator, dataset, columns, send)
                return columns | judged | {"judged_by": "model"}
            except EvaluationError:
                # A class that promises nothing may solve another problem.
                if work.solves:
                    raise
        for part, words in (("train", "training"), ("test", "test")):
            X, y = getattr(dataset, f"X_{part}"), getattr(dataset, f"y_{part}")
            mistakes = mistakes_of(estimator, X, y, classes, words)
            errors[f"{part}_error"] = float(np.mean(mistakes))
        unknown: dict[str, Any] = dict.fromkeys(("n_iter", "n_support", "primal", "dual"))
        send({"checkpoint": Checkpoint(**unknown, **errors, **spent)})
        return {**columns, **errors, "mistakes": packed(mistakes)}
    except EvaluationError as error:
        return columns | {"status": "wrong", "reason": str(error)}


def _warm_up(work: EstimatorWork, estimator: Any, dataset: Dataset) -> None:
    """Fit and predict a few points, so that imports and compilation are not timed later."""
    rows = warm_up_rows(dataset.y_train)
    # Failing on so few points proves nothing; the real fit will tell.
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        built(work).fit(dataset.X_train[rows], dataset.y_train[rows]).predict(dataset.X_train[rows])


def _try(work: EstimatorWork, part: Dataset, monitor: TrialMonitor) -> int:
    """Fit a configuration to a part of the data; its mistakes on the rest."""
    estimator = built(work)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor.start(None)
        estimator.fit(part.X_train, part.y_train)
        monitor.clocks.pause()
        X, y, classes = part.X_test, part.y_test, np.unique(part.y_train)
        return int(mistakes_of(estimator, X, y, classes, "validation").sum())


def _judged_model(
    work: EstimatorWork,
    estimator: Any,
    dataset: Dataset,
    columns: Mapping[str, Any],
    send: Send,
) -> dict[str, Any]:
    sent: list[Any] = []
    tol = work.params.get("tol")
    judgement = Judgement(
        work.problem,
        dataset,
        certificate=True,
        tol=float(tol) if isinstance(tol, int | float) else work.tol,
        rules=StoppingRules(),
        send=sent.append,
    )
    n_iter = getattr(estimator, "n_iter_", None)
    count = None if n_iter is None else check_count("n_iter", np.ravel(n_iter)[0])
    clocks = {name: columns[name] for name in ("wall_s", "cpu_s")}
    judgement(expansion_of(estimator), final=True, n_iter=count, counters=None, **clocks)
    scores = estimator.decision_function(dataset.X_test[compared_rows(dataset.n_test)])
    status, reason = judgement.verdict(columns["status"], scores)
    for message in sent:
        send(message)
    return {"status": status, "reason": reason or columns["reason"], **judgement.columns()}
