"""Results folders in object stores: a mirror on this machine, and journals on their way.

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
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ...data_loaders.atomic import replacing
from ..errors import InterruptedRunError, StorageError, UserError
from ..storage import lock_file, storing
from ..words import plural
from .description import FILE_NAME
from .objects import Entry, Store, StoreError, StoreUrl, is_url

Say = Callable[[str], None]
#: Requests at the same time, and how many seconds a running study waits for them.
THREADS, PATIENCE_S = 16, 1.0
#: The page of a results folder.
PAGE = "report.html"
_FOLDER, _URL, _SEEN = "stores", "url", "seen"
# A segment, or the part of one from a byte on.
_PART = re.compile(r"journal/(\w[\w.-]*?)(?:\.(\d{12}))?\.jsonl")
_SOURCES = re.compile(r"sources/\w[\w.-]*")


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

    All commands of this machine on one URL use the same mirror; in it each has its own segment.

    Parameters
    ----------
    url : StoreUrl

    Attributes
    ----------
    folder : Path
        The results folder.
    has_pushed : bool
        Whether the store has taken anything of this command.
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
        own = ("", ".", "..", _URL, _SEEN, ".lock")
        self.folder = self._root / (name if name not in own else "results")
        self._url, self._store = url, Store(url)
        with storing(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            (self._root / _URL).write_text(str(url), encoding="utf-8")
        self._lock = FileLock(self._root / ".lock")
        self.has_pushed = False
        # What the store has, as far as this command knows.
        self._there: dict[str, Entry] = {}
        # Of study.json when both were the same: its content here, its entry there.
        self._description: tuple[bytes, Entry | None] = b"", None

    def pull(self) -> None:
        """Fetch all that the folder lacks, and the description of the study.

        Raises
        ------
        StoreError
            If the store does not serve.
        """
        with self._lock:
            there = self._store.list()
            if any(last > end for end, last in _ends(there).values()):
                # A list is not of one moment: the part that seems to be missing may be there now.
                there = self._store.list()
            seen = self._root / _SEEN
            with storing(self._root):
                if not there and seen.exists() and self.folder.exists():
                    # Whoever has emptied the store wants to start afresh.
                    os.replace(self.folder, self._root / f"emptied-{time.time_ns()}")
                    seen.unlink()
                self.folder.mkdir(exist_ok=True)
            self._fetch(there, fill=True)
            self._fetch_description(there)

    def exchange(self) -> None:
        """Push what the store lacks, and fetch what the folder lacks.

        Raises
        ------
        StoreError
            If the store does not serve.
        """
        with self._lock:
            there = self._store.list()
            self._push(there)
            self._fetch(there)
            self._fetch_description(there)

    def _fetch(self, there: dict[str, Entry], *, fill: bool = False) -> None:
        """Fetch parts of segments, and sources.

        Parameters
        ----------
        there : dict
            What the store has.
        fill : bool
            Fill what is lost of a segment by a damaged line.
        """
        self._there = there
        here = {path.stem: path.stat().st_size for path in self.folder.glob("journal/*.jsonl")}
        parts = [part for part in _parts(there) if part.end > here.get(part.segment, 0)]
        sources = [
            name for name in there if _SOURCES.fullmatch(name) and not (self.folder / name).exists()
        ]
        with ThreadPoolExecutor(THREADS) as threads:
            contents = threads.map(self._store.get, [part.name for part in parts])
            for part, content in zip(parts, contents, strict=True):
                if content is not None:
                    self._append(part, content, fill=fill)
            for name, content in zip(sources, threads.map(self._store.get, sources), strict=True):
                if content is not None:
                    self._write(name, content)
        if there:
            with storing(self._root):
                (self._root / _SEEN).touch()

    def _fetch_description(self, there: Mapping[str, Entry]) -> None:
        """Fetch the description of the study, which whoever planned last has written."""
        entry = there.get(FILE_NAME)
        if entry is not None and entry != self._description[1]:
            description = self._store.get(FILE_NAME)
            if description is not None:
                self._write(FILE_NAME, description)
                self._description = description, entry

    def _append(self, part: _Part, content: bytes, *, fill: bool) -> None:
        """Append to a segment what it lacks of a part; who reads it meanwhile sees it locked."""
        path = self.folder / "journal" / f"{part.segment}.jsonl"
        with storing(path):
            path.parent.mkdir(exist_ok=True)
            with path.open("ab") as sink:
                lock_file(sink.fileno(), wait=True)
                end = sink.seek(0, os.SEEK_END)
                if part.start > end:
                    if not fill:
                        return
                    sink.write(b"#" * (part.start - end - 1) + b"\n")
                sink.write(content[max(0, end - part.start) :])
                sink.flush()

    def _push(self, there: dict[str, Entry]) -> None:
        """Push what the store lacks."""
        sources = self.folder.glob("sources/*.json")
        names = {f"sources/{path.name}" for path in sources}.difference(there)
        objects = {name: (self.folder / name).read_bytes() for name in sorted(names)}
        for name, content in itertools.chain(objects.items(), self._news(there)):
            there[name] = self._store.put(name, content)
            self.has_pushed = True
        with contextlib.suppress(FileNotFoundError):
            description, (known, entry) = (self.folder / FILE_NAME).read_bytes(), self._description
            # Who finds that another command has changed it takes that one, and plans again.
            if description != known and there.get(FILE_NAME) == entry:
                there[FILE_NAME] = self._store.put(FILE_NAME, description)
                self._description = description, there[FILE_NAME]

    def _news(self, there: Mapping[str, Entry]) -> Iterator[tuple[str, bytes]]:
        """Name and content of the objects that the store lacks of the journal: whole lines."""
        ends = _ends(there)
        for path in sorted(self.folder.glob("journal/*.jsonl")):
            end, last = ends.get(path.stem, (0, 0))
            if path.stat().st_size > last:
                with path.open("rb") as source:
                    source.seek(end)
                    lines = source.read()
                # Its writer may be in the middle of one.
                lines = lines[: lines.rfind(b"\n") + 1]
                if end + len(lines) > last:
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


def _parts(there: Mapping[str, Entry]) -> list[_Part]:
    """The parts of segments among objects, in order."""
    matches = ((_PART.fullmatch(name), entry.size) for name, entry in there.items())
    return sorted(_Part(m[1], int(m[2] or 0), size, m[0]) for m, size in matches if m)


def _ends(there: Mapping[str, Entry]) -> dict[str, tuple[int, int]]:
    """Segment -> up to which byte a store has it without a gap, and up to which with gaps."""
    ends: dict[str, tuple[int, int]] = {}
    for part in _parts(there):
        end, last = ends.get(part.segment, (0, 0))
        ends[part.segment] = max(end, part.end) if part.start <= end else end, max(last, part.end)
    return ends


def fetched(url: StoreUrl, *, is_new: bool = False) -> Path:
    """The mirror of a store, brought up to date; see :func:`.objects.local_folder`."""
    mirror = Mirror(url)
    mirror.pull()
    if not is_new and not any((mirror.folder / name).exists() for name in (FILE_NAME, "journal")):
        raise UserError(f"{url}: no results here ({FILE_NAME} is missing)")
    return mirror.folder


@contextlib.contextmanager
def changeable(place: str | os.PathLike[str]) -> Iterator[Path]:
    """A results folder to be changed; of a URL its mirror, which is pushed if the block ends well.

    Parameters
    ----------
    place : str or Path
    """
    if not is_url(place):
        yield Path(place)
        return
    mirror = Mirror(StoreUrl.parsed(place))
    mirror.pull()
    yield mirror.folder
    mirror.exchange()


@contextlib.contextmanager
def synced(place: str, say: Say) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A results folder of a store, for a study.

    Parameters
    ----------
    place : str
        Its URL.
    say : callable
        Takes one line for the user.

    Yields
    ------
    tuple of Path and callable
        The mirror, and what is to be called now and then: it pushes what is new and fetches what
        other commands have pushed. A store that does not serve is told of and tried again, but one
        that refuses the first push ends the study. At the end of the block all that is in the
        mirror has been pushed.

    Raises
    ------
    StoreError
        If the store does not serve at the beginning or at the end; what was recorded stays in the
        mirror.
    """
    mirror = Mirror(StoreUrl.parsed(place))
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
        self._thread = threading.Thread()
        self._error: Exception | None = None
        self._has_told = False

    def __call__(self) -> None:
        """Exchange; what takes longer goes on while the study does."""
        if not self._thread.is_alive():
            self._thread = threading.Thread(target=self._exchange, daemon=True)
            self._thread.start()
        self._thread.join(PATIENCE_S)
        if isinstance(self._error, StoreError):
            if self._error.is_refusal and not self._mirror.has_pushed:
                raise self._error  # as to who may only read: better before the runs than after
            if not self._has_told:
                self._say(f"{self._error}; the study goes on and tries again")
            self._has_told = True
        elif self._error is not None:
            raise self._error
        elif not self._thread.is_alive():
            self._has_told = False

    def _exchange(self) -> None:
        try:
            self._mirror.exchange()
            self._error = None
        except Exception as error:  # noqa: BLE001 - raised by whoever waits for the thread
            self._error = error

    def finish(self) -> None:
        """Exchange what is left.

        Raises
        ------
        StoreError
            If the store does not serve.
        """
        if self._thread.is_alive():
            self._thread.join()
            if self._error is not None:
                raise self._error
        self._mirror.exchange()


def pushed_page(page: Path) -> str:
    """Push the page of a mirror to its store; where it is now.

    Parameters
    ----------
    page : Path
        That of any results folder.

    Raises
    ------
    StoreError
        If the page has changed and the store does not take it, as one that may only be read; the
        message says where the page is on this machine.
    """
    root = page.parent.parent
    if root.parent.name != _FOLDER or not (root / _URL).is_file():
        return str(page)
    url = StoreUrl.parsed((root / _URL).read_text(encoding="utf-8"))
    try:
        Mirror(url).push_page()
    except StoreError as error:
        raise StoreError(f"{error}; the page is here: {page}") from None
    return f"{url.path if url.scheme == 'file' else url}/{PAGE}"
