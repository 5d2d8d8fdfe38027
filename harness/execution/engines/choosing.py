"""From what the user asks for to an engine; nothing of Dask is imported."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ....data_loaders import suggest
from ....data_loaders.errors import without_credentials
from ...errors import UserError
from .engine import DaskEngine

#: What ``--cluster`` accepts: module and class that start such a cluster.
CLUSTERS = {
    "slurm": ("dask_jobqueue", "SLURMCluster"),
    "pbs": ("dask_jobqueue", "PBSCluster"),
    "lsf": ("dask_jobqueue", "LSFCluster"),
    "sge": ("dask_jobqueue", "SGECluster"),
    "kubernetes": ("dask_kubernetes.operator", "KubeCluster"),
}
# What 'dask scheduler' prints; without a protocol it is tcp.
_PROTOCOLS = ("tcp", "tls", "ws", "wss", "ucx", "ucxx")
_ADDRESS = re.compile(r"(?:([a-z]+)://)?(?:[^\s/@:\[\]]+|\[[^\s/@\[\]]+\]):(\d{1,5})")
_INSTALL = {
    "distributed": "pip install 'marginbench[dask]'",
    "dask_jobqueue": "pip install 'marginbench[dask]'",
    "dask_kubernetes": "pip install dask-kubernetes",
}


def chosen_engine(
    scheduler: str | None = None,
    cluster: str | None = None,
    options: Path | None = None,
    *,
    timing: bool = False,
    jobs: int = 1,
) -> DaskEngine | None:
    """The engine that the user asks for; None for the processes of this machine.

    Parameters
    ----------
    scheduler : str, optional
        Address of a Dask scheduler.
    cluster : str, optional
        Name of a batch system, one of :data:`CLUSTERS`.
    options : Path, optional
        TOML file with the keyword arguments of the cluster's class, and ``jobs``.
    timing : bool
        Whether runs are to be timed on machines of one model, one at a time on each.
    jobs : int
        Runs at the same time on this machine.

    Raises
    ------
    UserError
        If these do not go together, or a package is not installed.
    """
    if cluster is None and options is not None:
        raise UserError(f"--cluster-options {options}: needs --cluster, such as --cluster slurm")
    if scheduler is None and cluster is None:
        if timing:
            raise UserError(
                "--timing chooses machines of a cluster: it needs --scheduler or --cluster; here, "
                "runs are timed one at a time without --jobs"
            )
        return None
    if scheduler is not None and cluster is not None:
        raise UserError("--scheduler uses a cluster that runs, --cluster starts one; give one")
    if jobs != 1:
        raise UserError(
            f"--jobs {jobs}: is for runs on this machine; each Dask worker does one run at a time"
        )
    _check_installed("distributed", "--scheduler" if cluster is None else "--cluster")
    if cluster is None:
        return DaskEngine(scheduler=_checked_address(scheduler or ""), timing=timing)
    if cluster not in CLUSTERS:
        raise UserError(f"--cluster {cluster!r} is not known{suggest(cluster, list(CLUSTERS))}")
    _check_installed(CLUSTERS[cluster][0].partition(".")[0], f"--cluster {cluster}")
    found = {} if options is None else read_options(options)
    workers = found.pop("jobs", 1)
    return DaskEngine(cluster=cluster, workers=workers, options=found, timing=timing)


def read_options(path: Path) -> dict[str, Any]:
    """The options of a cluster: the table ``[cluster]`` of a TOML file, or all of the file.

    Raises
    ------
    UserError
        If it cannot be read, or ``jobs`` is no number of workers.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    options = found.get("cluster", found)
    if not isinstance(options, Mapping):
        raise UserError(f"{path}: cluster = {options!r}: write it as a table [cluster]")
    jobs = options.get("jobs", 1)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise UserError(f"{path}: jobs = {jobs!r}: must be a number of workers, at least 1")
    return dict(options)


def _checked_address(text: str) -> str:
    """The address of a scheduler, if it looks like one; none is asked."""
    found = _ADDRESS.fullmatch(text)
    if found is None or (found[1] or "tcp") not in _PROTOCOLS or not 0 < int(found[2]) < 65536:
        raise UserError(
            f"--scheduler {without_credentials(text)!r}: must be tcp://HOST:PORT, the address that "
            "'dask scheduler' prints"
        )
    return text


def _check_installed(package: str, option: str) -> None:
    if find_spec(package) is None:
        raise UserError(f"{option} needs the package {package}: {_INSTALL[package]}")
