"""Results folders given by URLs: mirrors in the cache folder, found and brought up to date.

A URL has one mirror for each command that works on it at the same time on this machine, ``1`` and
so on; each command takes the first that is free.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from platformdirs import user_cache_dir

from ...environment import environment
from ...errors import BusyError, InterruptedRunError, UserError
from ...execution.guarding import shared_folder
from ...locking import lock_file
from ...storage import storing
from ..description import FILE_NAME
from .folder_objects import FolderObjects
from .leases import Leases
from .mirror import PAGE, RUNS, Mirror
from .monitoring import Monitor, setting_words
from .objects import Objects, StoreError, opened
from .shared import Shared, folder_claimed
from .urls import StoreUrl, is_url

Say = Callable[[str], None]
_FOLDER = "stores"
_URL = "url"


@dataclass(frozen=True)
class _Slot:
    """A place for a mirror in the cache folder."""

    url: StoreUrl
    number: int

    @property
    def folder(self) -> Path:
        root = os.environ.get("MARGINBENCH_CACHE") or user_cache_dir("marginbench")
        digest = hashlib.sha256(str(self.url).encode()).hexdigest()[:16]
        return Path(root).expanduser().absolute() / _FOLDER / f"{digest}-{self.number}"

    @property
    def results(self) -> Path:
        # The page and the messages name it as the store does.
        name = self.url.path.rpartition("/")[2] or self.url.bucket
        return self.folder / (name if name not in ("", ".", "..", _URL) else "results")

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Whether no other process has it; then none has it in this block."""
        with storing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / _URL).write_text(str(self.url), encoding="utf-8")
        descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            lock_file(descriptor)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(descriptor)

    def mirror(self, objects: Objects) -> Mirror:
        return Mirror(objects, self.results, self.folder / "index.jsonl")


@contextlib.contextmanager
def _mirror_of(url: StoreUrl, objects: Objects) -> Iterator[Mirror]:
    """The first mirror that no other process uses."""
    for number in count(1):
        slot = _Slot(url, number)
        with slot.locked() as is_ours:
            if is_ours:
                yield slot.mirror(objects)
                return


def _push_leftovers(url: StoreUrl, leases: Leases, place: str, say: Say) -> None:
    """Push what commands on other mirrors could not, because they were killed or cut off."""
    for number in count(1):
        slot = _Slot(url, number)
        if not slot.folder.is_dir():
            return
        with slot.locked() as is_ours:
            if is_ours and slot.results.is_dir():
                mirror = slot.mirror(leases.objects)
                if mirror.is_ahead:
                    with folder_claimed(leases, place, lambda: None, say):
                        mirror.pull()
                        mirror.push()


def fetched(place: str | os.PathLike[str], *, is_new: bool = False) -> Path:
    """A results folder of a store, brought up to date on this machine to be read.

    Parameters
    ----------
    place : str
        Its URL.
    is_new : bool
        Whether there need not be any results yet.

    Raises
    ------
    UserError
        If it is no such URL, or the store has no results there.
    StoreError
        If the store does not serve.
    """
    url = StoreUrl.parsed(place)
    with _mirror_of(url, opened(url, str(url))) as mirror:
        mirror.pull()
        known = any((mirror.folder / name).exists() for name in (FILE_NAME, RUNS))
        if not known and not is_new:
            raise UserError(f"{url}: no results here ({FILE_NAME} is missing)")
        return mirror.folder


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
    slot = page.parent.parent
    known = slot / _URL
    if slot.parent.name != _FOLDER or not known.is_file():
        return str(page)
    url = StoreUrl.parsed(known.read_text(encoding="utf-8"))
    objects = opened(url, str(url))
    number = int(slot.name.rpartition("-")[2])
    try:
        with _Slot(url, number).locked() as is_ours:
            if is_ours:
                _Slot(url, number).mirror(objects).push_changed(PAGE)
            else:
                # Its new user compares it again.
                objects.put(PAGE, page.read_bytes())
    except StoreError as error:
        raise StoreError(f"{error}; the page is here: {page}") from None
    return f"{url.path if url.scheme == 'file' else url}/{PAGE}"


@contextlib.contextmanager
def shared(url: StoreUrl, place: str, say: Say) -> Iterator[tuple[Path, Shared]]:
    """A results folder of a store, for a study beside other commands.

    Parameters
    ----------
    url : StoreUrl
    place : str
        How messages name it.
    say : callable
        Takes one line for the user.

    Yields
    ------
    tuple of Path and Shared
        The mirror. At the end of the block all that is in it has been pushed.

    Raises
    ------
    StoreError
        If the store does not serve; what was recorded stays in the mirror.
    """
    objects = opened(url, place)
    with _own_folder(url), _mirror_of(url, objects) as mirror:
        mirror.pull()
        leases = Leases(objects, setting_words(environment()))
        leases.begin()
        sharing = Shared(mirror, leases, say)
        try:
            try:
                _push_leftovers(url, leases, place, say)
                yield mirror.folder, sharing
            except (InterruptedRunError, KeyboardInterrupt):
                sharing.finish()
                raise
            sharing.finish()
        except StoreError as error:
            # What is claimed there expires.
            leases.stop()
            if not mirror.is_ahead:
                raise
            raise StoreError(
                f"{error}; what was recorded stays in {mirror.folder}, and the same command pushes "
                "it when it is run again"
            ) from None
        except BaseException:
            with contextlib.suppress(StoreError):
                leases.end()
            raise
        else:
            leases.end()
        finally:
            sharing.close()


@contextlib.contextmanager
def changing(url: StoreUrl, say: Say) -> Iterator[Path]:
    """A results folder of a store that no other command works on.

    Parameters
    ----------
    url : StoreUrl
    say : callable
        Takes one line for the user.

    Yields
    ------
    Path
        The mirror. If the block ends well, what has changed is pushed: first what is new, then
        what others take the place of is removed.

    Raises
    ------
    BusyError
        If a study runs there.
    StoreError
        If the store does not serve.
    """
    place = str(url)
    objects = opened(url, place)
    with _own_folder(url), _mirror_of(url, objects) as mirror:
        leases = Leases(objects)
        leases.begin()
        try:
            _push_leftovers(url, leases, place, say)
            with folder_claimed(leases, place, lambda: None, say):
                for other in leases.others().values():
                    raise BusyError(
                        f"{place}: a marginbench command is writing here (process "
                        f"{other.get('pid')} on {other.get('machine')}); wait for it"
                    )
                mirror.pull()
                mirror.verify()
                yield mirror.folder
                mirror.push()
                leases.sweep()
        finally:
            leases.end()


@contextlib.contextmanager
def monitored(place: str) -> Iterator[Monitor]:
    """A results folder or a store, to be watched.

    Parameters
    ----------
    place : str
        A folder or a URL.
    """
    if not is_url(place):
        yield Monitor(Path(place), FolderObjects(place, place))
        return
    url = StoreUrl.parsed(place)
    objects = opened(url, str(url))
    with _mirror_of(url, objects) as mirror:
        yield Monitor(mirror.folder, objects, mirror.pull)


def _own_folder(url: StoreUrl) -> contextlib.AbstractContextManager[None]:
    """Of a folder, also commands that do not share it must know that it is written to."""
    return shared_folder(Path(url.path)) if url.scheme == "file" else contextlib.nullcontext()
