"""Errors and warnings about data, and their words."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Iterator

# Of a URL: who asks, with a password, and what may hold a signature.
_USER, _QUERY = re.compile(r"(?<=/)[^/]*@"), re.compile(r"\?.*", re.DOTALL)


class DataError(Exception):
    """A dataset that is unknown, cannot be fetched or is not what it should be.

    The message is one line that names the thing, the value and what to do; it is meant to be
    shown as it is, without a traceback.
    """


class CacheError(DataError):
    """A dataset that cannot be kept: the cache folder cannot be written to."""

    @classmethod
    def of(cls, name: str, what: str, error: OSError) -> CacheError:
        """For what cannot be done in the cache folder."""
        return cls(
            f"{name}: cannot {what} ({error.strerror or error}); set MARGINBENCH_CACHE to a folder "
            "with room that can be written"
        )


class DataWarning(UserWarning):
    """A fault in data that was repaired without the user's help."""


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of an "unknown name" message: ``" (did you mean 'x'?)"`` or ``" (known: a, b)"``.

    Empty if there is no valid name.
    """
    words = list(known)
    return nearest(name, words) or (f" (known: {', '.join(words)})" if words else "")


def nearest(name: str, known: Iterable[str]) -> str:
    """``" (did you mean 'x'?)"``, or nothing if no word is near."""
    by_folded = {word.casefold(): word for word in known}
    near = difflib.get_close_matches(str(name).casefold(), by_folded, n=1, cutoff=0.6)
    return f" (did you mean '{by_folded[near[0]]}'?)" if near else ""


@contextlib.contextmanager
def within_memory(name: str) -> Iterator[None]:
    """Raise DataError, in a line, if the data `name` take more memory than there is."""
    try:
        yield
    except MemoryError as error:
        raise DataError(f"{name}: does not fit into memory ({first_line(error)})") from None


def without_credentials(url: str) -> str:
    """A URL with dots for a user name, a password and a query, as it may be shown."""
    return _QUERY.sub("?...", _USER.sub("...@", url))


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, or its type's name where it has none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
