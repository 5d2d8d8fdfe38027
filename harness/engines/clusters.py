"""Clusters that are started for a command and end with it, by the libraries made for that."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from marginbench.harness.engines.choosing import CLUSTERS
from marginbench.harness.errors import EngineError, first_line
from marginbench.harness.words import REASON_LIMIT, visible


@contextlib.contextmanager
def started(name: str, workers: int, options: Mapping[str, Any]) -> Iterator[Any]:
    """A cluster with this many workers, until the end of the block.

    Parameters
    ----------
    name : str
        One of :data:`marginbench.harness.engines.choosing.CLUSTERS`.
    workers : int
    options : mapping
        Keyword arguments of the cluster's class.

    Raises
    ------
    EngineError
        If it cannot be started; the message is that of the library or of the batch system.
    """
    module, class_name = CLUSTERS[name]
    try:
        with _own_interrupts():
            cluster_class = getattr(import_module(module), class_name)
        cluster = cluster_class(**_with_defaults(module, options))
    except Exception as error:  # noqa: BLE001 - a library of its own, and a batch system behind it
        raise EngineError(
            f"--cluster {name}: cannot be started ({first_line(error)}); see the options of "
            f"{class_name} in the documentation of {module.partition('.')[0].replace('_', '-')}"
        ) from None
    try:
        try:
            _scale(cluster, workers)
        except Exception as error:  # noqa: BLE001 - as above
            raise EngineError(
                f"--cluster {name}: no worker can be started: {_said(error)}"
            ) from None
        yield cluster
    finally:
        # Jobs that still wait in the queue are cancelled with it. One that has not started whole
        # may not end whole either, which is no news.
        with contextlib.suppress(Exception):
            cluster.close()


def _scale(cluster: Any, workers: int) -> None:
    """Start workers, and wait until the batch system has taken their jobs.

    Raises
    ------
    Exception
        Whatever the library raises; ``cluster.scale`` would only log it.
    """
    if not hasattr(cluster, "worker_spec"):
        cluster.scale(workers)
        return

    async def launched() -> None:
        await cluster

    for _ in range(workers):
        cluster.worker_spec.update(cluster.new_worker_spec())
    cluster.sync(launched)


def _said(error: Exception) -> str:
    """What the batch system says, which stands at the end of what the library makes of it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = next((n for n, line in enumerate(lines) if line.startswith("stderr")), None)
    told = lines[at + 1 :] if at is not None else []
    return visible(" | ".join(told), REASON_LIMIT) if told else first_line(error)


def _with_defaults(module: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and no dashboard unless one is asked for: its port may be taken."""
    if module != "dask_jobqueue":
        return dict(options)
    scheduler = {"dashboard": False, **options.get("scheduler_options", {})}
    return {**options, "scheduler_options": scheduler}


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep what Ctrl-C does: dask-jobqueue makes it an exit when it is imported."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
