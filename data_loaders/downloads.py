"""Downloads that end, and that go on where they were interrupted.

pooch names the file, checks its hash and puts it in its place; `Downloader` is what it calls to
get the bytes. Unlike pooch's own, it bounds size, time and rate, resumes with HTTP range requests
(RFC 9110, section 14), and never takes a short answer for a whole file.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

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
#: Small, so that the limits are checked often and little is lost when killed.
_BLOCK_BYTES = 1 << 12
#: Too early, too often, or the server's own trouble: worth another attempt.
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})")
#: Longer ones do not fit into the name of a file.
_MAX_ETAG = 100
#: What requests, and what lies below it, raise for what a server or the network does.
_FAILURES = (OSError, ValueError, urllib3.exceptions.HTTPError, http.client.HTTPException)


class DownloadError(OSError):
    """A download that failed for good; the message says why in a few words."""


class _Interrupted(Exception):
    """An attempt that failed, after which another one may succeed."""


class Downloader:
    """The bytes of one address, for ``pooch.retrieve``.

    Unfinished bytes stand in `folder`, which no other address uses; the name of their file holds
    the ``ETag`` by which the server recognises the rest.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._part = next(folder.glob("*.part"), self._named(""))
        self._total: int | None = None
        self._began = time.monotonic()
        self._received = 0

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Download the file to `output_file`, or what is missing of it.

        Raises
        ------
        DownloadError
            If the file cannot be had within the limits. What came so far is kept if the server
            says how to recognise the same file, and is deleted if not.
        """
        try:
            self._complete(url)
            os.replace(self._part, output_file)
        except OSError as error:
            # Of the disk, not of the server: it may be full, so nothing is kept on it.
            if not isinstance(error, DownloadError):
                self._discard()
            raise
        finally:
            if not self._etag or not self._size:
                self._discard()

    def _complete(self, url: str) -> None:
        failures, most = 0, self._size
        while True:
            try:
                return self._attempt(url)
            except _Interrupted as error:
                failures = 1 if self._size > most else failures + 1
                most = max(most, self._size)
                if failures >= ATTEMPTS:
                    total = "an unknown number of" if self._total is None else self._total
                    again = "; run the same command again to resume" if self._etag and most else ""
                    raise DownloadError(
                        f"download failed: {error}, in {ATTEMPTS} attempts; {self._size} of "
                        f"{total} bytes came{again}"
                    ) from None
            self._check_time()
            time.sleep(PAUSE_S * 2 ** (failures - 1))

    def _attempt(self, url: str) -> None:
        offset = self._size if self._etag else 0
        # Ranges count the bytes that are sent: those of the file itself, not compressed once more.
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers |= {"Range": f"bytes={offset}-", "If-Range": self._etag}
        with requests.Session() as session:
            session.max_redirects = MAX_REDIRECTS
            # A server that answered a moment ago may come back.
            with _failing(_Interrupted if self._received else DownloadError):
                answer = session.get(url, headers=headers, stream=True, timeout=TIMEOUT_S)
            with answer:
                self._accept(answer, offset)
                with self._part.open("ab") as sink:
                    while block := self._block(answer):
                        self._check_size(sink.tell() + len(block))
                        sink.write(block)
                        sink.flush()  # a killed process has it
        if self._total is not None and self._size != self._total:
            raise _Interrupted(f"the server sent {self._size} of {self._total} bytes")

    def _accept(self, answer: requests.Response, offset: int) -> None:
        """Prepare the unfinished file for the body of an answer, or refuse it."""
        status, etag = answer.status_code, answer.headers.get("ETag", "")
        if status in _TRANSIENT:
            raise _Interrupted(f"HTTP status {status}")
        if status == 200:  # also the answer to a range request if the file has changed
            self._total = answer.raw.length_remaining
            self._check_size(self._total or 0)
            self._discard()
            # Not W/"...", which does not vouch for every byte.
            strong = etag.startswith('"') and len(etag) <= _MAX_ETAG
            self._part = self._named(etag if strong else "")
        elif status == 206 and offset:
            found = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            start, total = map(int, found.groups()) if found else (-1, -1)
            known = self._total in (None, total) and etag in ("", self._etag)
            if start != offset or not known:
                self._discard()
                raise _Interrupted("the server resumed at another place or with another file")
            self._total = total
            self._check_size(total)
        elif status == 416 and offset:
            self._discard()
            raise _Interrupted("the server has less than was downloaded before")
        else:
            raise DownloadError(f"HTTP status {status}")

    def _block(self, answer: requests.Response) -> bytes:
        """The next bytes of the body; none at its end."""
        self._check_time()
        with _failing(_Interrupted):
            # Not `iter_content`: it would expand what the server has compressed.
            block: bytes = answer.raw.read(_BLOCK_BYTES, decode_content=False)
        self._received += len(block)
        return block

    def _check_time(self) -> None:
        elapsed = time.monotonic() - self._began
        most = files.limit(files.SECONDS_VARIABLE, files.DEFAULT_MAX_SECONDS)
        rate = files.limit(files.RATE_VARIABLE, files.DEFAULT_MIN_RATE)
        if elapsed >= most:
            raise DownloadError(
                f"not complete after {most} s; run the same command again to resume, "
                f"or set {files.SECONDS_VARIABLE} to a higher limit"
            )
        if elapsed >= max(files.GRACE_S, self._received / rate):
            raise DownloadError(
                f"slower than {rate} bytes/s: {self._received} bytes in {elapsed:.0f} s; "
                f"try again later, or set {files.RATE_VARIABLE} to a lower limit"
            )

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            self._discard()
            raise DownloadError(
                f"larger than the limit of {self._max_bytes} bytes; if you trust the address, "
                f"set {files.BYTES_VARIABLE} to a higher limit"
            )

    def _named(self, etag: str) -> Path:
        return self._folder / f"{quote(etag, safe='')}.part"

    @property
    def _etag(self) -> str:
        return unquote(self._part.name.removesuffix(".part"))

    @property
    def _size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _discard(self) -> None:
        self._part.unlink(missing_ok=True)


@contextlib.contextmanager
def _failing(kind: type[Exception]) -> Iterator[None]:
    """Raise `kind` for what a server or the network does, for nothing that a disk does."""
    try:
        yield
    except _FAILURES as error:
        raise kind(_reason(error)) from None


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
