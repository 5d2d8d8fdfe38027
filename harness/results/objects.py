"""URLs of results folders, and the object stores behind them, through obstore."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..errors import StorageError, UserError
from ..words import REASON_LIMIT, visible

_T = TypeVar("_T")
#: Scheme -> what a store of it is called, and how it is given credentials.
SCHEMES = {
    "s3": (
        "Amazon S3",
        "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run 'aws configure'",
    ),
    "gs": (
        "Google Cloud Storage",
        "set GOOGLE_APPLICATION_CREDENTIALS, or run 'gcloud auth application-default login'",
    ),
    "az": (
        "Azure Blob Storage",
        "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
    ),
    "file": ("", ""),
}
#: An answer must come within so many seconds. A request that fails is repeated for so many, after
#: pauses that grow from the first of these lengths to the second.
REQUEST_S = 30.0
RETRY_VARIABLE, RETRY_S = "MARGINBENCH_STORE_SECONDS", 90.0
PAUSES_S = 0.2, 15.0
# Two letters at least: C:/ is a drive. A Path has made one slash of the two.
_URL_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(/?)(.*)", re.DOTALL)


class StoreError(StorageError):
    """An object store that does not serve; the message names it and says why.

    Attributes
    ----------
    is_refusal : bool
        Whether the store has said no, as to who may only read, and would again.
    """

    def __init__(self, message: str, *, is_refusal: bool = False) -> None:
        super().__init__(message)
        self.is_refusal = is_refusal


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
    def parsed(cls, text: str | os.PathLike[str]) -> StoreUrl:
        """The URL that a text is.

        Raises
        ------
        UserError
            If its scheme is unknown, its bucket is missing, or it holds credentials.
        """
        # Imported here: every command asks whether a place is a URL, also those of a moment.
        from ...data_loaders.errors import without_credentials

        text = os.fspath(text)
        shown = without_credentials(text)
        match = _URL_PATTERN.fullmatch(text)
        if match is None or match[1].lower() not in SCHEMES:
            schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise UserError(f"{shown}: no kind of store is known for this URL; there are {schemes}")
        scheme, rest = match[1].lower(), match[3]
        if scheme == "file":
            # file:///absolute/path: there is no host.
            if match[2] and not rest.startswith("/"):
                raise UserError(f"{text}: write file:///, then the path of the folder from /")
            from ..storage import check_path

            check_path(rest)
            return cls("file", "", str(Path("/" + rest.lstrip("/")).resolve()))
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
    match = _URL_PATTERN.fullmatch(os.fspath(place))
    return match is not None and (bool(match[2]) or match[1].lower() in SCHEMES)


def local_folder(place: str | os.PathLike[str], *, is_new: bool = False) -> Path:
    """The results folder that a user names; of a URL its mirror, brought up to date.

    Parameters
    ----------
    place : str or Path
    is_new : bool
        Whether there need not be any results yet.

    Raises
    ------
    UserError
        If it is a URL of no known kind, or the store has no results there.
    StoreError
        If the store does not serve.
    """
    if not is_url(place):
        return Path(place)
    from .sync import fetched

    return fetched(StoreUrl.parsed(place), is_new=is_new)


class Entry(NamedTuple):
    """An object: its size in bytes, and a tag that changes with its content."""

    size: int
    tag: str


class Store:
    """The objects below a URL; every failure is one line.

    Parameters
    ----------
    url : StoreUrl

    Raises
    ------
    UserError
        If obstore is not installed.
    StoreError
        If there are no credentials.
    """

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        try:
            import obstore.exceptions
        except ImportError:
            raise UserError(
                f"{url}: needs a package that is not installed; pip install 'marginbench[cloud]'"
            ) from None
        self._errors = (obstore.exceptions.BaseError, OSError, ValueError)
        if url.scheme != "file":
            try:
                self._opened  # noqa: B018 - missing credentials are told before anything is done
            except self._errors as error:
                raise self._complaint(error) from None

    @cached_property
    def _opened(self) -> Any:
        """obstore's store. We repeat what fails: obstore does not if an answer breaks off."""
        from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

        url = self._url
        if url.scheme == "file":
            return LocalStore(url.path, mkdir=True)
        timeout = timedelta(seconds=REQUEST_S)
        client: dict[str, Any] = {"timeout": timeout, "connect_timeout": timeout / 3}
        options: dict[str, Any] = {
            "prefix": url.path or None,
            "client_options": client,
            "retry_config": {"max_retries": 0},
        }
        if url.scheme == "s3":
            return S3Store(url.bucket, **options, **_as_aws_does(client))
        if url.scheme == "gs":
            return GCSStore(url.bucket, **options)
        if os.environ.get("AZURE_STORAGE_ENDPOINT", "").startswith("http:"):
            client["allow_http"] = True
        return AzureStore(url.bucket, **options)

    def list(self) -> dict[str, Entry]:
        """Name of each object -> its entry."""
        if self._url.scheme == "file" and not Path(self._url.path).is_dir():
            return {}  # to read creates nothing

        def listed() -> dict[str, Entry]:
            pages = self._opened.list(chunk_size=1000)
            return {each["path"]: _entry(each, each["size"]) for page in pages for each in page}

        return self._asked(listed) or {}

    def get(self, name: str) -> bytes | None:
        """The content of an object; None if there is none of this name."""
        return self._asked(lambda: bytes(self._opened.get(name).bytes()))

    def put(self, name: str, content: bytes) -> Entry:
        """Write an object."""
        written = self._asked(lambda: self._opened.put(name, content), is_missing_fine=False)
        return _entry(written, len(content))

    def _asked(self, request: Callable[[], _T], *, is_missing_fine: bool = True) -> _T | None:
        """What comes of a request, which is repeated while it may pass."""
        deadline, pause = time.monotonic() + _patience(), PAUSES_S[0]
        while True:
            try:
                return request()
            except self._errors as error:
                text = str(error)
                is_missing = isinstance(error, FileNotFoundError) and "NoSuchBucket" not in text
                if is_missing and is_missing_fine:
                    return None
                # Where the store has said no, it would again.
                status = re.search(r"status code: (\d{3})", text)
                may_pass = status is None or status[1][0] == "5" or status[1] in ("408", "429")
                is_said = isinstance(error, FileNotFoundError) or self._url.scheme == "file"
                is_refusal = is_said or not may_pass
                if is_refusal or time.monotonic() + pause > deadline:
                    raise self._complaint(error, is_refusal=is_refusal) from None
            time.sleep(pause)
            pause = min(2 * pause, PAUSES_S[1])

    def _complaint(self, error: Exception, *, is_refusal: bool = False) -> StoreError:
        message = f"{self._url}: {_reason(self._url, str(error))}"
        return StoreError(message, is_refusal=is_refusal)


