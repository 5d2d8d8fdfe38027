"""What is asked of a store: seven operations on objects that have names.

An object appears whole or not at all, under a tag that is another one after each change. What one
command has put, every other finds at once: object stores promise it, and so do file systems.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ...errors import StorageError
from .urls import StoreUrl


class StoreError(StorageError):
    """A store that does not serve; the message names it, says why and what to do."""


class MissingObject(Exception):
    """There is no object of this name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a store says of an object.

    Attributes
    ----------
    tag : str
        Of its content: another one after each change.
    changed : float
        When it was written, in seconds by the clock of the store.
    """

    tag: str
    changed: float


class Objects(Protocol):
    """The objects below a URL. All operations raise a StoreError if the store does not serve."""

    #: How messages name it.
    place: str

    def list(self, prefix: str) -> dict[str, Entry]:
        """Name of each object below a folder -> its entry; all of them for an empty prefix."""
        ...

    def get(self, name: str) -> tuple[bytes, str]:
        """The content and the tag of an object.

        Raises
        ------
        MissingObject
            If there is none.
        """
        ...

    def entry(self, name: str) -> Entry | None:
        """The entry of an object; None if there is none."""
        ...

    def put(self, name: str, content: bytes) -> str:
        """Write an object, whether or not there is one; its tag."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Write an object if there is none of this name; False if there is one.

        A store may have written it although the answer was lost: who is refused looks whether the
        object is its own.
        """
        ...

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects, those that are gone already included."""
        ...


def opened(url: StoreUrl, place: str) -> Objects:
    """The objects below a URL; nothing is asked of the store yet.

    Parameters
    ----------
    url : StoreUrl
    place : str
        How messages name it.

    Raises
    ------
    UserError
        If the package that talks to such stores is not installed.
    StoreError
        If there are no credentials.
    """
    if url.scheme == "file":
        from .folder_objects import FolderObjects

        return FolderObjects(url.path, place)
    from .cloud_objects import CloudObjects

    return CloudObjects(url)
