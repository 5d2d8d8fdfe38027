"""Downloads from servers that never end, break off, lie, or change the file in between.

Whatever a server does, a download ends in time with the bytes of the file or with an error of one
line, and nothing but a whole file ever stands under its final name.
"""

import contextlib
import hashlib
import os
import random
import re
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from marginbench.data_loaders import DataError, downloads, files
from marginbench.data_loaders.errors import CacheError
from marginbench.data_loaders.files import RemoteFile, gather

pytestmark = pytest.mark.slow
LONG = os.environ.get("MARGINBENCH_FAULTS") == "long"
CONTENT = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
ETAG = '"one"'
#: A request, answered.
Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers each request by the next of the server's answers, the last one for ever."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        site = self.server.site  # type: ignore[attr-defined]
        with site.lock:
            number = len(site.requests)
            site.requests.append(dict(self.headers))
        self.close_connection = True
        with contextlib.suppress(OSError):  # whoever asked has gone
            site.answers[min(number, len(site.answers) - 1)](self)

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def head(self, status: int = 200, **headers: object) -> None:
        self.send_response(status)
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()


class Site:
    """A server on this machine."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/file"
        self.answers: tuple[Answer, ...] = (ranges(),)
        self.requests: list[dict[str, str]] = []
        self.lock = threading.Lock()

    def fetch(self, folder: Path, *answers: Answer, **fields) -> bytes:
        """The bytes that a download gives; DataError if it fails."""
        self.answers = answers or self.answers
        file = RemoteFile("file", (self.url,), **fields)
        path = gather("data", (file,), folder)["file"].path
        data = path.read_bytes()
        path.unlink()
        return data

    def refusal(self, folder: Path, *answers: Answer, **fields) -> str:
        with pytest.raises(DataError) as caught:
            self.fetch(folder, *answers, **fields)
        message = str(caught.value)
        assert message.isprintable()
        assert f"tried {self.url} (" in message
        assert not list(folder.rglob("file"))
        return message

    @property
    def ranges(self) -> list[str | None]:
        return [request.get("Range") for request in self.requests]


@pytest.fixture
def site() -> Iterator[Site]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.site = Site(server.server_port)  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.site  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARGINBENCH_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for variable in (files.BYTES_VARIABLE, files.SECONDS_VARIABLE, files.RATE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(downloads, "PAUSE_S", 0.001)


def kept(folder: Path) -> int:
    """Bytes below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# --- answers ---


def ranges(content: bytes = CONTENT, cut: int | None = None, etag: str = ETAG) -> Answer:
    """A server that can resume; breaks off after `cut` bytes of an answer."""

    def answer(handler: Handler) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        if asked is None or handler.headers.get("If-Range", etag) != etag:
            handler.head(200, Content_Length=len(content), ETag=etag)
            handler.wfile.write(content[:cut])
            return
        start, total = int(asked[1]), len(content)
        if start >= total:
            handler.head(416, Content_Range=f"bytes */{total}", Content_Length=0)
            return
        handler.head(
            206,
            Content_Length=total - start,
            ETag=etag,
            Content_Range=f"bytes {start}-{total - 1}/{total}",
        )
        handler.wfile.write(content[start:] if cut is None else content[start : start + cut])

    return answer


def fixed(status: int, body: bytes = b"", **headers: object) -> Answer:
    def answer(handler: Handler) -> None:
        handler.head(status, **{"Content_Length": len(body)} | headers)
        handler.wfile.write(body)

    return answer


def endless(status: int = 200, chunked: bool = False, **headers: object) -> Answer:
    def answer(handler: Handler) -> None:
        handler.head(status, **headers, **({"Transfer_Encoding": "chunked"} if chunked else {}))
        block = b"10000\r\n" + bytes(1 << 16) + b"\r\n" if chunked else bytes(1 << 16)
        while True:
            handler.wfile.write(block)

    return answer


