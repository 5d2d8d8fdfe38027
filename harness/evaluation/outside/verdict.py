"""What a run of an estimator or program is worth: its model judged, or its predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import EvaluationError
from ...execution.jobs import CheckpointMessage, PhaseMessage, Send, Stamp
from ...results.mistakes import packed
from ...results.svm import Checkpoint
from ..plain import PlainModel
from ..svm import Claims, StoppingRules
from ..tracing import Snapshot, check_count
from ..verdict import Judgement, compared_rows, load_task_data
from .work import OutsideClaims, OutsideJudge

if TYPE_CHECKING:
    from ....data_loaders import Dataset

Array = npt.NDArray[Any]


def judge_outside(work: OutsideJudge, send: Send) -> dict[str, Any]:
    """Judge what a run sent away.

    Parameters
    ----------
    work : OutsideJudge
    send : callable
        Takes the only checkpoint.

    Returns
    -------
    dict
        The columns of the record.
    """
    send(PhaseMessage("evaluate"))
    claims = work.claims
    columns: dict[str, Any] = {"reason": "; ".join(filter(None, (claims.reason, work.note)))}
    columns["judged_by"] = "model" if work.work.solves else "predictions"
    if claims.peak_memory_mb is not None:
        columns["peak_memory_mb"] = claims.peak_memory_mb
    try:
        if claims.status == "wrong":
            raise EvaluationError(claims.reason)
        if not work.times:
            raise EvaluationError("the run did not report when its fit had ended")
        time = work.times[0]
        columns |= {"wall_s": time.wall_s, "cpu_s": time.cpu_s}
        dataset = load_task_data(work.work.problem)
        judged = _judged_model if work.work.solves else _judged_predictions
        found = judged(work, claims, dataset, time, send)
        # A verdict may have a reason of its own.
        columns |= {name: value for name, value in found.items() if name != "reason" or value}
    except EvaluationError as error:
        columns |= {"status": "wrong", "reason": str(error)}
    return columns


def _judged_model(
    work: OutsideJudge, claims: OutsideClaims, dataset: Dataset, time: Stamp, send: Send
) -> dict[str, Any]:
    judgement = Judgement(
        work.work.problem,
        dataset,
        certificate=True,
        tol=work.work.tol,
        rules=StoppingRules(),
        send=send,
    )
    model = PlainModel.of_tree(claims.model)
    n_iter = None if claims.n_iter is None else check_count("n_iter", claims.n_iter)
    judgement(Snapshot(n_iter, None, time.wall_s, time.cpu_s, model, final=True))
    scores = claims.scores
    if scores is None:
        # A model file has no scores that could differ from its own.
        scores = judgement.evaluator.test_scores(model, compared_rows(dataset.n_test))
    status, reason = judgement.verdict(Claims(claims.status, scores=scores))
    claimed = {} if n_iter is None else {"claimed": "n_iter"}
    return {"status": status, "reason": reason, **claimed, **judgement.columns()}


def _judged_predictions(
    work: OutsideJudge, claims: OutsideClaims, dataset: Dataset, time: Stamp, send: Send
) -> dict[str, Any]:
    classes = np.unique(dataset.y_train)
    on_train = _mistakes(claims, claims.train, dataset.y_train, classes, "training")
    mistakes = _mistakes(claims, claims.test, dataset.y_test, classes, "test")
    train_error, test_error = float(np.mean(on_train)), float(np.mean(mistakes))
    send(
        CheckpointMessage(
            Checkpoint(
                n_iter=None,
                wall_s=time.wall_s,
                cpu_s=time.cpu_s,
                n_support=None,
                primal=None,
                dual=None,
                train_error=train_error,
                test_error=test_error,
            )
        )
    )
    return {
        "status": claims.status,
        "train_error": train_error,
        "test_error": test_error,
        "mistakes": packed(mistakes),
    }


def _mistakes(claims: OutsideClaims, given: Any, y: Array, classes: Array, part: str) -> Array:
    """Which predictions are wrong.

    Raises
    ------
    EvaluationError
        If they are not one for each point, or one is no class, or no score.
    """
    if not isinstance(given, np.ndarray) or given.shape != y.shape:
        shape = getattr(given, "shape", None)
        raise EvaluationError(f"there are predictions of shape {shape} for {len(y)} {part} points")
    if claims.by_score:
        _check_all(np.isfinite(given), given, part, "is no score")
        given = np.where(given > 0, classes[-1], classes[0])
    _check_all(np.isin(given, classes), given, part, "is no class of the task")
    wrong: Array = given != y
    return wrong


def _check_all(good: Array, given: Array, part: str, fault: str) -> None:
    if not good.all():
        row = int(np.argmin(good))
        raise EvaluationError(f"the prediction for {part} point {row}, {given[row]}, {fault}")
