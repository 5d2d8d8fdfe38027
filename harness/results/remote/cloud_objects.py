"""S3, Google Cloud Storage and Azure Blob Storage through obstore."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar

from ...errors import UserError
from ...words import REASON_LIMIT, visible
from .objects import Entry, MissingObject, StoreError
from .urls import SCHEMES, StoreUrl

_T = TypeVar("_T")
#: Of one request: an answer must come within so many seconds.
REQUEST_S = 30.0
#: A request that fails is repeated, with growing pauses, for so many seconds.
RETRY_VARIABLE, RETRY_S = "MARGINBENCH_STORE_SECONDS", 90.0
# What obstore does not repeat by itself: an answer that breaks off, a conditional write.
_ATTEMPTS, _PAUSE_S = 4, 0.5
_NO_CREDENTIALS = {
    "s3": "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run 'aws configure'",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or run 'gcloud auth application-default login'",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
}


class CloudObjects:
    """The objects below a URL; see :class:`Objects`.

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
        self.place = str(url)
        self._scheme, self._bucket = url.scheme, url.bucket
        try:
            import obstore.exceptions
        except ImportError:
            raise UserError(
                f"{url}: needs a package that is not installed; pip install 'marginbench[cloud]'"
            ) from None
        self._errors = obstore.exceptions
        try:
            self._store = _store(url)
        except (ValueError, OSError, self._errors.BaseError) as error:
            raise self._complaint(error) from None

    def list(self, prefix: str) -> dict[str, Entry]:
        """Name of each object -> its entry; a thousand of them for each request."""

        def entries() -> dict[str, Entry]:
            pages = self._store.list(prefix.rstrip("/") or None, chunk_size=1000)
            return {found["path"]: _entry(found) for page in pages for found in page}

        return self._asked(entries)

    def get(self, name: str) -> tuple[bytes, str]:
        """The content and the tag of an object."""

        def content() -> tuple[bytes, str]:
            found = self._store.get(name)
            return bytes(found.bytes()), _entry(found.meta).tag

        try:
            return self._asked(content)
        except FileNotFoundError as error:
            self._check_bucket(error)
            raise MissingObject(name) from None

    def entry(self, name: str) -> Entry | None:
        """The entry of an object; None if there is none."""
        try:
            return _entry(self._asked(lambda: self._store.head(name)))
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> str:
        """Write an object; its tag."""
        try:
            return _tag(self._asked(lambda: self._store.put(name, content)))
        except FileNotFoundError as error:
            raise self._complaint(error) from None

    def create(self, name: str, content: bytes) -> bool:
        """Write an object if there is none of this name, by ``If-None-Match: *``."""
        try:
            self._asked(lambda: self._store.put(name, content, mode="create"))
        except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
            return False
        except FileNotFoundError as error:
            raise self._complaint(error) from None
        return True

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects."""
        names = list(names)
        if names:
            self._asked(lambda: self._store.delete(names))

    def _asked(self, request: Callable[[], _T]) -> _T:
        """What comes of a request; those that obstore gives up too early are repeated."""
        deadline = time.monotonic() + _patience()
        for attempt in range(_ATTEMPTS):
            try:
                return request()
            except FileNotFoundError:
                raise
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
                raise
            except (self._errors.BaseError, OSError, ValueError) as error:
                is_last = attempt + 1 == _ATTEMPTS or time.monotonic() > deadline
                if is_last or not _may_pass(str(error)):
                    raise self._complaint(error) from None
                time.sleep(_PAUSE_S * 2**attempt)
        raise AssertionError("unreachable")

    def _check_bucket(self, error: Exception) -> None:
        """An object is missing in another way if its bucket is."""
        if "NoSuchBucket" in str(error):
            raise self._complaint(error) from None

    def _complaint(self, error: Exception) -> StoreError:
        return StoreError(f"{self.place}: {_reason(self._scheme, self._bucket, str(error))}")


def _store(url: StoreUrl) -> Any:
    """obstore's store; it repeats what fails for reasons that pass."""
    import obstore.store

    options: dict[str, Any] = {
        "prefix": url.path or None,
        "client_options": {
            "timeout": timedelta(seconds=REQUEST_S),
            "connect_timeout": timedelta(seconds=REQUEST_S / 3),
        },
        "retry_config": {
            "max_retries": 10,
            "retry_timeout": timedelta(seconds=_patience()),
            "backoff": {
                "init_backoff": timedelta(seconds=0.2),
                "max_backoff": timedelta(seconds=15),
                "base": 2,
            },
        },
    }
    if url.scheme == "s3":
        options |= _as_aws_does(options["client_options"])
        return obstore.store.S3Store(url.bucket, **options)
    if url.scheme == "gs":
        return obstore.store.GCSStore(url.bucket, **options)
    if os.environ.get("AZURE_STORAGE_ENDPOINT", "").startswith("http:"):
        options["client_options"]["allow_http"] = True
    return obstore.store.AzureStore(url.bucket, **options)


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
    found: dict[str, Any] = {"region": session.region_name or "us-east-1"}
    endpoint = session.client("s3", region_name=found["region"]).meta.endpoint_url
    if not endpoint.endswith(".amazonaws.com"):
        found["endpoint"] = endpoint
        client["allow_http"] = endpoint.startswith("http:")
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() not in ("1", "true"):
        found["credential_provider"] = Boto3CredentialProvider(session)
    return found


def _entry(found: Any) -> Entry:
    return Entry(_tag(found), found["last_modified"].timestamp())


def _tag(found: Any) -> str:
    # Not every server of S3's protocol has tags.
    return str(found.get("e_tag") or found.get("version") or found.get("last_modified"))


def _may_pass(text: str) -> bool:
    """Whether the same request may be served later: not where the store has said no."""
    status = re.search(r"status code: (\d{3})", text)
    return status is None or status[1].startswith("5") or status[1] in ("408", "429")


def _reason(scheme: str, bucket: str, text: str) -> str:
    """What is wrong, and what to do, from the words of a store."""
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        return f"there is no bucket {bucket!r}; create it or choose another URL"
    if "config profile" in text:
        return f"{text}; set AWS_PROFILE to another one"
    if re.search(r"credential|PROFILE|profile|authenticat|metadata", text):
        return f"no credentials for {SCHEMES[scheme]} were found; {_NO_CREDENTIALS[scheme]}"
    status = re.search(r"status code: (\d{3}[^:<]*)", text)
    code = re.search(r"<Code>(\w+)</Code>", text)
    if status is not None and status[1][:3] in ("401", "403"):
        why = code[1] if code else status[1].strip()
        return f"access was denied ({why}); check the credentials and the rights of the bucket"
    why = (code[1] if code else status[1].strip()) if status is not None else _last_cause(text)
    return f"the store does not serve ({visible(why, REASON_LIMIT)})"


def _last_cause(text: str) -> str:
    """The words of an error without the dump that follows them."""
    return text.partition("\n\nDebug source")[0].rpartition(" - ")[2].strip()
