"""Messages of a worker, read by the parent: checked, because a solver may have written them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

from .jobs import (
    CheckpointMessage,
    FoundMessage,
    Message,
    Phase,
    PhaseMessage,
    ResultMessage,
    SnapshotMessage,
    Stamp,
    Work,
)
from .wire import WireError, decode

_PHASES = get_args(Phase)
# Bytes of text of all messages but results, whose notes and tracebacks may be long, and lists of
# trials.
_SHORT = 2**16
_LONG = (b'{"type": "result"', b'{"type": "found"')
_RESULT_KINDS = ("", "memory", "data", "storage", "user", "failed")


def message_of(text: bytes, data: bytes, work: Work) -> Message:
    """The message in a frame.

    Parameters
    ----------
    text, data : bytes
        The frame.
    work : Work
        What the worker does, which knows its checkpoints and its result.

    Raises
    ------
    WireError
        If it is no message.
    """
    if len(text) > _SHORT and not text.startswith(_LONG):
        raise WireError(f"a message with {len(text)} bytes of text")
    tree = decode(text, data)
    if not isinstance(tree, dict):
        raise WireError("a message without a type")
    kind, fields = tree.get("type"), {k: v for k, v in tree.items() if k != "type"}
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise WireError("a message of an unknown type")
    try:
        return reader(work, **fields)
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError) as error:
        raise WireError(f"a {kind} message that is none ({error!s:.200})") from None


def _phase(work: Work, phase: Any, solve_s: Any) -> PhaseMessage:
    if phase not in _PHASES or not _is_seconds(solve_s):
        raise ValueError(f"phase {phase!r:.40}, {solve_s!r:.40} s")
    return PhaseMessage(phase, float(solve_s))


def _found(work: Work, columns: dict[str, Any]) -> FoundMessage:
    return FoundMessage(work.parsed_found(dict(columns)))


def _checkpoint(work: Work, columns: dict[str, Any]) -> CheckpointMessage:
    return CheckpointMessage(work.parsed_checkpoint(columns))


def _snapshot(work: Work, state: Any, wall_s: Any, cpu_s: Any) -> SnapshotMessage:
    if not isinstance(state, dict):
        raise ValueError("its state is no table")
    if not (_is_seconds(wall_s) and _is_seconds(cpu_s)):
        raise ValueError(f"{wall_s!r:.40} and {cpu_s!r:.40} s")
    return SnapshotMessage(state, Stamp(float(wall_s), float(cpu_s)))


def _result(work: Work, value: Any, error: Any, kind: Any, traceback: Any) -> ResultMessage:
    if not (isinstance(error, str) and isinstance(traceback, str) and kind in _RESULT_KINDS):
        raise ValueError(f"kind {kind!r:.40}")
    return ResultMessage(None if kind else work.parsed(value), error, kind, traceback)


def _is_seconds(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value >= 0
    )


_READERS: dict[str, Callable[..., Message]] = {
    "phase": _phase,
    "found": _found,
    "checkpoint": _checkpoint,
    "snapshot": _snapshot,
    "result": _result,
}
