"""A Dask cluster of processes on this machine, started by its command lines."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import psutil

from .conftest import wait_for


class DaskCluster:
    """A scheduler and workers, each with its nanny; a context manager.

    ``folder`` takes logs and scratch files, ``environment`` is that of all processes.
    """

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        folder.mkdir(exist_ok=True)
        self.nannies = []
        file = folder / "scheduler.json"
        where = ("--host", "127.0.0.1", "--port", "0")
        self.scheduler = self._start("scheduler", "--scheduler-file", str(file), *where)
        # It takes long where many others start.
        wait_for(lambda: file.exists() and file.read_text().endswith("}"), 120.0)
        self.address = str(json.loads(file.read_text())["address"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.nannies, self.scheduler]:
            # The workers of a nanny are of its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def replenish(self):
        """Start workers until there are two, which join by and by; their nannies.

        A nanny whose worker dies as it starts ends, too.
        """
        alive = [process for process in self.nannies if process.poll() is None]
        while len(alive) < 2:
            scratch = str(self.folder / f"scratch-{len(self.nannies)}")
            more = ("--nthreads", "1", "--death-timeout", "300", "--local-directory", scratch)
            alive.append(self._start("worker", self.address, *more))
            self.nannies.append(alive[-1])
        return alive

    def worker(self, nanny):
        """The process of a worker, below its nanny."""
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(nanny.pid).children():
                if "spawn_main" in " ".join(child.cmdline()):
                    return child
        return None

    def _start(self, *command):
        with (self.folder / f"{command[0]}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", command[0], "--no-dashboard", *command[1:]],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self.environment,
            )
