"""URLs of results folders: which there are, and what is wrong with one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...errors import UserError

#: Scheme -> what a store of it is called.
SCHEMES = {"s3": "Amazon S3", "gs": "Google Cloud Storage", "az": "Azure Blob Storage", "file": ""}
# Two letters at least: C:/ is a drive. A Path has made one slash of the two.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(/?)(.*)", re.DOTALL)


@dataclass(frozen=True)
class StoreUrl:
    """The URL of a results folder.

    Attributes
    ----------
    scheme : str
    bucket : str
        Bucket or container; empty for a folder.
    path : str
        Below it, without slashes at its ends; an absolute path for a folder.
    """

    scheme: str
    bucket: str
    path: str

    def __str__(self) -> str:
        if self.scheme == "file":
            return f"file://{self.path}"
        return f"{self.scheme}://{self.bucket}" + (f"/{self.path}" if self.path else "")

    @classmethod
    def of_folder(cls, folder: Path) -> StoreUrl:
        """That of a folder of this machine."""
        from ...storage import check_path

        check_path(folder)
        return cls("file", "", str(folder.resolve()))

    @classmethod
    def parsed(cls, text: str | os.PathLike[str]) -> StoreUrl:
        """The URL that a text is.

        Raises
        ------
        UserError
            If its scheme is unknown, its bucket is missing, or it holds credentials.
        """
        # Imported here: whether a place is a URL is asked before anything heavy is needed.
        from ....data_loaders.errors import without_credentials

        text = os.fspath(text)
        shown = without_credentials(text)
        found = _URL.fullmatch(text)
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        if found is None or found[1].lower() not in SCHEMES:
            raise UserError(f"{shown}: no kind of store is known for this URL; there are {known}")
        scheme, rest = found[1].lower(), found[3]
        if scheme == "file":
            # file:///absolute/path: there is no host.
            if found[2] and not rest.startswith("/"):
                raise UserError(f"{text}: write file:///, then the path of the folder from /")
            return cls.of_folder(Path("/" + rest.lstrip("/")))
        bucket, _, path = rest.partition("/")
        if not bucket:
            raise UserError(f"{shown}: names no bucket; write {scheme}://BUCKET/PATH")
        if shown != text:
            raise UserError(
                f"{shown}: a URL must hold no password and no query, since study.json and the page "
                f"show it; write {scheme}://BUCKET/PATH and see 'Credentials' in docs/stores.md"
            )
        return cls(scheme, bucket, re.sub("/+", "/", path).strip("/"))


def is_url(place: str | os.PathLike[str]) -> bool:
    """Whether a results folder is given by a URL, known or unknown."""
    found = _URL.fullmatch(os.fspath(place))
    return found is not None and (bool(found[2]) or found[1].lower() in SCHEMES)


def local_folder(place: str | os.PathLike[str]) -> Path:
    """The results folder that a user names; of a URL its mirror, brought up to date.

    Parameters
    ----------
    place : str or Path

    Raises
    ------
    UserError
        If it is a URL of no known kind, or the store has no results there.
    StorageError
        If the store does not serve.
    """
    if not is_url(place):
        return Path(place)
    from .opening import fetched

    return fetched(place)
