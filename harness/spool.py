"""Where the states of a run wait for their judge."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

from marginbench.harness.storage import storing


class Spool:
    """A file that is written by the parent alone, through a descriptor that it keeps.

    A solver could put anything in the place of its name. So the name is new for each run, and is
    looked at again before the file is read.

    Parameters
    ----------
    folder : Path
        Where the file is made, when there is something to write.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{uuid.uuid4().hex}.models"
        self._descriptor = -1

    def write(self, frame: bytes) -> None:
        """Add a frame.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        with storing(self.path):
            if self._descriptor < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                self._descriptor = os.open(self.path, flags, 0o600)
            rest = memoryview(frame)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    @property
    def intact(self) -> bool:
        """Whether the file of this name is still the one that was written."""
        if self._descriptor < 0:
            return True
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(self.path))
        except OSError:
            return False

    def remove(self) -> None:
        """Remove the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            with contextlib.suppress(OSError):
                self.path.unlink()
