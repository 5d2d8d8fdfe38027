"""Results folders in object stores: URLs, the objects behind them, and a mirror on this machine.

A results folder that is given by a URL is a folder in the cache, its mirror, which commands use as
any other. A store cannot append to an object. So what a command has added to its segment of the
journal, ``journal/SEGMENT.jsonl``, goes to the store as an object that never changes,
``journal/SEGMENT.OFFSET.jsonl``, where OFFSET is the place of its first byte in the segment; a
mirror puts them together again. What either side lacks follows from names and sizes alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ...data_loaders.atomic import replacing
from ...data_loaders.errors import without_credentials
from ..errors import InterruptedRunError, StorageError, UserError
from ..storage import lock_file, storing
from ..words import REASON_LIMIT, visible
from .description import FILE_NAME
from .journal import FOLDER, segments_in

Say = Callable[[str], None]
SCHEMES = ("s3", "gs", "az", "file")
#: An answer must come within so many seconds. A request that fails is repeated for so many.
REQUEST_S = 30.0
RETRY_VARIABLE, RETRY_S = "MARGINBENCH_STORE_SECONDS", 90.0
# Two letters at least: C:/ is a drive. A Path has made one slash of the two.
_URL_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(/?)(.*)", re.DOTALL)
#: Requests at the same time, and how many seconds a running study waits for them.
THREADS, PATIENCE_S = 16, 1.0
#: The page of a results folder.
PAGE = "report.html"
_FOLDER, _URL = "stores", "url"
# A segment, or the part of one from a byte on.
_PART = re.compile(r"journal/(\w[\w.-]*?)(?:\.(\d{12}))?\.jsonl")


class StoreError(StorageError):
    """An object store that does not serve; the message names it and says why."""


@dataclass(frozen=True)
class StoreUrl:
    """The URL of a results folder: ``path`` is absolute for a folder, which has no ``bucket``."""

    scheme: str
    bucket: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.path.lstrip('/')}".rstrip("/")

    @classmethod
    def parsed(cls, text: str | os.PathLike[str]) -> StoreUrl:
        """The URL that a text is; a UserError if it is none, or holds credentials."""
        text = os.fspath(text)
        shown, match = without_credentials(text), _URL_PATTERN.fullmatch(text)
        scheme, slash, rest = match.groups() if match is not None else ("", "", "")
        scheme, (bucket, _, path) = scheme.lower(), rest.partition("/")
        if scheme == "file" and (not slash or rest.startswith("/")):
            # file:///absolute/path: there is no host.
            return cls("file", "", str(Path("/" + rest.lstrip("/")).resolve()))
        if scheme in SCHEMES and scheme != "file" and bucket and shown == text:
            return cls(scheme, bucket, re.sub("/+", "/", path).strip("/"))
        raise UserError(
            f"{shown}: no URL of a results folder; write s3://BUCKET/PATH, gs:// or az:// alike, "
            "or file:///PATH, without a password or a query, since study.json and the page show it "
            "(see 'Credentials' in docs/stores.md)"
        )


def is_url(results: str | os.PathLike[str]) -> bool:
    """Whether a results folder is named by a URL, of whatever scheme."""
    match = _URL_PATTERN.fullmatch(os.fspath(results))
    return match is not None and (bool(match[2]) or match[1].lower() in SCHEMES)


def local_folder(results: str | os.PathLike[str], *, is_new: bool = False) -> Path:
    """The results folder that a user names, which may be new; of a URL its mirror, as it is now."""
    if not is_url(results):
        return Path(results)
    url = StoreUrl.parsed(results)
    mirror = Mirror(url)
    mirror.pull()
    if not is_new and not any((mirror.folder / name).exists() for name in (FILE_NAME, FOLDER)):
        raise UserError(f"{url}: no results here ({FILE_NAME} is missing)")
    return mirror.folder


class Item(NamedTuple):
    """An object: its size in bytes, and a tag that changes with its content."""

    size: int
    tag: str


class Store:
    """The objects below a URL; every failure is one line."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        try:
            from obstore.exceptions import BaseError
        except ImportError:
            raise UserError(
                f"{url}: needs a package that is not installed; pip install 'marginbench[cloud]'"
            ) from None
        self._errors = BaseError
        if url.scheme != "file":
            with self._explained():
                self._opened  # noqa: B018 - missing credentials fail before anything is done

    @cached_property
    def _opened(self) -> Any:
        """obstore's store, which repeats requests that may still succeed."""
        from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

        url = self._url
        if url.scheme == "file":
            return LocalStore(url.path, mkdir=True)
        timeout = timedelta(seconds=REQUEST_S)
        client: dict[str, Any] = {"timeout": timeout, "connect_timeout": timeout / 3}
        options: dict[str, Any] = {
            "prefix": url.path or None,
            "client_options": client,
            "retry_config": {"max_retries": 100, "retry_timeout": timedelta(seconds=_patience())},
        }
        if url.scheme == "s3":
            return S3Store(url.bucket, **options, **_as_aws_does(client))
        if url.scheme == "gs":
            return GCSStore(url.bucket, **options)
        if os.environ.get("AZURE_STORAGE_ENDPOINT", "").startswith("http:"):
            client["allow_http"] = True
        return AzureStore(url.bucket, **options)

    def list(self) -> dict[str, Item]:
        """Name of each object -> its item."""
        if self._url.scheme == "file" and not Path(self._url.path).is_dir():
            return {}  # to read creates nothing
        with self._explained():
            try:
                return self._listed()
            except self._errors as error:
                # Of an answer that breaks off obstore repeats the request, but not of a listing.
                if "response body" not in str(error):
                    raise
                return self._listed()

    def _listed(self) -> dict[str, Item]:
        pages = self._opened.list(chunk_size=1000)
        return {each["path"]: _item(each, each["size"]) for page in pages for each in page}

    def get(self, name: str) -> bytes | None:
        """The content of an object; None if there is none of this name."""
        with self._explained(), contextlib.suppress(FileNotFoundError):
            return bytes(self._opened.get(name).bytes())
        return None

    def put(self, name: str, content: bytes) -> Item:
        """Write an object."""
        with self._explained():
            return _item(self._opened.put(name, content), len(content))

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (self._errors, OSError, ValueError) as error:
            # Without URLs, which may hold signatures, and without the dump that follows the words.
            words = str(error).partition("\n\nDebug source")[0].rpartition(" - ")[2]
            words = visible(re.sub(r"https?://\S+", "...", words), REASON_LIMIT)
            remedy = "" if self._url.scheme == "file" else "; see 'Credentials' in docs/stores.md"
            message = f"{self._url}: cannot be read or written ({words}){remedy}"
            raise StoreError(message) from None


