"""Programs started from a worker: what they cost, how they ended, and the end of what they said."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ...errors import UserError
from ...execution import guardian
from . import launcher

# Of what a program prints, the last bytes that are kept; lines of it that a record shows.
_TAIL = 4000
_TAIL_LINES = 10
_PIECE = 2**16


class CommandError(UserError):
    """A program that could not be started or did not end well; the message says how."""


@dataclass(frozen=True)
class Finished:
    """A program that has ended, with all that it had started.

    Attributes
    ----------
    name : str
        The program's.
    code : int
        Exit code; that of a program killed by a signal is negative.
    wall_s, cpu_s : float
        Seconds from its start to its end; user and system time.
    peak_memory_mb : float
        Largest resident memory of any of its processes, 10^6 bytes.
    output : str
        The end of what it printed.
    errors : str
        The end of what it printed to standard error.
    """

    name: str
    code: int
    wall_s: float
    cpu_s: float
    peak_memory_mb: float
    output: str
    errors: str

    def check(self) -> None:
        """Raise if it says that it failed.

        Raises
        ------
        CommandError
            With the end of what it printed to standard error, or else to standard output.
        """
        if self.code == 0:
            return
        lines = (self.errors.strip() or self.output.strip()).splitlines()[-_TAIL_LINES:]
        said = f": {' | '.join(line.strip() for line in lines if line.strip())}" if lines else ""
        raise CommandError(f"{self.name} {_ending(self.code)}{said}")


class Launch:
    """A program about to be started; a context manager that leaves no process behind.

    Parameters
    ----------
    arguments : sequence of str
        The first one is the name or path of the program. No shell reads them.
    folder : Path
        The program's working folder.
    """

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self.name = Path(arguments[0]).name
        self._report, report = os.pipe()
        command = [sys.executable, "-I", "-S", launcher.__file__, guardian.__file__, str(report)]
        try:
            self._process = subprocess.Popen(
                [*command, shutil.which(arguments[0]) or arguments[0], *arguments[1:]],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(report,),
            )
        except BaseException:
            os.close(self._report)
            raise
        finally:
            os.close(report)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._report)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def run(self) -> Finished:
        """Start the program and wait until it has ended.

        Raises
        ------
        CommandError
            If it cannot be started, or has killed the process that waits for it.
        """
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.write(b"\n")
            stdin.flush()
        report, output, errors = _read(self._report, stdout, stderr)
        try:
            found = json.loads(report)
        except ValueError:
            raise CommandError(f"{self.name}: the process that waited for it was killed") from None
        if "error" in found:
            raise CommandError(f"{self.name} cannot be started: {found['error']}")
        return Finished(name=self.name, output=output, errors=errors, **found)


def _read(report: int, stdout: IO[bytes], stderr: IO[bytes]) -> tuple[bytes, str, str]:
    """The report, and the ends of both outputs, read as they come so that nothing blocks."""
    ends = {report: b"", stdout.fileno(): b"", stderr.fileno(): b""}
    with selectors.DefaultSelector() as selector:
        for descriptor in ends:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        # A process that outlives the launcher may hold the outputs open.
        while report in selector.get_map():
            for key, _ in selector.select():
                _take(selector, ends, key.fd)
        for descriptor in ends:
            while descriptor in selector.get_map() and _take(selector, ends, descriptor):
                pass
    texts = [end.decode("utf-8", "replace") for end in list(ends.values())[1:]]
    return ends[report], texts[0], texts[1]


def _take(selector: selectors.BaseSelector, ends: dict[int, bytes], descriptor: int) -> bool:
    """Keep the end of what is there; whether there was anything."""
    try:
        piece = os.read(descriptor, _PIECE)
    except BlockingIOError:
        return False
    if not piece:
        selector.unregister(descriptor)
        return False
    ends[descriptor] = (ends[descriptor] + piece)[-_TAIL:]
    return True


def _ending(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"
