"""Where the states of a run wait for their judge."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

from ..storage import storing

# Where the parent's descriptors can be opened by the processes that it starts.
_DESCRIPTORS = Path(f"/proc/{os.getpid()}/fd")


class Spool:
    """A file that is written by the parent alone, through a descriptor that it keeps.

    A solver could put anything in the place of its name, and in that of another run's. So on Linux
    the file has none: the judge opens the parent's descriptor. Elsewhere the name is new for each
    run, and is looked at again before the file is read.

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
                self._hide()
            rest = memoryview(frame)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def _hide(self) -> None:
        """Take the file's name away where it can be opened without one."""
        opened = _DESCRIPTORS / str(self._descriptor)
        if opened.exists():
            self.path.unlink()
            self.path = opened

    @property
    def intact(self) -> bool:
        """Whether the file of this name is still the one that was written."""
        if self._descriptor < 0 or self.path.parent == _DESCRIPTORS:
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
            if self.path.parent == _DESCRIPTORS:
                return
            with contextlib.suppress(OSError):
                self.path.unlink()
