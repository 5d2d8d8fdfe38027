"""Files that appear whole or not at all, whatever happens to the process that writes them."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

#: How the names of unfinished files begin; a killed process may leave one.
UNFINISHED = ".writing-"
#: The system's reasons why nothing can be written to a disk, whatever the file.
DISK_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE}
)


@contextlib.contextmanager
def replacing(path: Path, temporary: Path | None = None) -> Iterator[BinaryIO]:
    """Write a file that takes the place of ``path`` once all of it is on the disk.

    If the block raises, ``path`` stays as it was. ``temporary`` is the unfinished file, in the same
    folder; by default of a name that no process of any machine that shares the folder has.
    """
    if temporary is None:
        # Not mkstemp: its files are for the owner alone, and results are to be shared.
        # Nor the ending of the finished file: whoever lists those must not see this one.
        temporary = path.with_name(f"{UNFINISHED}{secrets.token_hex(4)}-{path.name}.part")
    try:
        with temporary.open("wb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut."""
    if sys.platform == "win32":
        # Folders cannot be opened there.
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
