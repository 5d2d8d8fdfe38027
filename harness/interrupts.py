"""Ctrl-C: one line and exit code 130 at any moment, and every resource released.

While modules are imported there is nothing to tidy up, and a KeyboardInterrupt would not do: it
could be raised anywhere in anyone's code, which may take it for an error of its own or lose it.
Then Ctrl-C ends the process at once. Where something must be tidied up it is an exception, raised
at once or, in the runs of a study, where the harness looks.
"""

from __future__ import annotations

import contextlib
import os
import signal

# Not from typing, which takes several times as long to import as all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: The exit code of an interrupted command: 128 + SIGINT.
EXIT_INTERRUPTED = 130


def end_at_once_when_interrupted() -> None:
    """From now on Ctrl-C ends this process with one line; for a command, before its imports.

    Where Ctrl-C is ignored (``nohup``, a background job of a script), it remains so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


@contextlib.contextmanager
def interrupts_raised() -> Iterator[None]:
    """Ctrl-C raises a KeyboardInterrupt in this block, so that what it holds is released.

    So do a request to end (SIGTERM, as ``timeout`` and batch systems send it) and the end of the
    terminal (SIGHUP), unless they are handled or ignored already.
    """
    if not _replaceable():
        yield
        return
    others = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
    unhandled = [each for each in others if each and signal.getsignal(each) is signal.SIG_DFL]
    before = {
        each: signal.signal(each, signal.default_int_handler)
        for each in (signal.SIGINT, *unhandled)
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[Callable[[], None]]:
    """Defer a Ctrl-C in this block; the function that it yields raises one that has been.

    A process that is being started, or a file that is being moved, is not left half done. A second
    one ends a command at once: its workers end with it, and the next command tidies up. Elsewhere
    it is raised.
    """
    if not _replaceable():
        yield lambda: None
        return
    interrupted = False
    of_a_command = signal.getsignal(signal.SIGINT) is _end

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted and of_a_command:
            _end(number, frame)
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True

    def look() -> None:
        if interrupted:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield look
        look()
    finally:
        signal.signal(signal.SIGINT, before)


def _replaceable() -> bool:
    """Whether Ctrl-C is ours to handle: not in a thread, nor where it is ignored or handled."""
    import threading

    ours = signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler)
    return ours and threading.current_thread() is threading.main_thread()


def _end(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"marginbench: interrupted\n")
    os._exit(EXIT_INTERRUPTED)
