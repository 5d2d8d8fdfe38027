"""Records on their way to a store, while the study goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from .objects import StoreError

#: Records on their way at the same time.
THREADS = 4


class Pusher:
    """A queue with a few threads. What fails is raised by :meth:`check` and :meth:`drain`."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="push")
        self._tasks: list[Future[None]] = []

    def add(self, task: Callable[[], None]) -> None:
        """Do this soon."""
        self.check()
        self._tasks.append(self._threads.submit(task))

    def check(self) -> None:
        """Let go of what is done.

        Raises
        ------
        StoreError
            If something could not be pushed.
        """
        left = []
        for task in self._tasks:
            if task.done():
                task.result()
            else:
                left.append(task)
        self._tasks = left

    def drain(self) -> None:
        """Wait until all is pushed.

        Raises
        ------
        StoreError
            If something could not be.
        """
        error: StoreError | None = None
        for task in self._tasks:
            try:
                task.result()
            except StoreError as problem:
                error = error or problem
        self._tasks = []
        if error is not None:
            raise error

    def close(self) -> None:
        """End the threads; what has not begun is not pushed."""
        self._threads.shutdown(cancel_futures=True)
