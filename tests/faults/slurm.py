"""SLURM as a cluster of one node, this machine: Debian's slurm-wlm and munge, in a folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

#: In seconds; starting takes long where many others start.
PATIENCE = 120.0
CONFIG = """
ClusterName=tests
SlurmctldHost=HOST(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=FOLDER/munge.socket
CryptoType=crypto/munge
SlurmctldPort=PORT1
SlurmdPort=PORT2
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2,batch_sched_delay=1
NodeName=HOST NodeAddr=127.0.0.1 CPUs=CORES RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=HOST Default=YES MaxTime=INFINITE State=UP
"""


class SlurmError(Exception):
    """It cannot be started here; the message says why."""


class Slurm:
    """The daemons; a context manager that ends them.

    Attributes
    ----------
    environment : dict
        What clients need.

    Raises
    ------
    SlurmError
        If they are not installed, or do not start.
    """

    def __init__(self) -> None:
        names = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
        self._programs = {name: _program(name) for name in names}
        missing = [name for name, path in self._programs.items() if not path]
        if missing or os.geteuid() != 0:
            what = f"no {', '.join(missing)}" if missing else "not run by root"
            raise SlurmError(f"{what}; apt-get install slurm-wlm munge, and be root")
        # Names of sockets must be short, unlike those of pytest's folders.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self._start_all()
        except BaseException:
            self._stop_all()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_all()

    def says(self, *command: str) -> str:
        """What a client prints."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout

    def _start_all(self) -> None:
        folder = self.folder
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir(mode=0o700)
        folder.chmod(0o755)
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        config = CONFIG.replace("FOLDER", str(folder)).replace("HOST", _host())
        config = config.replace("CORES", str(os.cpu_count()))
        for number, port in enumerate(_free_ports(2), 1):
            config = config.replace(f"PORT{number}", str(port))
        (folder / "slurm.conf").write_text(config)
        paths = {name: str(folder / "munge" / name) for name in ("key", "pid", "log", "seed")}
        self._start(
            *("munged", "--foreground", "--force", "--socket", str(folder / "munge.socket")),
            *("--key-file", paths["key"], "--pid-file", paths["pid"]),
            *("--log-file", paths["log"], "--seed-file", paths["seed"]),
        )
        self._wait("munged", (folder / "munge.socket").exists)
        self._start("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        self._start("slurmd", "-D", "-f", self.environment["SLURM_CONF"], "-N", _host())
        self._wait("slurmd", lambda: "idle" in self.says("sinfo", "--noheader"))

    def _start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [self._programs[name], *arguments]
            self._started.append(
                subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            )

    def _wait(self, name: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline or any(p.poll() is not None for p in self._started):
                log = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
                raise SlurmError(f"{name} does not start: {log[-1] if log else 'no word'}")
            time.sleep(0.1)

    def _stop_all(self) -> None:
        for process in reversed(self._started):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _program(name: str) -> str:
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return shutil.which(name, path=places) or ""


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _free_ports(count: int) -> list[int]:
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in opened]
    for server in opened:
        server.close()
    return ports
