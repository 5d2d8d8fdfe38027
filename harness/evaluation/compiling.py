"""Compilation during a run, which is nobody's solving.

The warm-up compiles what a few points lead to; other code may be met only in the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from numba.core.event import Listener, install_listener

from .tracing import TraceMonitor


@contextmanager
def compiling_untimed(monitor: TraceMonitor) -> Iterator[None]:
    """Inside, the clocks stand still whenever numba compiles, or loads compiled code."""
    with install_listener("numba:compile", _Compiling(monitor)):
        yield


class _Compiling(Listener):  # type: ignore[misc] # numba has no types
    """Told by numba of the beginning and the end of each compilation; some lie within others."""

    def __init__(self, monitor: TraceMonitor) -> None:
        self._monitor = monitor
        self._depth = 0
        self._pause: AbstractContextManager[None] | None = None

    def on_start(self, event: Any) -> None:
        """Stop the clocks at the first of several beginnings."""
        self._depth += 1
        if self._depth == 1 and self._monitor.clocks.running:
            self._pause = self._monitor.paused()
            self._pause.__enter__()

    def on_end(self, event: Any) -> None:
        """Go on after the last of several ends."""
        self._depth -= 1
        if self._depth == 0 and self._pause is not None:
            self._pause.__exit__(None, None, None)
            self._pause = None