def _entry(found: Any, size: int) -> Entry:
    # Not every server of S3's protocol has tags.
    return Entry(size, str(found.get("e_tag") or found.get("version")))


def _patience() -> float:
    """For how many seconds a request is repeated."""
    text = os.environ.get(RETRY_VARIABLE, "")
    try:
        seconds = float(text) if text else RETRY_S
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < 1e6:
        raise UserError(f"{RETRY_VARIABLE} is {text!r}; set it to a positive number of seconds")
    return seconds


def _as_aws_does(client: dict[str, Any]) -> dict[str, Any]:
    """Credentials, region and endpoint as boto3 finds them: variables, profiles, sign-on, roles."""
    import boto3
    from botocore.exceptions import BotoCoreError
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        session = boto3.Session()
    except BotoCoreError as error:  # a profile that is not there
        raise ValueError(str(error)) from None
    options: dict[str, Any] = {"region": session.region_name or "us-east-1"}
    endpoint = session.client("s3", region_name=options["region"]).meta.endpoint_url
    if not endpoint.endswith(".amazonaws.com"):
        options["endpoint"] = endpoint
        client["allow_http"] = endpoint.startswith("http:")
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() not in ("1", "true"):
        options["credential_provider"] = Boto3CredentialProvider(session)
    return options


def _reason(url: StoreUrl, text: str) -> str:
    """What is wrong, and what to do, from the words of a store."""
    # The words of an error without the dump that follows them.
    cause = text.partition("\n\nDebug source")[0]
    if url.scheme == "file":
        words = re.sub(r" \(os error \d+\)", "", cause).rpartition(": ")[2]
        return f"cannot be read or written ({visible(words, REASON_LIMIT)})"
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        return f"there is no bucket {url.bucket!r}; create it or choose another URL"
    if "config profile" in text:
        return f"{text}; set AWS_PROFILE to another one"
    if re.search(r"credential|PROFILE|profile|authenticat|metadata", text):
        return "no credentials for {} were found; {}".format(*SCHEMES[url.scheme])
    status = re.search(r"status code: (\d{3}[^:<]*)", text)
    code = re.search(r"<Code>(\w+)</Code>", text)
    if status is None:
        why = cause.rpartition(" - ")[2].strip()
    else:
        why = code[1] if code else status[1].strip()
        if status[1][:3] in ("401", "403"):
            return f"access was denied ({why}); check the credentials and the rights of the bucket"
    return f"the store does not serve ({visible(why, REASON_LIMIT)})"
