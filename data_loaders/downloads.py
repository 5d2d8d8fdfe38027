"""Downloads that end, and that go on where they were interrupted.

pooch names the file, checks its hash and puts it in its place; `Downloader` is what it calls to
get the bytes. Unlike pooch's own, it bounds size, time and rate, resumes with HTTP range requests
(RFC 9110, section 14), and never takes a short answer for a whole file.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import queue
import re
import socket
import threading
import time
from datetime import timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import requests
import urllib3

from . import files
from .errors import first_line

#: Seconds that a server may keep silent, on connecting and between two pieces of the answer.
TIMEOUT_S = 30.0
#: Attempts in a row that bring nothing new before a download fails, and the pause after the
#: first of them; it doubles.
ATTEMPTS = 4
PAUSE_S = 1.0
MAX_REDIRECTS = 10
THREAD_NAME = "marginbench-download"
#: Small, so that the last block of a slow line does not come late and little is lost when killed.
_BLOCK_BYTES = 1 << 14
_QUEUED_BLOCKS = 64
_REDIRECTS = (301, 302, 303, 307, 308)
#: Too early, too often, or the server's own trouble: worth another attempt.
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")
#: A date vouches for the bytes only if the file had not changed for so long when it was sent.
_SETTLED = timedelta(seconds=60)
#: What requests, and what lies below it, raise for what a server or the network does.
_FAILURES = (OSError, ValueError, urllib3.exceptions.HTTPError, http.client.HTTPException)


class DownloadError(OSError):
    """A download that failed for good; the message says why in a few words."""


class _Interrupted(Exception):
    """An attempt that failed, after which another one may succeed."""


class Downloader:
    """The bytes of one address, for ``pooch.retrieve``.

    Parameters
    ----------
    part : Path
        Where unfinished bytes are kept; a file of this name plus ``.json`` stands beside it.
    max_bytes : int
        The most bytes of the file.
    """

    def __init__(self, part: Path, max_bytes: int) -> None:
        self._part = _Part(part)
        self._max_bytes = max_bytes

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Download the file, or what is missing of it.

        Parameters
        ----------
        url : str
        output_file : str
            Where the whole file is put.
        pooch : object
            Not used.

        Raises
        ------
        DownloadError
            If the file cannot be had within the limits. What came so far is kept if the server
            says how to recognise the same file, and is deleted if not.
        """
        try:
            self._complete(url, _Patience())
            self._part.move(output_file)
        except OSError as error:
            # Of the disk, not of the server: it may be full, so nothing is kept on it.
            if not isinstance(error, DownloadError):
                self._part.discard()
            raise
        finally:
            self._part.discard_unless_resumable()

    def _complete(self, url: str, patience: _Patience) -> None:
        failures, most = 0, self._part.size
        while True:
            try:
                return self._attempt(url, patience)
            except _Interrupted as error:
                failures = 1 if self._part.size > most else failures + 1
                most = max(most, self._part.size)
                if failures >= ATTEMPTS:
                    raise DownloadError(self._given_up(error)) from None
            patience.pause(PAUSE_S * 2 ** (failures - 1))

    def _given_up(self, error: _Interrupted) -> str:
        part = self._part
        total = "an unknown number of" if part.total is None else part.total
        again = "; run the same command again to resume" if part.validator and part.size else ""
        return (
            f"download failed: {error}, in {ATTEMPTS} attempts; {part.size} of {total} bytes "
            f"came{again}"
        )

    def _attempt(self, url: str, patience: _Patience) -> None:
        part = self._part
        offset = part.size if part.validator is not None else 0
        if offset and offset == part.total:
            return
        # Ranges count the bytes that are sent: those of the file itself, not compressed once more.
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers |= {"Range": f"bytes={offset}-", "If-Range": str(part.validator)}
        with contextlib.closing(_Feed(url, headers)) as feed:
            self._accept(feed.answer(patience), offset)
            with part.path.open("ab") as sink:
                while block := feed.block(patience):
                    self._check_size(sink.tell() + len(block))
                    sink.write(block)
        if part.total is not None and part.size != part.total:
            raise _Interrupted(f"the server sent {part.size} of {part.total} bytes")

    def _accept(self, answer: requests.Response, offset: int) -> None:
        """Prepare the unfinished file for the body of an answer, or refuse it."""
        status = answer.status_code
        if status in _TRANSIENT:
            raise _Interrupted(f"HTTP status {status}")
        if status == 200:  # also the answer to a range request if the file has changed
            total = _length(answer)
            self._check_size(total or 0)
            self._part.begin(_validator(answer), total)
        elif status == 206 and offset:
            self._check_range(answer, offset)
        elif status == 416 and offset:
            self._part.discard()
            raise _Interrupted("the server has less than was downloaded before")
        else:
            raise DownloadError(f"HTTP status {status}")

    def _check_range(self, answer: requests.Response, offset: int) -> None:
        found = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        start, total = (int(found[1]), int(found[3])) if found else (None, None)
        known = self._part.total
        same = answer.headers.get("ETag", answer.headers.get("Last-Modified"))
        if (
            start != offset
            or (known is not None and total != known)
            or (same is not None and same != self._part.validator)
        ):
            self._part.discard()
            raise _Interrupted("the server resumed at another place or with another file")
        if total is not None:
            self._check_size(total)
            self._part.total = total

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            self._part.discard()
            raise DownloadError(
                f"larger than the limit of {self._max_bytes} bytes; if you trust the address, "
                f"set {files.BYTES_VARIABLE} to a higher limit"
            )


