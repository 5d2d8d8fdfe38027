"""The command ``marginbench report`` on a folder of 100 runs: CPU seconds, memory, size of page."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple


class LargeReport:
    timeout = 300
    rounds = 1
    repeat = 1

    def setup_cache(self):
        # Here: a version without these names of the harness still has the other suites.
        from benchmarks.compare.scale import recorded

        recorded(100, Path("report-speed"))
        results = Path("report-speed", "results")
        return command("report", str(results)), page_mb(results)

    def track_cpu(self, spent):
        return spent[0].cpu_s

    track_cpu.unit = "CPU seconds"

    def track_peak_memory(self, spent):
        return spent[0].peak_mb

    track_peak_memory.unit = "megabytes"

    def track_page(self, spent):
        return spent[1]

    track_page.unit = "megabytes"


class Cost(NamedTuple):
    """What a command took; memory is that of its largest process."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def command(*words):
    """The Cost of a command of the user, in a process of its own; words stand behind its name."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "marginbench", *words], stdout=said, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(words)} ended with {status}: {said.read().decode()}")
    seconds = used.ru_utime + used.ru_stime
    return Cost(seconds, time.perf_counter() - began, used.ru_maxrss * 1024 / 1e6)


def page_mb(folder):
    """The size of the page of a results folder."""
    return (folder / "report.html").stat().st_size / 1e6
