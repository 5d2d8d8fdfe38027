"""Clusters that are started for a command and end with it, by the libraries made for that."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from inspect import signature
from typing import Any

from ...errors import EngineError, UserError, first_line
from ...words import REASON_LIMIT, visible
from .choosing import CLUSTERS

# What dask-jobqueue writes of a command of the batch system that failed, each under a heading.
_PARTS = ("Exit code", "Command:", "stdout", "stderr")
# Of dask-jobqueue: a text in their place would be taken letter by letter, each as a line.
_LISTS = (
    "job_extra_directives",
    "job_directives_skip",
    "job_script_prologue",
    "worker_extra_args",
)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Find what the class of a batch system does not take; nothing is started or submitted.

    Parameters
    ----------
    name : str
        One of :data:`.choosing.CLUSTERS`. Only dask-jobqueue can tell.
    options : mapping
        Keyword arguments of the cluster's class.

    Raises
    ------
    UserError
        If it would refuse them.
    """
    if CLUSTERS[name][0] != "dask_jobqueue":
        return
    for option in _LISTS:
        if not isinstance(options.get(option, []), list):
            raise UserError(f'--cluster {name}: {option} must be a list of texts: ["..."]')
    cluster_class = _class_of(name)
    # Its base takes these for itself; what is left goes to the class that writes job scripts.
    own = set(signature(cluster_class).parameters) - {"config_name"}
    try:
        cluster_class.job_cls("tcp://node:1", name="check", **_without(options, own))
    except Exception as error:  # noqa: BLE001 - whatever the library raises
        raise UserError(
            f"--cluster {name}: its options are not valid ({first_line(error)}); {_see(name)}"
        ) from None


def _class_of(name: str) -> Any:
    module, class_name = CLUSTERS[name]
    with _own_interrupts():
        return getattr(import_module(module), class_name)


def _without(options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _see(name: str) -> str:
    module, class_name = CLUSTERS[name]
    package = module.partition(".")[0].replace("_", "-")
    return f"see the options of {class_name} in the documentation of {package}"


@contextlib.contextmanager
def started(name: str, workers: int, options: Mapping[str, Any]) -> Iterator[Any]:
    """A cluster with this many workers, until the end of the block.

    Parameters
    ----------
    name : str
        One of :data:`.choosing.CLUSTERS`.
    workers : int
    options : mapping
        Keyword arguments of the cluster's class.

    Raises
    ------
    EngineError
        If it cannot be started; the message is that of the library or of the batch system.
    """
    try:
        cluster = _class_of(name)(**_with_defaults(CLUSTERS[name][0], options))
    except Exception as error:  # noqa: BLE001 - a library of its own, and a batch system behind it
        raise EngineError(
            f"--cluster {name}: cannot be started ({first_line(error)}); {_see(name)}"
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
    at = {name: n for n, line in enumerate(lines) for name in _PARTS if line.startswith(name)}
    told = lines[at["stderr"] + 1 :] if "stderr" in at else []
    if not told and len(at) == len(_PARTS):
        # As of bsub, whose words dask-jobqueue throws away.
        code = lines[at["Exit code"]].rpartition(":")[2].strip()
        told = [f"{lines[at['Command:'] + 1]}: exit code {code}, and not a word"]
    return visible(" | ".join(told), REASON_LIMIT) if told else first_line(error)


def _with_defaults(module: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and no dashboard unless one is asked for; its usual port may be taken."""
    if module != "dask_jobqueue":
        return dict(options)
    scheduler = {
        "dashboard": False,
        "dashboard_address": ":0",
        **options.get("scheduler_options", {}),
    }
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