class _Part:
    """The bytes of a file that have come so far, and what the server said of the whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._about = path.with_name(path.name + ".json")
        self.validator: str | None = None
        self.total: int | None = None
        try:
            about = json.loads(self._about.read_text("utf-8"))
            self.validator, self.total = str(about["validator"]), about["total"]
            if not isinstance(self.total, int | None):
                raise ValueError(self.total)
        # No such file, or one that was not written in full: nothing to go on from.
        except (OSError, ValueError, LookupError, TypeError):
            self.discard()

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self, validator: str | None, total: int | None) -> None:
        """Forget what has come so far."""
        self.discard()
        self.path.touch()
        if validator is not None:
            about = {"validator": validator, "total": total}
            self._about.write_text(json.dumps(about), "utf-8")
        self.validator, self.total = validator, total

    def discard(self) -> None:
        # In this order: bytes must never stand beside what was said of others.
        self.path.unlink(missing_ok=True)
        self._about.unlink(missing_ok=True)
        self.validator = self.total = None

    def discard_unless_resumable(self) -> None:
        if self.validator is None or not self.size:
            self.discard()

    def move(self, target: str) -> None:
        os.replace(self.path, target)
        self.discard()


class _Patience:
    """How long to wait for a download: until a total time, or until it is too slow on average."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._max_seconds, self._min_rate = files.max_seconds(), files.min_rate()
        self.received = 0

    def left(self) -> float:
        """Seconds until the download fails if nothing comes; DownloadError if it has failed."""
        elapsed = time.monotonic() - self._began
        if elapsed >= self._max_seconds:
            raise DownloadError(
                f"not complete after {self._max_seconds} s; run the same command again to resume, "
                f"or set {files.SECONDS_VARIABLE} to a higher limit"
            )
        slow = max(files.GRACE_S, self.received / self._min_rate)
        if elapsed >= slow:
            raise DownloadError(
                f"slower than {self._min_rate} bytes/s: {self.received} bytes in {elapsed:.0f} s; "
                f"try again later, or set {files.RATE_VARIABLE} to a lower limit"
            )
        return min(self._max_seconds, slow) - elapsed

    def pause(self, seconds: float) -> None:
        time.sleep(min(seconds, self.left()))


