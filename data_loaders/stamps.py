"""What vouches for a cached file that was verified as a whole before.

Hashing all numbers of a dataset takes several times as long as reading them. So whoever has done it
leaves a stamp beside the file: which file that was, a digest of the file's footer, and the
fingerprint. While the stamp fits, the footer is the one that was verified, and the checksum of
every page, which Arrow checks whenever it reads, covers the numbers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from .atomic import replacing

#: A file that changed so short a time ago may change again within the same tick of its clock.
_SETTLED_NS = 20_000_000
_TAIL = 8  # bytes at the end of a Parquet file: the length of its footer and "PAR1"


@dataclass(frozen=True)
class Identity:
    """Which file stands at a path, to tell it from every other and from itself once changed.

    Parameters
    ----------
    size : int
        Bytes.
    mtime_ns, ctime_ns, inode : int
        As the file system tells them.
    footer : str
        SHA-256 of the Parquet footer, which says where every page is.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    footer: str


def place(path: Path) -> Path:
    """Where the stamp of a file is."""
    return path.with_name(f".{path.stem}.verified")


def identity(path: Path) -> Identity | None:
    """The identity of a Parquet file; None if there is none that can be read."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            file.seek(-_TAIL, os.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(-min(status.st_size, length + _TAIL), os.SEEK_END)
            footer = hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None
    return Identity(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, footer)


def fingerprint(path: Path, found: Identity | None) -> str | None:
    """The fingerprint that a file had when it was verified; None if no stamp fits the file.

    Parameters
    ----------
    path : Path
        The dataset's file.
    found : Identity or None
        Of this file, as it is now.
    """
    try:
        stamp = json.loads(place(path).read_bytes())
        fits = found is not None and stamp["file"] == asdict(found)
        return str(stamp["fingerprint"]) if fits else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def leave(path: Path, found: Identity | None, fingerprint: str, unfinished: Path) -> None:
    """Stamp a file that was verified.

    Parameters
    ----------
    path : Path
        The dataset's file.
    found : Identity or None
        Taken before the file was verified; it is not stamped if it is another one now.
    fingerprint : str
        Of its content.
    unfinished : Path
        Where to write the stamp before it gets its name.
    """
    if found is None or found != identity(path):
        return
    if time.time_ns() - max(found.ctime_ns, found.mtime_ns) < _SETTLED_NS:
        return
    stamp = {"file": asdict(found), "fingerprint": fingerprint}
    # A cache that is not ours to write: every load verifies the whole file.
    with contextlib.suppress(OSError), replacing(place(path), unfinished) as sink:
        sink.write(json.dumps(stamp).encode())
