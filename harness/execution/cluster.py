"""Engines that run a study elsewhere: on a Dask scheduler, or on a cluster that is started for it.

Nothing of Dask is imported before it is needed. Clusters that are started for a command end with
it; the libraries made for that start them.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

from ...data_loaders import suggest
from ...data_loaders.errors import without_credentials
from ..errors import EngineError, UserError, first_line
from ..jobs import Executor
from ..words import REASON_LIMIT, visible

#: What ``--cluster`` accepts: module and class that start such a cluster.
CLUSTERS = {
    "slurm": ("dask_jobqueue", "SLURMCluster"),
    "pbs": ("dask_jobqueue", "PBSCluster"),
    "lsf": ("dask_jobqueue", "LSFCluster"),
    "sge": ("dask_jobqueue", "SGECluster"),
    "kubernetes": ("dask_kubernetes.operator", "KubeCluster"),
}
# What 'dask scheduler' prints; without a protocol it is tcp.
_ADDRESS = re.compile(r"(?:(?:tcp|tls|wss?|ucxx?)://)?[^\s/@]+:(\d{1,5})")


@dataclass(frozen=True)
class Engine:
    """Workers of a Dask cluster on which the runs of a study take place; it is planned here."""

    scheduler: str = ""  # address of one that runs; empty to start a cluster
    cluster: str = ""  # what starts one: one of CLUSTERS
    # How many jobs of it to start, each with one worker unless its options say otherwise.
    workers: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of its class
    timing: bool = False  # whether only machines of one model are used, each for one run at a time

    def check_options(self) -> None:
        """UserError for options that the class of a batch system lacks; nothing is started.

        Only dask-jobqueue can tell.
        """
        if not self.cluster or CLUSTERS[self.cluster][0] != "dask_jobqueue":
            return
        cluster_class = _class_of(self.cluster)
        # Its base takes these for itself; what is left goes to the class that writes job scripts.
        of_base = signature(cluster_class).parameters.keys() - {"config_name"}
        others = {option: value for option, value in self.options.items() if option not in of_base}
        try:
            cluster_class.job_cls("tcp://node:1", name="check", **others)
        except Exception as error:  # noqa: BLE001 - whatever the library raises
            raise UserError(
                f"--cluster {self.cluster}: its options are not valid ({first_line(error)}); give "
                f"them with --cluster-options FILE; see those of {cluster_class.__name__}"
            ) from None

    def check(self) -> None:
        """Check the options, and that a scheduler answers if one is to run already."""
        self.check_options()
        if self.scheduler:
            from .dask import check_answers

            check_answers(self.scheduler)

    @contextlib.contextmanager
    def opened(self, say: Callable[[str], None]) -> Iterator[Executor]:
        """An executor on the cluster, until the end of the block; ``say`` takes one line."""
        from .dask import DaskExecutor

        with contextlib.ExitStack() as stack:
            address, more = self.scheduler, dict[str, Any]()
            if self.cluster:
                cluster = stack.enter_context(started(self.cluster, self.workers, self.options))
                address, more["security"] = cluster.scheduler_address, cluster.security
                more["expected"] = self.workers * int(self.options.get("processes", 1))
            executor = DaskExecutor(address, say, timing=self.timing, **more)
            yield stack.enter_context(contextlib.closing(executor))


def chosen_engine(
    scheduler: str | None = None,
    cluster: str | None = None,
    options: Path | None = None,
    *,
    timing: bool = False,
    jobs: int = 1,
) -> Engine | None:
    """The engine that the user asks for; None for the processes of this machine.

    ``options`` is a TOML file with the keyword arguments of the cluster's class, and ``jobs``. A
    UserError says what does not go together, or which package is not installed.
    """
    if cluster is None and options is not None:
        raise UserError(f"--cluster-options {options}: needs --cluster, such as --cluster slurm")
    if scheduler is None and cluster is None:
        if timing:
            raise UserError("--timing chooses machines of a cluster: give --scheduler or --cluster")
        return None
    if scheduler is not None and cluster is not None:
        raise UserError("--scheduler uses a cluster that runs, --cluster starts one; give one")
    if jobs != 1:
        raise UserError(
            f"--jobs {jobs}: is for runs on this machine; each Dask worker does one run at a time"
        )
    if cluster is not None and cluster not in CLUSTERS:
        raise UserError(f"--cluster {cluster!r} is not known{suggest(cluster, list(CLUSTERS))}")
    needed = ["distributed", *(CLUSTERS[cluster][0].split(".")[:1] if cluster else ())]
    for package in needed:
        if find_spec(package) is None:
            option = "--scheduler" if cluster is None else f"--cluster {cluster}"
            what = "dask-kubernetes" if package == "dask_kubernetes" else "'marginbench[dask]'"
            raise UserError(f"{option} needs the package {package}: pip install {what}")
    if cluster is not None:
        settings = {} if options is None else read_options(options)
        workers = settings.pop("jobs", 1)
        return Engine(cluster=cluster, workers=workers, options=settings, timing=timing)
    assert scheduler is not None
    match = _ADDRESS.fullmatch(scheduler)
    if match is None or not 0 < int(match[1]) < 65536:
        raise UserError(
            f"--scheduler {without_credentials(scheduler)!r}: must be tcp://HOST:PORT, the "
            "address that 'dask scheduler' prints"
        )
    return Engine(scheduler=scheduler, timing=timing)


def read_options(path: Path) -> dict[str, Any]:
    """The options of a cluster: the table ``[cluster]`` of a TOML file, or all of the file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    options = content.get("cluster", content)
    if not isinstance(options, Mapping):
        raise UserError(f"{path}: cluster = {options!r}: write it as a table [cluster]")
    jobs = options.get("jobs", 1)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise UserError(f"{path}: jobs = {jobs!r}: must be a number of workers, at least 1")
    return dict(options)


def _class_of(name: str) -> Any:
    module, class_name = CLUSTERS[name]
    before = signal.getsignal(signal.SIGINT)
    try:
        return getattr(import_module(module), class_name)
    finally:
        # dask-jobqueue makes Ctrl-C an exit when it is imported.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def started(name: str, workers: int, options: Mapping[str, Any]) -> Iterator[Any]:
    """A cluster with this many workers, until the end of the block; errors are one line."""
    try:
        options = dict(options)
        if CLUSTERS[name][0] == "dask_jobqueue":
            # With no dashboard unless they set one; its usual port may be taken.
            quiet = {"dashboard": False, "dashboard_address": ":0"}
            options["scheduler_options"] = quiet | dict(options.get("scheduler_options", {}))
        cluster = _class_of(name)(**options)
    except Exception as error:  # noqa: BLE001 - a library of its own, and a batch system behind it
        raise EngineError(
            f"--cluster {name}: cannot be started ({first_line(error)}); see the options of "
            f"{CLUSTERS[name][1]}"
        ) from None
    try:
        try:
            # Until the batch system has taken their jobs; cluster.scale would only log a refusal.
            if hasattr(cluster, "worker_spec"):
                for _ in range(workers):
                    cluster.worker_spec.update(cluster.new_worker_spec())

                async def launched() -> None:
                    await cluster

                cluster.sync(launched)
            else:
                cluster.scale(workers)
        except Exception as error:  # noqa: BLE001 - as above
            raise EngineError(
                # The library's words hold those of the batch system.
                f"--cluster {name}: no worker can be started: {visible(str(error), REASON_LIMIT)}"
            ) from None
        yield cluster
    finally:
        # Jobs that still wait in the queue are cancelled with it. One that has not started whole
        # may not end whole either, which is no news.
        with contextlib.suppress(Exception):
            cluster.close()
