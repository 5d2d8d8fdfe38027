"""Runs of solvers from outside the project: fitted in one process, judged in another.

The first process runs the solver's code. It sends each state of the run in plain numbers, and at
the end what the estimator says of itself. The second one loads the data itself and never imports
that code. The parent stands between them, with clocks of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...solvers.numeric.counters import Counters
from ..errors import EvaluationError
from ..execution.jobs import PhaseMessage, Send, SnapshotMessage, Stamp
from ..execution.wire import FrameReader, decode
from ..results.svm import CLAIMED_TUNING
from .measurement import Prepared, epochs_of
from .plain import PlainModel
from .svm import ApartWork, Claims, JudgeWork
from .tracing import Snapshot, check_count
from .verdict import Judgement, is_epochs, load_task_data

#: What only the solver's own process can know.
CLAIMED = "n_iter counters epochs"
_PIECE = 2**20


def fit_apart(work: ApartWork, send: Send) -> dict[str, Any]:
    """Run a solver, and send away all that is to be judged.

    Returns
    -------
    dict
        The fields of its claims.

    Raises
    ------
    DataError
        If the data cannot be loaded.
    Exception
        Whatever the solver raises.
    """

    def judge(snapshot: Snapshot) -> bool:
        state = {
            "n_iter": snapshot.n_iter,
            "counters": snapshot.counters,
            "model": snapshot.model.tree(),
            "final": snapshot.final,
        }
        send(SnapshotMessage(state, Stamp(snapshot.wall_s, snapshot.cpu_s)))
        return snapshot.model.finite

    prepared = Prepared(work.fit, send)
    monitor = prepared.monitor(judge, send)
    try:
        claims = _plain_scores(prepared.fit(monitor, send))
    except EvaluationError as error:
        claims = Claims("wrong", str(error))
    return asdict(replace(claims, epochs=epochs_of(prepared.estimator)))


def judge_apart(work: JudgeWork, send: Send) -> dict[str, Any]:
    """Judge what a run sent away.

    Parameters
    ----------
    work : JudgeWork
    send : callable
        Takes the checkpoints.

    Returns
    -------
    dict
        The columns of the record.
    """
    send(PhaseMessage("evaluate"))
    fit = work.fit
    judgement = Judgement(
        fit.problem,
        load_task_data(fit.problem),
        certificate=fit.certificate,
        tol=fit.tol,
        rules=fit.rules,
        send=send,
    )
    columns: dict[str, Any] = {"reason": work.note}
    if work.times:
        columns |= {"wall_s": work.times[-1].wall_s, "cpu_s": work.times[-1].cpu_s}
    try:
        before = None
        for state, time in zip(_states(work.snapshots), work.times, strict=False):
            before = _later(before, _snapshot(state, time), counts=fit.instrumented)
            judgement(before)
        if work.claims is not None:
            columns["status"], reason = judgement.verdict(work.claims)
            columns["reason"] = "; ".join(filter(None, (reason, work.note)))
    except EvaluationError as error:
        columns |= {"status": "wrong", "reason": str(error)}
    if work.claims is not None and is_epochs(work.claims.epochs):
        columns["epochs"] = work.claims.epochs
    claimed = f"{CLAIMED} {CLAIMED_TUNING}" if work.tuned else CLAIMED
    return {**columns, **judgement.columns(), "claimed": claimed}


def _states(path: Path | None) -> Iterator[Any]:
    """The states in a file, one after the other."""
    if path is None:
        return
    reader = FrameReader()
    with path.open("rb") as source:
        while piece := source.read(_PIECE):
            reader.feed(piece)
            for text, data in reader.frames():
                yield decode(text, data)


def _snapshot(state: Any, time: Stamp) -> Snapshot:
    """A state that travelled, with the times that hold.

    Raises
    ------
    EvaluationError
        If it is none.
    """
    if set(state) != {"n_iter", "counters", "model", "final"}:
        raise EvaluationError("a state of the run has other fields than states have")
    counts = state["counters"]
    if counts is not None:
        known = {item.name for item in fields(Counters)}
        if not isinstance(counts, dict) or not known.issuperset(counts):
            raise EvaluationError("the counters of the run are none")
        counts = {name: check_count(name, count) for name, count in counts.items()}
    return Snapshot(
        n_iter=check_count("n_iter", state["n_iter"]),
        counters=counts,
        wall_s=time.wall_s,
        cpu_s=time.cpu_s,
        model=PlainModel.of_tree(state["model"]),
        final=state["final"] is True,
    )


def _later(before: Snapshot | None, state: Snapshot, *, counts: bool) -> Snapshot:
    """The state, if it can follow the one before.

    Raises
    ------
    EvaluationError
        If a count has fallen, or the solver counts and there are none.
    """
    if counts and state.counters is None:
        raise EvaluationError("the solver says that it counts, but there are no counts")
    if before is not None:
        old = {"n_iter": before.n_iter or 0, **(before.counters or {})}
        new = {"n_iter": state.n_iter or 0, **(state.counters or {})}
        for name, count in old.items():
            if new.get(name, -1) < count:
                raise EvaluationError(f"{name} is {new.get(name)}, but it was {count} before")
    return state


def _plain_scores(claims: Claims) -> Claims:
    """The claims with scores that can travel."""
    try:
        return replace(claims, scores=np.asarray(claims.scores, dtype=np.float64))
    except (TypeError, ValueError):
        raise EvaluationError("decision_function returned no numbers") from None
