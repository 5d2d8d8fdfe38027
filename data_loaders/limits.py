"""How much a source may send or unpack, and how long it may take.

A file is bounded by what its dataset is known to need, so that neither an endless answer of a
server nor a small archive that unpacks to terabytes can fill the disk or the memory.
"""

from __future__ import annotations

import os

from .errors import DataError

BYTES_VARIABLE = "MARGINBENCH_MAX_FILE_BYTES"
SECONDS_VARIABLE = "MARGINBENCH_MAX_DOWNLOAD_SECONDS"
RATE_VARIABLE = "MARGINBENCH_MIN_DOWNLOAD_RATE"

MIB = 1 << 20
#: Of a file whose source states no limit.
DEFAULT_MAX_BYTES = 8192 * MIB
#: Of one file, retries included.
DEFAULT_MAX_SECONDS = 6 * 3600
#: Bytes per second, on average since the download began; not asked for in the first seconds.
DEFAULT_MIN_RATE = 4096
GRACE_S = 60.0
#: Text and images shrink to a twentieth at best; only bombs shrink to less than this.
MAX_RATIO = 250
#: Files that unpack to no more than this may have any ratio.
RATIO_FREE_BYTES = 64 * MIB
#: Bytes of one line of text: about four million pairs of an index and a value.
MAX_LINE_BYTES = 64 * MIB


def max_bytes(stated: int) -> int:
    """The most bytes of a file, packed or not: the user's limit, else the stated one."""
    return _from_environment(BYTES_VARIABLE, stated)


def max_expanded(stated: int, packed: int) -> int:
    """The most bytes that a packed file may expand to.

    Parameters
    ----------
    stated : int
        Limit of the source, in bytes.
    packed : int
        Bytes of the packed file.

    Returns
    -------
    int
        The user's limit; else the stated one, or less for a small file.

    Raises
    ------
    DataError
        If the user's limit is not a positive integer.
    """
    return _from_environment(BYTES_VARIABLE, min(stated, max(RATIO_FREE_BYTES, MAX_RATIO * packed)))


def max_seconds() -> int:
    """The most seconds that the download of one file may take."""
    return _from_environment(SECONDS_VARIABLE, DEFAULT_MAX_SECONDS)


def min_rate() -> int:
    """The least average rate of a download, in bytes per second."""
    return _from_environment(RATE_VARIABLE, DEFAULT_MIN_RATE)


def _from_environment(variable: str, default: int) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    # More digits than any size has; int() of thousands of digits raises an error of its own.
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text)):
        raise DataError(f"{variable} is {text[:40]!r}; set it to a positive whole number")
    return int(text)