class _Feed:
    """An answer that is read by a thread of its own.

    The timeouts of sockets start anew with every byte, so a server that sends a byte now and then
    (in the header, say) could hold the caller for ever. The caller only waits for a queue, and
    leaves the thread behind: it ends at once within a body, and within a header when the server
    falls silent or exceeds what ``http.client`` accepts.
    """

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._items: queue.Queue[Any] = queue.Queue(_QUEUED_BLOCKS)
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        threading.Thread(
            target=self._run, args=(url, headers), name=THREAD_NAME, daemon=True
        ).start()

    def answer(self, patience: _Patience) -> requests.Response:
        """Wait for status and headers."""
        item = self._next(patience)
        if isinstance(item, _FAILURES):
            reason = _reason(item)
            # A server that answered a moment ago may come back.
            raise _Interrupted(reason) if patience.received else DownloadError(reason)
        answer: requests.Response = item
        return answer

    def block(self, patience: _Patience) -> bytes:
        """Wait for the next bytes of the body; none at its end."""
        item = self._next(patience)
        if isinstance(item, _FAILURES):
            raise _Interrupted(_reason(item))
        block: bytes = item
        patience.received += len(block)
        return block

    def close(self) -> None:
        self._stopped.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread if it waits for bytes
            self._socket.close()
        # Room for the one item that the thread may still want to put before it sees the flag.
        with contextlib.suppress(queue.Empty):
            while True:
                self._items.get_nowait()

    def _next(self, patience: _Patience) -> Any:
        while True:
            try:
                item = self._items.get(timeout=patience.left())
            except queue.Empty:
                continue  # `left` raises
            if isinstance(item, BaseException) and not isinstance(item, _FAILURES):
                raise item
            return item

    def _run(self, url: str, headers: dict[str, str]) -> None:
        try:
            with _Session() as session, session.open(url, headers) as answer:
                with contextlib.suppress(OSError, ValueError):  # a body that is empty has none
                    self._socket = socket.socket(fileno=os.dup(answer.raw.fileno()))
                self._items.put(answer)
                while not self._stopped.is_set():
                    # Not `iter_content`: it would expand what the server has compressed.
                    block = answer.raw.read(_BLOCK_BYTES, decode_content=False)
                    self._items.put(block)
                    if not block:
                        break
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits for the queue
            self._items.put(error)


class _Session(requests.Session):
    """A session that does not read the body of a redirect, which need not end."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        return None

    def open(self, url: str, headers: dict[str, str]) -> requests.Response:
        for _ in range(MAX_REDIRECTS + 1):
            answer = self.get(url, headers=headers, stream=True, timeout=TIMEOUT_S)
            target = super().get_redirect_target(answer)
            if answer.status_code not in _REDIRECTS or target is None:
                return answer
            answer.close()
            url = urljoin(url, target)
        raise requests.TooManyRedirects


def _length(answer: requests.Response) -> int | None:
    """The announced length of a body; None if there is none."""
    text = answer.headers.get("Content-Length")
    if text is None or "Transfer-Encoding" in answer.headers:
        return None
    if not re.fullmatch("[0-9]{1,18}", text):
        raise DownloadError(f"the server states the length {text[:40]!r}")
    return int(text)


def _validator(answer: requests.Response) -> str | None:
    """What tells this version of the file from others (RFC 9110, section 8.8), if anything does."""
    etag = answer.headers.get("ETag", "")
    if etag.startswith('"'):  # not W/"...", which does not vouch for every byte
        return etag
    if etag:
        return None
    try:
        modified = parsedate_to_datetime(answer.headers["Last-Modified"])
        settled = parsedate_to_datetime(answer.headers["Date"]) - modified >= _SETTLED
    except (LookupError, ValueError, TypeError):  # not there, no dates, or of two kinds
        return None
    return answer.headers["Last-Modified"] if settled else None


def _reason(error: Exception) -> str:
    """Few words for what requests tells in many."""
    if isinstance(error, requests.Timeout | urllib3.exceptions.ReadTimeoutError):
        return f"no answer in {TIMEOUT_S:g} s"
    if isinstance(error, requests.TooManyRedirects):
        return f"more than {MAX_REDIRECTS} redirects"
    if isinstance(error, urllib3.exceptions.ProtocolError | http.client.IncompleteRead):
        return "the connection broke off"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    if isinstance(error, requests.RequestException | urllib3.exceptions.HTTPError):
        return f"download failed: {type(error).__name__}"
    return first_line(error)
