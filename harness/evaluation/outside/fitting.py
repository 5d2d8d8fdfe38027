"""Fits of estimators and programs, in a process of their own: timed, and asked what they predict.

That process never hands out the labels of the test points.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from ...errors import EvaluationError
from ...execution.jobs import PhaseMessage, Send, SnapshotMessage, Stamp
from ...loading import load_named
from ..measurement import warm_up_rows
from ..tracing import Clocks
from ..verdict import compared_rows, load_task_data
from . import libsvm_model
from .estimators import built, expansion_of, predicted
from .exporting import exported, scratch_folder
from .launching import Finished, Launch
from .work import Estimator, OutsideClaims, OutsideWork, Program

if TYPE_CHECKING:
    from ....data_loaders import Dataset
    from .commands import Command

_Status = Literal["converged", "budget"]
# Characters of a line of predictions, and of a reason.
_LINE = 100
_REASON = 200


def fit_outside(work: OutsideWork, send: Send) -> OutsideClaims:
    """Run a solver, and send away when it has ended.

    Raises
    ------
    DataError
        If the data cannot be loaded.
    UserError
        If a program fails, or what is to be an estimator is none.
    Exception
        Whatever an estimator raises.
    """
    send(PhaseMessage("data"))
    dataset = load_task_data(work.problem)
    try:
        if isinstance(work.fit, Program):
            return _fit_program(work, work.fit, dataset, send)
        return _fit_estimator(work, work.fit, dataset, send)
    except EvaluationError as error:
        return OutsideClaims("wrong", str(error))


def _fit_estimator(
    work: OutsideWork, fit: Estimator, dataset: Dataset, send: Send
) -> OutsideClaims:
    send(PhaseMessage("compile"))
    maker = load_named(fit.name)
    estimator = built(maker, fit.name, fit.params, fit.seed)
    _warm_up(built(maker, fit.name, fit.params, fit.seed), dataset)
    send(PhaseMessage("solve"))
    clocks = Clocks()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clocks.resume()
        estimator.fit(dataset.X_train, dataset.y_train)
        clocks.pause()
    _ended(send, clocks.wall_s, clocks.cpu_s)
    status, reason = _shortfall(caught)
    if work.solves:
        rows = compared_rows(dataset.n_test)
        return OutsideClaims(
            status,
            reason,
            n_iter=int(estimator.n_iter_[0]),
            model=expansion_of(estimator).tree(),
            scores=estimator.decision_function(dataset.X_test[rows]),
        )
    return OutsideClaims(
        status,
        reason,
        train=predicted(estimator, dataset.X_train, "training"),
        test=predicted(estimator, dataset.X_test, "test"),
    )


def _warm_up(estimator: Any, dataset: Dataset) -> None:
    """Fit and predict a few points, so that imports and compilation are not timed later."""
    rows = warm_up_rows(dataset.y_train)
    # Failing on so few points proves nothing; the real fit will tell.
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(dataset.X_train[rows], dataset.y_train[rows]).predict(dataset.X_train[rows])


def _shortfall(caught: list[warnings.WarningMessage]) -> tuple[_Status, str]:
    """The status of a fit by its warnings, and what they say of an early end."""
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            return "budget", str(warning.message).partition("\n")[0][:_REASON]
    return "converged", ""


def _ended(send: Send, wall_s: float, cpu_s: float) -> None:
    """Say that the fit has ended: what follows is not its time."""
    send(SnapshotMessage({"final": True}, Stamp(wall_s, cpu_s)))
    send(PhaseMessage("evaluate", wall_s))


def _fit_program(work: OutsideWork, fit: Program, dataset: Dataset, send: Send) -> OutsideClaims:
    command = fit.command
    name = dataset.fingerprint[:16]
    train = exported(f"{name}-train.txt", dataset.X_train, dataset.y_train)
    with _own_folder() as folder:
        model = folder / "model"
        arguments = command.training(
            work.problem.kernel,
            C=work.problem.C,
            seed=fit.seed,
            train=str(train),
            model=str(model),
        )
        with Launch(arguments, folder) as launch:
            send(PhaseMessage("solve"))
            finished = launch.run()
        _ended(send, finished.wall_s, finished.cpu_s)
        finished.check()
        status, reason = _early_end(command, finished)
        if work.solves:
            found: dict[str, Any] = {"model": _model_tree(work, model, dataset, finished.name)}
        else:
            found = {
                part: _program_predicts(command, folder, model, dataset, part)
                for part in ("train", "test")
            }
        return OutsideClaims(
            status,
            reason,
            by_score=command.output == "scores",
            peak_memory_mb=finished.peak_memory_mb,
            **found,
        )


def _model_tree(work: OutsideWork, path: Path, dataset: Dataset, program: str) -> dict[str, Any]:
    """The plain form of the model that a program has written."""
    with _opened(path, f"{program} wrote no model file") as lines:
        model = libsvm_model.expansion_of(
            lines, work.problem.kernel, dataset.X_train, dataset.y_train
        )
    return model.tree()


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder for the files of one run; if this is killed, the command removes it at its end."""
    folder = Path(tempfile.mkdtemp(dir=scratch_folder(), prefix="run-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _early_end(command: Command, finished: Finished) -> tuple[_Status, str]:
    if command.unfinished and command.unfinished in finished.output + finished.errors:
        return "budget", f"{finished.name} says: {command.unfinished}"
    return "converged", ""


def _program_predicts(
    command: Command, folder: Path, model: Path, dataset: Dataset, part: str
) -> npt.NDArray[np.float64]:
    """What a program predicts for a part of the data, of which it gets no labels."""
    X = dataset.X_test if part == "test" else dataset.X_train
    # Some programs accept no label that they were not trained with.
    hidden = np.full(X.shape[0], dataset.y_train[0])
    points = exported(f"{dataset.fingerprint[:16]}-{part}-points.txt", X, hidden)
    output = folder / f"{part}-output"
    arguments = command.predicting(test=str(points), model=str(model), output=str(output))
    with Launch(arguments, folder) as launch:
        finished = launch.run()
    finished.check()
    with _opened(output, f"{finished.name} wrote no predictions") as lines:
        return _numbers(lines, X.shape[0], finished.name)


@contextmanager
def _opened(path: Path, missing: str) -> Iterator[TextIO]:
    """A file that a program has written: no link, no pipe, and none that must be waited for.

    Raises
    ------
    EvaluationError
        If there is none, or its bytes are no text.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise EvaluationError(missing) from None
    with open(descriptor, encoding="ascii") as source:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise EvaluationError(missing)
        try:
            yield source
        except UnicodeDecodeError:
            raise EvaluationError(f"the file {path.name} is no text") from None


def _numbers(lines: TextIO, n: int, program: str) -> npt.NDArray[np.float64]:
    """One number from each line, and one for each point."""
    found = np.empty(n)
    count = 0
    while line := lines.readline(_LINE):
        if count == n:
            raise EvaluationError(f"{program} wrote more than the {n} predictions asked for")
        try:
            found[count] = float(line)
        except ValueError:
            raise EvaluationError(
                f"{program} wrote {line.strip()!r:.40} in line {count + 1}, not a number"
            ) from None
        count += 1
    if count < n:
        raise EvaluationError(f"{program} wrote {count} predictions for {n} points")
    return found
