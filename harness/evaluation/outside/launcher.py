"""Starts one program, waits until it and all that it has started have ended, and tells the cost.

A program of its own, run as a file with the standard library only: ``python launcher.py GUARDIAN
REPORT COMMAND...``. It is small, so that the memory of the program is not hidden behind that of a
worker, and has no other children, so that their CPU time is the program's. It starts the program
when a byte comes from its standard input, and writes one line of JSON to the descriptor REPORT.
What the program leaves running is killed before its time ends.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import time
from typing import Any


def main(arguments: list[str]) -> None:
    """Start the program, wait, and write what it took."""
    # Not on Windows, where others import this module to know its file.
    import resource

    guardian, report, command = _loaded(arguments[0]), int(arguments[1]), arguments[2:]
    os.set_inheritable(report, False)
    adopts = guardian.adopt_orphans()
    if not os.read(0, 1):
        return
    source = os.open(os.devnull, os.O_RDONLY)
    started = time.perf_counter()
    try:
        program = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, source, 0)],
            setsigdef=[signal.SIGPIPE],
        )
    except OSError as error:
        found: dict[str, Any] = {"error": error.strerror}
    else:
        status = os.waitpid(program, 0)[1]
        wall_s = time.perf_counter() - started
        if adopts:
            guardian.kill_family(adopts)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The unit is kilobytes, but on macOS bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        found = {
            "code": os.waitstatus_to_exitcode(status),
            "wall_s": wall_s,
            "cpu_s": used.ru_utime + used.ru_stime,
            "peak_memory_mb": used.ru_maxrss * unit / 1e6,
        }
    os.write(report, json.dumps(found).encode() + b"\n")


def _loaded(path: str) -> Any:
    """The module in a file, which need not be on the path of modules."""
    description = importlib.util.spec_from_file_location("guardian", path)
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1:])
