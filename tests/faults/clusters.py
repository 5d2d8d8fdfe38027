"""A Dask cluster of processes on this machine, started by its command lines."""

import contextlib
import json
import subprocess
import sys
import time

import psutil

#: In seconds; starting takes long where many others start.
PATIENCE = 120.0


class DaskCluster:
    """A scheduler and workers, each with its nanny; a context manager.

    Parameters
    ----------
    folder : Path
        Takes logs and scratch files.
    environment : dict
        Of all processes.
    """

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        folder.mkdir(exist_ok=True)
        self.nannies = []
        self.scheduler = self.start_scheduler()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.nannies, self.scheduler]:
            with contextlib.suppress(psutil.Error):
                family = psutil.Process(process.pid).children(recursive=True)
                process.kill()
                for child in family:
                    with contextlib.suppress(psutil.Error):
                        child.kill()
            process.wait()

    @property
    def address(self):
        """That of the scheduler."""
        return str(json.loads((self.folder / "scheduler.json").read_text())["address"])

    def start_scheduler(self):
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        where = ("--host", "127.0.0.1", "--port", "0")
        found = self._start("scheduler", "--scheduler-file", str(file), *where)
        deadline = time.monotonic() + PATIENCE
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.monotonic() < deadline, "the scheduler does not start"
            time.sleep(0.02)
        return found

    def start_worker(self):
        """Start a worker; it joins by and by."""
        scratch = self.folder / f"scratch-{len(self.nannies)}"
        found = self._start(
            *("worker", self.address, "--nthreads", "1", "--death-timeout", "300"),
            *("--local-directory", str(scratch)),
        )
        self.nannies.append(found)
        return found

    def replenish(self):
        """Start workers until there are two: a nanny whose worker dies as it starts ends, too."""
        alive = [process for process in self.nannies if process.poll() is None]
        return alive + [self.start_worker() for _ in range(len(alive), 2)]

    def dask_worker(self, nanny):
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


def lines(path):
    """The JSON objects of a log, one a line; other lines do not count."""
    found = []
    for line in path.read_text().splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [item for item in found if isinstance(item, dict)]
