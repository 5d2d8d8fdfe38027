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
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ...data_loaders.atomic import replacing
from ...data_loaders.errors import without_credentials
from ..errors import InterruptedRunError, StorageError, UserError
from ..storage import lock_file, storing
from ..words import REASON_LIMIT, plural, visible
from .description import FILE_NAME
from .journal import FOLDER, segments_in

Say = Callable[[str], None]
_T = TypeVar("_T")
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
_SOURCES = re.compile(r"sources/\w[\w.-]*")


class StoreError(StorageError):
    """An object store that does not serve; the message names it and says why."""


@dataclass(frozen=True)
class StoreUrl:
    """The URL of a results folder: ``path`` is absolute for a folder, which has no ``bucket``."""

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

        A UserError if its scheme is unknown, its bucket is missing, or it holds credentials.
        """
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


def is_url(results: str | os.PathLike[str]) -> bool:
    """Whether a results folder is named by a URL, of whatever scheme."""
    match = _URL_PATTERN.fullmatch(os.fspath(results))
    return match is not None and (bool(match[2]) or match[1].lower() in SCHEMES)


def local_folder(results: str | os.PathLike[str], *, is_new: bool = False) -> Path:
    """The results folder that a user names; of a URL its mirror, brought up to date.

    It ``is_new`` if there need not be any results yet.
    """
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
            import obstore.exceptions
        except ImportError:
            raise UserError(
                f"{url}: needs a package that is not installed; pip install 'marginbench[cloud]'"
            ) from None
        self._errors = (obstore.exceptions.BaseError, OSError, ValueError)
        if url.scheme != "file":
            try:
                self._opened  # noqa: B018 - missing credentials fail before anything is done
            except self._errors as error:
                raise self._complaint(error) from None

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

        def listed() -> dict[str, Item]:
            pages = self._opened.list(chunk_size=1000)
            return {each["path"]: _item(each, each["size"]) for page in pages for each in page}

        return self._asked(listed)

    def get(self, name: str) -> bytes | None:
        """The content of an object; None if there is none of this name."""

        def read() -> bytes | None:
            with contextlib.suppress(FileNotFoundError):
                return bytes(self._opened.get(name).bytes())
            return None

        return self._asked(read)

    def put(self, name: str, content: bytes) -> Item:
        """Write an object."""
        return _item(self._asked(lambda: self._opened.put(name, content)), len(content))

    def _asked(self, request: Callable[[], _T]) -> _T:
        answer: Future[_T] = Future()

        def ask() -> None:
            try:
                answer.set_result(request())
            except BaseException as error:  # noqa: BLE001 - raised again below
                answer.set_exception(error)

        # Neither Ctrl-C nor the end of the process waits for a daemon.
        threading.Thread(target=ask, daemon=True).start()
        try:
            return answer.result()
        except self._errors as error:
            raise self._complaint(error) from None

    def _complaint(self, error: Exception) -> StoreError:
        # Its words without URLs, which may hold signatures, and without the dump that follows them.
        words = str(error).partition("\n\nDebug source")[0].rpartition(" - ")[2]
        words = re.sub(r"https?://\S+", "...", words)
        remedy = "" if self._url.scheme == "file" else "; see 'Credentials' in docs/stores.md"
        words = visible(words, REASON_LIMIT)
        return StoreError(f"{self._url}: cannot be read or written ({words}){remedy}")


def _item(described: Any, size: int) -> Item:
    # Not every server of S3's protocol has tags.
    return Item(size, str(described.get("e_tag") or described.get("version")))


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


@dataclass(frozen=True, order=True)
class _Part:
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
    ``has_pushed`` says whether the store has taken anything of this command.
    """

    def __init__(self, url: StoreUrl) -> None:
        # Imported here: no command needs them that is given no URL.
        from filelock import FileLock
        from platformdirs import user_cache_dir

        root = os.environ.get("MARGINBENCH_CACHE") or user_cache_dir("marginbench")
        digest = hashlib.sha256(str(url).encode()).hexdigest()[:16]
        self._root = Path(root).expanduser().absolute() / _FOLDER / digest
        # The page and the messages name it as the store does.
        name = url.path.rpartition("/")[2] or url.bucket
        reserved = ("", ".", "..", _URL, ".lock")
        self.folder = self._root / (name if name not in reserved else "results")
        self._url, self._store = url, Store(url)
        with storing(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            (self._root / _URL).write_text(str(url), encoding="utf-8")
        self._lock = FileLock(self._root / ".lock")
        self.has_pushed = False
        # What the store has, as far as this command knows.
        self._there: dict[str, Item] = {}
        # Of study.json when both were the same: its content here, its entry there.
        self._description: tuple[bytes, Item | None] = b"", None

    def pull(self) -> None:
        """Fetch all that the folder lacks, and the description of the study."""
        with self._lock:
            with storing(self._root):
                self.folder.mkdir(exist_ok=True)
            self._fetch(self._store.list())

    def exchange(self) -> None:
        """Push what the store lacks, and fetch what the folder lacks."""
        with self._lock:
            objects = self._store.list()
            self._push(objects)
            self._fetch(objects)

    def _fetch(self, there: dict[str, Item]) -> None:
        """Fetch parts of segments, sources, and the description of whoever planned last."""
        self._there = there
        sizes = {path.stem: path.stat().st_size for path in segments_in(self.folder / FOLDER)}
        parts = [part for part in _parts(there) if part.end > sizes.get(part.segment, 0)]
        names = [
            name for name in there if _SOURCES.fullmatch(name) and not (self.folder / name).exists()
        ]
        item = there.get(FILE_NAME)
        if item is not None and item != self._description[1]:
            names.append(FILE_NAME)
        with ThreadPoolExecutor(THREADS) as threads:
            contents = threads.map(self._store.get, [part.name for part in parts])
            for part, content in zip(parts, contents, strict=True):
                if content is not None:
                    self._append(part, content)
            for name, content in zip(names, threads.map(self._store.get, names), strict=True):
                if content is not None:
                    self._write(name, content)
                    if name == FILE_NAME:
                        self._description = content, item

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
        """Push what the store lacks."""
        sources = self.folder.glob("sources/*.json")
        names = {f"sources/{path.name}" for path in sources}.difference(there)
        objects = {name: (self.folder / name).read_bytes() for name in sorted(names)}
        for name, content in itertools.chain(objects.items(), self._news(there)):
            there[name] = self._store.put(name, content)
            self.has_pushed = True
        with contextlib.suppress(FileNotFoundError):
            description, (same, entry) = (self.folder / FILE_NAME).read_bytes(), self._description
            # Who finds that another command has changed it takes that one.
            if description != same and there.get(FILE_NAME) == entry:
                there[FILE_NAME] = self._store.put(FILE_NAME, description)
                self._description = description, there[FILE_NAME]

    def _news(self, there: Mapping[str, Item]) -> Iterator[tuple[str, bytes]]:
        """Name and content of the objects that the store lacks of the journal: whole lines."""
        ends: dict[str, int] = {}
        for part in _parts(there):
            end = ends.get(part.segment, 0)
            ends[part.segment] = max(end, part.end) if part.start <= end else end
        for path in segments_in(self.folder / FOLDER):
            end = ends.get(path.stem, 0)
            with path.open("rb") as source:
                source.seek(end)
                lines = source.read()
            # Its writer may be in the middle of one.
            lines = lines[: lines.rfind(b"\n") + 1]
            if lines:
                yield f"journal/{path.stem}.{end:012}.jsonl", lines

    def _write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        with storing(path):
            path.parent.mkdir(exist_ok=True)
            with replacing(path) as sink:
                sink.write(content)

    @property
    def unsent(self) -> int:
        """Records here that are not known to be in the store."""
        # CHECKSUM HEADER<tab>BODY
        lines = (line for _, news in self._news(self._there) for line in news.splitlines())
        return sum(b'"type":"record"' in line.partition(b"\t")[0] for line in lines)

    def push_page(self) -> None:
        """Push the page, unless the store has the same."""
        content = (self.folder / PAGE).read_bytes()
        if self._store.get(PAGE) != content:
            self._store.put(PAGE, content)


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
    """The mirror of a store, for a study, and a function to call now and then.

    That pushes what is new and fetches what other commands have pushed. A store that does not serve
    is reported and tried again, but ends a study of which it has taken nothing yet. At the end of
    the block all that is in the mirror has been pushed; if a StoreError says that this failed, it
    stays in the mirror.
    """
    mirror = Mirror(StoreUrl.parsed(results))
    mirror.pull()
    exchange = _Exchange(mirror, say)
    try:
        yield mirror.folder, exchange
    except (InterruptedRunError, KeyboardInterrupt, StorageError):
        with contextlib.suppress(StorageError):
            exchange.finish()
        if mirror.unsent:
            say(_unsent(mirror))
        raise
    try:
        exchange.finish()
    except StoreError as error:
        raise StoreError(f"{error}; {_unsent(mirror)}") from None


def _unsent(mirror: Mirror) -> str:
    return (
        f"{plural(mirror.unsent, 'record')} not yet in the store; what was recorded stays in "
        f"{mirror.folder}, and the same command pushes it when it is run again"
    )


class _Exchange:
    """Exchanges in a thread, so that no store keeps a running study waiting."""

    def __init__(self, mirror: Mirror, say: Say) -> None:
        self._mirror, self._say = mirror, say
        self._thread = ThreadPoolExecutor(1)
        self._future: Future[None] | None = None
        self._has_reported = False

    def __call__(self) -> None:
        """Exchange; what takes longer goes on while the study does."""
        future = self._future = self._future or self._thread.submit(self._mirror.exchange)
        if not wait([future], PATIENCE_S).done:
            return
        self._future = None
        try:
            future.result()
            self._has_reported = False
        except StoreError as error:
            if not self._mirror.has_pushed:
                raise  # as to who may only read: better before the runs than after
            if not self._has_reported:
                self._say(f"{error}; the study goes on and tries again")
            self._has_reported = True

    def finish(self) -> None:
        """Exchange what is left."""
        if self._future is not None:
            self._future.result()
        self._mirror.exchange()


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
    """Push the page of a results folder to its store, if it is a mirror; where it is now.

    A StoreError says where it is on this machine.
    """
    url = _url_of(page.parent)
    if url is None:
        return str(page)
    try:
        Mirror(url).push_page()
    except StoreError as error:
        raise StoreError(f"{error}; the page is here: {page}") from None
    return f"{url.path if url.scheme == 'file' else url}/{PAGE}"
