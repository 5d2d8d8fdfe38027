"""What cannot be written: one line that names the file, the system's reason and a remedy."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from marginbench.data_loaders.atomic import DISK_ERRORS
from marginbench.data_loaders.errors import CacheError
from marginbench.harness.errors import StorageError

_REMEDY = "make room there or allow writing, then run the same command again"

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


@contextlib.contextmanager
def storing(path: Path, remedy: str = _REMEDY) -> Iterator[None]:
    """Turn an error of the system in this block into one line about the file that it writes.

    Parameters
    ----------
    path : Path
        What is written.
    remedy : str
        What the user can do.

    Raises
    ------
    StorageError
        If the block raises an OSError.
    """
    try:
        yield
    except FileNotFoundError:
        raise StorageError(
            f"{path}: cannot be written, its folder was removed; run the same command again"
        ) from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({_reason(error)}); {remedy}") from None


def unforeseen(error: OSError) -> StorageError | None:
    """The same for an error that no code expected where it occurred; None if it is another."""
    if error.errno not in DISK_ERRORS:
        return None
    name = "the output" if error.filename is None else os.fsdecode(error.filename)
    return StorageError(f"{name}: cannot be read or written ({_reason(error)}); {_REMEDY}")


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


@dataclass(frozen=True)
class Unwritten:
    """The value of a job that a worker could not do because a file cannot be written."""

    message: str


def reporting_unwritten(run: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """Work whose value is an `Unwritten` where a file cannot be written; see :func:`checked`.

    An exception would reach the parent as the failure of one job, but this is not about the job:
    the command is to end.
    """

    @functools.wraps(run)
    def reporting(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        try:
            return run(*args, **kwargs)
        except (CacheError, StorageError) as error:
            return cast(Value, Unwritten(str(error)))

    return reporting


def checked(value: Value) -> Value:
    """The value of a job.

    Raises
    ------
    StorageError
        If a worker could not write a file.
    """
    if isinstance(value, Unwritten):
        raise StorageError(value.message)
    return value