def trickle(before: bytes, drop: bytes = b"x" * 500) -> Answer:
    """Sends some bytes every 20 ms for ever, after these."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(before)
        while True:
            handler.wfile.write(drop)
            time.sleep(0.02)

    return answer


# --- size and time ---

ENDLESS = [
    endless(),
    endless(chunked=True),
    endless(Content_Encoding="gzip"),
    endless(Content_Length="9" * 15),
]


@pytest.mark.parametrize("answer", ENDLESS, ids=["plain", "chunked", "encoded", "announced"])
def test_an_endless_body_stops_at_the_limit(site, tmp_path, monkeypatch, answer):
    sizes = []
    discard = downloads.Downloader._discard

    def watched(downloader: downloads.Downloader) -> None:
        sizes.append(downloader._size)
        discard(downloader)

    monkeypatch.setattr(downloads.Downloader, "_discard", watched)
    message = site.refusal(tmp_path, answer, max_bytes=1_000_000)
    assert "(larger than the limit of 1000000 bytes; if you trust the address, set" in message
    assert max(sizes) <= 1_000_000
    assert list(tmp_path.iterdir()) == []
    assert len(site.requests) == 1


@pytest.mark.parametrize("status", [404, 500])
def test_the_body_of_another_status_is_not_read(site, tmp_path, monkeypatch, status):
    monkeypatch.setattr(downloads, "ATTEMPTS", 1)
    assert f"HTTP status {status}" in site.refusal(tmp_path, endless(status))


def test_the_limit_is_exact_and_the_user_can_set_it(site, tmp_path, monkeypatch):
    assert site.fetch(tmp_path, max_bytes=len(CONTENT)) == CONTENT
    less = len(CONTENT) - 1
    assert f"limit of {less} bytes" in site.refusal(tmp_path, max_bytes=less)
    monkeypatch.setenv(files.BYTES_VARIABLE, str(len(CONTENT)))
    assert site.fetch(tmp_path, max_bytes=1) == CONTENT


SLOW = {
    "body": trickle(b"HTTP/1.1 200 OK\r\n\r\n"),
    "known length": trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n"),
    "chunk": trickle(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_a_server_that_is_too_slow_is_left(site, tmp_path, monkeypatch, answer):
    monkeypatch.setattr(files, "GRACE_S", 0.3)
    monkeypatch.setenv(files.RATE_VARIABLE, "1000000")
    began = time.monotonic()
    message = site.refusal(tmp_path, answer)
    assert 0.3 <= time.monotonic() - began < 10
    assert "slower than 1000000 bytes/s: " in message
    assert "set MARGINBENCH_MIN_DOWNLOAD_RATE to a lower limit" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_the_total_time_has_a_limit(site, tmp_path, monkeypatch, answer):
    monkeypatch.setattr(files, "DEFAULT_MAX_SECONDS", 0.3)
    began = time.monotonic()
    message = site.refusal(tmp_path, answer)
    assert 0.3 <= time.monotonic() - began < 10
    assert "not complete after 0.3 s; " in message
    assert "MARGINBENCH_MAX_DOWNLOAD_SECONDS" in message


@pytest.mark.parametrize("variable", [files.SECONDS_VARIABLE, files.RATE_VARIABLE])
def test_a_limit_that_is_no_number_is_named(site, tmp_path, monkeypatch, variable):
    monkeypatch.setenv(variable, "soon")
    with pytest.raises(DataError, match=f"{variable} is 'soon'; set it to a positive whole"):
        site.fetch(tmp_path)


def test_the_user_can_set_the_total_time(site, tmp_path, monkeypatch):
    monkeypatch.setenv(files.SECONDS_VARIABLE, "1")
    assert "not complete after 1 s; " in site.refusal(tmp_path, SLOW["body"])


def test_a_slow_download_that_is_left_can_be_resumed(site, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "GRACE_S", 0.3)
    head = f"HTTP/1.1 200 OK\r\nETag: {ETAG}\r\nContent-Length: {len(CONTENT)}\r\n\r\n"
    first = 1 << 14

    def stalling(handler: Handler) -> None:
        handler.wfile.write(head.encode() + CONTENT[:first])
        time.sleep(2)

    monkeypatch.setenv(files.RATE_VARIABLE, str(first * 4))
    assert "slower than" in site.refusal(tmp_path, stalling)
    assert site.fetch(tmp_path, stalling, ranges()) == CONTENT
    assert site.ranges == [None, f"bytes={first}-"]


# --- resuming ---


@pytest.mark.parametrize("seed", range(200 if LONG else 10))
def test_a_download_that_is_cut_anywhere_has_the_same_bytes(site, tmp_path, seed):
    rng = random.Random(seed)
    cuts = [rng.randrange(1, len(CONTENT) // 4) for _ in range(rng.randint(1, 12))]
    # Some cuts fail the call: the next one goes on.
    answers = [ranges(cut=cut) for cut in cuts] + [ranges()]
    assert site.fetch(tmp_path, *answers, sha256=SHA256) == CONTENT
    starts = [0 if asked is None else int(asked[6:-1]) for asked in site.ranges]
    assert starts == sorted(starts)
    assert all(request["If-Range"] == ETAG for request in site.requests[1:])
    assert all(request["Accept-Encoding"] == "identity" for request in site.requests)
    assert kept(tmp_path) == 0


def test_the_next_call_goes_on_where_the_last_one_failed(site, tmp_path):
    message = site.refusal(tmp_path, ranges(cut=100_000), fixed(503))
    assert "100000 of 300000 bytes came; run the same command again to resume" in message
    assert len(site.requests) == 1 + downloads.ATTEMPTS - 1
    site.requests.clear()
    assert site.fetch(tmp_path, ranges()) == CONTENT
    assert site.ranges == ["bytes=100000-"]


def test_whole_files_and_unfinished_ones_of_one_dataset_are_kept(site, tmp_path):
    files = tuple(RemoteFile(name, (site.url + name,)) for name in "ab")
    site.answers = (ranges(), ranges(cut=1000), fixed(404))
    with pytest.raises(DataError):
        gather("data", files, tmp_path)
    site.requests.clear()
    site.answers = (ranges(),)
    found = gather("data", files, tmp_path)
    assert [found[name].path.read_bytes() for name in "ab"] == [CONTENT, CONTENT]
    assert site.ranges == ["bytes=1000-"]


OTHER = random.Random(2).randbytes(len(CONTENT))
AGAIN = {
    "ignores ranges": fixed(200, CONTENT, ETag=ETAG),
    "changed": ranges(OTHER, etag='"two"'),
    "is shorter": fixed(416, Content_Range="bytes */5"),
    "resumes elsewhere": fixed(206, CONTENT[5:], ETag=ETAG, Content_Range="bytes 5-299999/300000"),
    "other length": fixed(206, b"x", ETag=ETAG, Content_Range="bytes 1000-1000/1001"),
    "other file": fixed(206, OTHER[1000:], ETag='"two"', Content_Range="bytes 1000-299999/300000"),
    "no range": fixed(206, CONTENT[1000:], ETag=ETAG),
    "unknown length": fixed(206, CONTENT[1000:], ETag=ETAG, Content_Range="bytes 1000-299999/*"),
    "parts": fixed(206, b"--x", Content_Type="multipart/byteranges; boundary=x"),
    "no number": fixed(206, b"x", ETag=ETAG, Content_Range=f"bytes 1000-{'9' * 5000}/x"),
}


@pytest.mark.parametrize("second", AGAIN.values(), ids=AGAIN)
def test_what_cannot_be_resumed_begins_again(site, tmp_path, second):
    now = OTHER if second is AGAIN["changed"] else CONTENT
    last = ranges(OTHER, etag='"two"') if second is AGAIN["changed"] else ranges()
    assert site.fetch(tmp_path, ranges(cut=1000), second, last) == now
    assert site.ranges[:2] == [None, "bytes=1000-"]
    assert site.ranges[2:] in ([], [None])


def test_a_range_may_be_answered_in_pieces(site, tmp_path):
    def piece(handler: Handler) -> None:
        start = int(handler.headers["Range"][6:-1])
        data = CONTENT[start : start + 50_000]
        content_range = f"bytes {start}-{start + len(data) - 1}/{len(CONTENT)}"
        handler.head(206, Content_Length=len(data), Content_Range=content_range)
        handler.wfile.write(data)

    assert site.fetch(tmp_path, ranges(cut=1000), piece) == CONTENT
    assert len(site.requests) == 7


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"one"'}, {"ETag": f'"{"x" * 200}"'}])
def test_only_a_file_that_can_be_recognised_is_resumed(site, tmp_path, headers):
    first = fixed(200, CONTENT[:1000], Content_Length=len(CONTENT), **headers)
    assert site.fetch(tmp_path, first, ranges()) == CONTENT
    assert site.ranges == [None, None]


# --- lengths, hashes, statuses, redirects ---


def test_a_short_body_is_never_taken_for_the_file(site, tmp_path):
    short = fixed(200, CONTENT[:1000], Content_Length=1001)
    assert "the connection broke off, in 4 attempts; 1000 of 1001" in site.refusal(tmp_path, short)
    assert list(tmp_path.iterdir()) == []


def test_a_short_chunked_body_is_never_taken_for_the_file(site, tmp_path):
    def answer(handler: Handler) -> None:
        handler.head(200, Transfer_Encoding="chunked")
        handler.wfile.write(b"5\r\nhello\r\n")

    message = site.refusal(tmp_path, answer)
    assert "the connection broke off, in 4 attempts; 0 of an unknown number" in message


def test_a_wrong_hash_leaves_nothing(site, tmp_path):
    message = site.refusal(tmp_path, ranges(cut=1000), ranges(OTHER), sha256=SHA256)
    assert "(SHA-256 differs from the known one)" in message
    assert list(tmp_path.iterdir()) == []
    # What was resumed wrongly does not stand in the way.
    assert site.fetch(tmp_path, ranges(), sha256=SHA256) == CONTENT


@pytest.mark.parametrize("status", [201, 204, 206, 304, 400, 401, 403, 404, 410, 416, 501])
def test_a_final_status_is_not_asked_for_again(site, tmp_path, status):
    answer = fixed(status, Content_Range="bytes 0-0/1")
    assert f"(HTTP status {status})" in site.refusal(tmp_path, answer)
    assert len(site.requests) == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_passing_status_is_asked_for_again(site, tmp_path, status):
    assert site.fetch(tmp_path, fixed(status), fixed(status), ranges()) == CONTENT
    site.requests.clear()
    assert f"HTTP status {status}, in 4 attempts" in site.refusal(tmp_path, fixed(status))
    assert len(site.requests) == 4


def test_redirects_are_followed_but_not_for_ever(site, tmp_path):
    assert site.fetch(tmp_path, fixed(302, Location="/b?c=d%20e"), ranges()) == CONTENT
    site.requests.clear()
    message = site.refusal(tmp_path, fixed(302, Location="/file"))
    assert "(more than 10 redirects)" in message
    assert len(site.requests) == 11


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "x://["])
def test_a_redirect_leads_to_no_other_protocol(site, tmp_path, target):
    assert len(site.requests) == 0
    site.refusal(tmp_path, fixed(302, Location=target))
    assert len(site.requests) == 1


def test_on_a_full_disk_nothing_is_kept(site, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # larger files: an OSError
    try:
        with pytest.raises(CacheError, match=r"cannot write 'file' .* \(File too large\)"):
            site.fetch(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", range(400 if LONG else 25))
def test_any_row_of_faults_ends_with_the_file_or_an_error(site, tmp_path, seed):
    rng = random.Random(1000 + seed)
    faults = [
        *AGAIN.values(),
        *(ranges(cut=rng.randrange(len(CONTENT))) for _ in range(10)),
        *(fixed(status) for status in (301, 302, 404, 429, 500, 503)),
        fixed(302, Location="/other"),
        endless(chunked=True),
    ]
    for _ in range(10):
        row = rng.choices(faults, k=rng.randint(0, 6))
        site.requests.clear()
        site.answers = (*row, ranges())
        try:
            got = site.fetch(tmp_path, max_bytes=len(CONTENT), sha256=SHA256)
        except DataError:
            got = None
        assert got in (None, CONTENT)
        assert not list(tmp_path.rglob("file"))
        assert kept(tmp_path) <= len(CONTENT) + 200
    assert site.fetch(tmp_path, ranges(), sha256=SHA256) == CONTENT


SCRIPT = """
    import sys
    from functools import partial
    from marginbench.data_loaders import Source, load
    from marginbench.data_loaders.files import RemoteFile
    from marginbench.data_loaders.libsvm import read_single

    it = Source(
        name="it", summary="", format="", split="", licence="", citation="", default_gamma=1.0,
        default_C=1.0, read=partial(read_single, name="f", width=2, classes=(-1, 1), step=3),
        files=(RemoteFile("f", (sys.argv[1],)),),
    )
    print(load(it).n_train)
"""


def test_a_killed_process_goes_on_when_it_is_started_again(site, tmp_path, monkeypatch):
    text = b"1 1:1\n-1 2:1\n1 1:2\n-1 1:3\n" * 20_000
    half = len(text) // 2 & ~0xFFF
    reached = threading.Event()

    def stalling(handler: Handler) -> None:
        handler.head(200, Content_Length=len(text), ETag=ETAG)
        handler.wfile.write(text[:half])
        reached.set()
        time.sleep(20)

    site.answers = (stalling, ranges(text))
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path))
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), site.url]
    process = subprocess.Popen(command)
    try:
        assert reached.wait(60)
        deadline = time.monotonic() + 20
        while kept(tmp_path) < half and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == "53334\n"
    assert site.ranges == [None, f"bytes={half}-"]
    names = sorted(path.name for path in (tmp_path / "datasets").iterdir())
    assert [name for name in names if name != ".it.verified"] == [".it.lock", "it.parquet"]