def _item(described: Any, size: int) -> Item:
    # Not every server of S3's protocol has tags.
    return Item(size, str(described.get("e_tag") or described.get("version")))


def _patience() -> float:
    """For how many seconds a request is repeated."""
    text = os.environ.get(RETRY_VARIABLE) or str(RETRY_S)
    with contextlib.suppress(ValueError):
        if 0.0 < float(text) < 1e6:
            return float(text)
    raise UserError(f"{RETRY_VARIABLE} is {text!r}; set it to a positive number of seconds")


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


class _Part(NamedTuple):
    """An object that holds a segment of the journal from a byte on."""

    segment: str
    start: int
    size: int
    name: str

    @property
    def end(self) -> int:
        return self.start + self.size


class Mirror:
    """A results folder of this machine that is brought up to date from a store, and pushed to it.

    All commands of this machine on one URL use the same ``folder``; in it each has its own segment.
    What asks the store does so in a thread, for which neither Ctrl-C nor the end of the process
    waits.
    """

    def __init__(self, url: StoreUrl) -> None:
        # Imported here: no command needs them that is given no URL.
        from filelock import FileLock
        from platformdirs import user_cache_dir

        cache = os.environ.get("MARGINBENCH_CACHE") or user_cache_dir("marginbench")
        digest = hashlib.sha256(str(url).encode()).hexdigest()[:16]
        root = Path(cache).expanduser().absolute() / _FOLDER / digest
        # The page and the messages name it as the store does.
        name = url.path.rpartition("/")[2] or url.bucket
        reserved = ("", ".", "..", _URL, ".lock")
        self.folder = root / (name if name not in reserved else "results")
        self._store = Store(url)
        with storing(root):
            root.mkdir(parents=True, exist_ok=True)
            (root / _URL).write_text(str(url), encoding="utf-8")
        self._lock = FileLock(root / ".lock")
        self._has_pushed = False  # whether the store has taken anything of this command
        # Of study.json, of whoever planned last, when both sides were the same: content and item.
        self._same: tuple[bytes, Item | None] = b"", None
        # The exchange at work, and whether it was said that one has failed.
        self._exchange: Future[None] | None = None
        self._has_reported = False

    def _started(self, operation: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()

        def work() -> None:
            try:
                with self._lock:
                    operation()
                future.set_result(None)
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future

    def pull(self) -> None:
        """Fetch all that the folder lacks, and the description of the study."""
        with storing(self.folder):
            self.folder.mkdir(exist_ok=True)
        self._started(lambda: self._fetch(self._store.list())).result()

    def exchange(self) -> None:
        """Push what the store lacks, and fetch what the folder lacks."""
        if self._exchange is not None:
            self._exchange.result()
        self._started(self._push_and_fetch).result()

    def exchange_meanwhile(self, say: Say) -> None:
        """The same while a study runs: what takes longer goes on in its thread.

        A store that fails is reported and tried again, unless it has taken nothing yet.
        """
        future = self._exchange = self._exchange or self._started(self._push_and_fetch)
        if not wait([future], PATIENCE_S).done:
            return
        self._exchange = None
        try:
            future.result()
            self._has_reported = False
        except StoreError as error:
            if not self._has_pushed:
                raise  # as to who may only read: better before the runs than after
            if not self._has_reported:
                say(f"{error}; the study goes on and tries again")
            self._has_reported = True

    def push_page(self) -> None:
        """Push the page, unless the store has the same."""

        content = (self.folder / PAGE).read_bytes()

        def push() -> None:
            if self._store.get(PAGE) != content:
                self._store.put(PAGE, content)

        self._started(push).result()

    def _push_and_fetch(self) -> None:
        objects = self._store.list()
        self._push(objects)
        self._fetch(objects)

    def _fetch(self, there: dict[str, Item]) -> None:
        """Fetch parts of segments, and the description of the study if it has changed."""
        from multiprocessing.pool import ThreadPool

        sizes = {path.stem: path.stat().st_size for path in segments_in(self.folder / FOLDER)}
        parts = [part for part in _parts(there) if part.end > sizes.get(part.segment, 0)]
        with ThreadPool(THREADS) as threads:
            contents = threads.imap(self._store.get, [part.name for part in parts])
            for part, content in zip(parts, contents, strict=True):
                self._append(part, content or b"")
        item, path = there.get(FILE_NAME), self.folder / FILE_NAME
        if item not in (None, self._same[1]):
            described = self._store.get(FILE_NAME)
            if described is not None:
                with storing(path), replacing(path) as sink:
                    sink.write(described)
                self._same = described, item

    def _append(self, part: _Part, content: bytes) -> None:
        """Append to a segment what it lacks of a part; who reads it meanwhile sees it locked."""
        path = self.folder / FOLDER / f"{part.segment}.jsonl"
        with storing(path):
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as sink:
                lock_file(sink.fileno(), wait=True)
                end = sink.seek(0, os.SEEK_END)
                # What is before it may come with the next list, which is not of one moment.
                if part.start <= end:
                    sink.write(content[end - part.start :])
                    sink.flush()

    def _push(self, there: dict[str, Item]) -> None:
        """Push what the store lacks: lines, and then the description."""
        for name, content in self._lines(there):
            there[name] = self._store.put(name, content)
            self._has_pushed = True
        path, (same, item) = self.folder / FILE_NAME, self._same
        # Who finds that another command has changed it takes that one.
        if there.get(FILE_NAME) == item and path.exists():
            described = path.read_bytes()
            if described != same:
                there[FILE_NAME] = self._store.put(FILE_NAME, described)
                self._has_pushed, self._same = True, (described, there[FILE_NAME])

    def _lines(self, there: Mapping[str, Item]) -> Iterator[tuple[str, bytes]]:
        ends: dict[str, int] = {}
        for part in _parts(there):
            end = ends.setdefault(part.segment, 0)
            if part.start <= end:
                ends[part.segment] = max(end, part.end)
        for path in segments_in(self.folder / FOLDER):
            end = ends.get(path.stem, 0)
            with path.open("rb") as source:
                source.seek(end)
                lines = source.read()
            # Its writer may be in the middle of one.
            lines = lines[: lines.rfind(b"\n") + 1]
            if lines:
                yield f"journal/{path.stem}.{end:012}.jsonl", lines


def _parts(there: Mapping[str, Item]) -> list[_Part]:
    """The parts of segments among objects, in order."""
    matches = ((_PART.fullmatch(name), entry.size) for name, entry in there.items())
    return sorted(_Part(m[1], int(m[2] or 0), size, m[0]) for m, size in matches if m)


@contextlib.contextmanager
def changeable(results: str | os.PathLike[str]) -> Iterator[Path]:
    """A results folder to be changed; of a URL its mirror, which is pushed when the block ends."""
    if not is_url(results):
        yield Path(results)
        return
    mirror = Mirror(StoreUrl.parsed(results))
    mirror.pull()
    yield mirror.folder
    mirror.exchange()


@contextlib.contextmanager
def synced(results: str, say: Say) -> Iterator[tuple[Path, Callable[[], None]]]:
    """The mirror of a store, for a study, and what pushes and fetches news when it is called.

    At the end of the block all has been pushed, or a StoreError says that it stays in the mirror.
    """
    mirror = Mirror(StoreUrl.parsed(results))
    mirror.pull()
    kept = f"what was recorded stays in {mirror.folder}; run the same command again to push it"
    try:
        yield mirror.folder, lambda: mirror.exchange_meanwhile(say)
    except (InterruptedRunError, KeyboardInterrupt, StorageError):
        try:
            mirror.exchange()
        except StorageError:
            say(kept)
        raise
    try:
        mirror.exchange()
    except StoreError as error:
        raise StoreError(f"{error}; {kept}") from None


def displayed(folder: Path) -> str:
    """A results folder as its users name it: a mirror by its URL."""
    return str(_url_of(folder) or folder)


def _url_of(folder: Path) -> StoreUrl | None:
    """The URL of which a folder is the mirror."""
    root = folder.parent
    if root.parent.name != _FOLDER or not (root / _URL).is_file():
        return None
    return StoreUrl.parsed((root / _URL).read_text(encoding="utf-8"))


def pushed_page(page: Path) -> str:
    """Push the page of a results folder to its store, if it is a mirror; where it is now."""
    url = _url_of(page.parent)
    if url is None:
        return str(page)
    try:
        Mirror(url).push_page()
    except StoreError as error:
        raise StoreError(f"{error}; the page is here: {page}") from None
    return f"{url.path if url.scheme == 'file' else url}/{PAGE}"
