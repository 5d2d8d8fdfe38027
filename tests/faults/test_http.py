"""Downloads from servers that break off, lie, or have nothing.

A download ends with the bytes of the file or with an error of one line, and nothing but a whole
file ever stands under its final name.
"""

import contextlib
import random
import resource
from http.server import BaseHTTPRequestHandler

import pytest

from marginbench.data_loaders import files
from marginbench.data_loaders.errors import CacheError
from marginbench.data_loaders.files import RemoteFile, gather

from ..data_loaders.conftest import refused, serving

CONTENT = random.Random(1).randbytes(300_000)


class Handler(BaseHTTPRequestHandler):
    """Answers each request by the next of the site's answers, the last one for ever."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site = self.server.site
        number = len(site.requests)
        site.requests.append(dict(self.headers))
        self.close_connection = True
        with contextlib.suppress(OSError):  # whoever asked has gone
            site.answers[min(number, len(site.answers) - 1)](self)

    def log_message(self, *args):
        """Say nothing."""


def fixed(status=200, body=b"", **headers):
    def answer(handler):
        handler.send_response(status)
        for name, value in ({"Connection": "close", "Content_Length": len(body)} | headers).items():
            if value is not None:
                handler.send_header(name.replace("_", "-"), str(value))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


WHOLE = fixed(200, CONTENT)


class Site:
    """A server on this machine."""

    def __init__(self):
        self.url, self.answers, self.requests = "", (WHOLE,), []

    def fetch(self, folder, *answers, **fields):
        """The bytes that a download gives; DataError if it fails."""
        self.answers = answers or self.answers
        path = gather("data", (RemoteFile("file", (self.url,), **fields),), folder)["file"].path
        data = path.read_bytes()
        path.unlink()
        return data

    def refusal(self, folder, *answers, **fields):
        message = refused(self.fetch, folder, *answers, **fields)
        assert f"tried {self.url} (" in message
        assert list(folder.iterdir()) == []
        return message


@pytest.fixture
def site(monkeypatch):
    monkeypatch.delenv("MARGINBENCH_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    site = Site()
    with serving(Handler, site) as address:
        site.url = f"{address}/file"
        yield site


def test_a_status_and_a_connection_that_breaks_off_are_told(site, tmp_path):
    assert "(HTTP status 503)" in site.refusal(tmp_path, fixed(503))
    assert len(site.requests) == 1
    chunked = fixed(200, b"5\r\nhello\r\n", Transfer_Encoding="chunked", Content_Length=None)
    short = fixed(200, CONTENT[:1000], Content_Length=len(CONTENT))
    for broken in (short, chunked):
        assert "(download failed: ChunkedEncodingError)" in site.refusal(tmp_path, broken)
    assert site.fetch(tmp_path, WHOLE) == CONTENT
    assert all(request["Accept-Encoding"] == "identity" for request in site.requests)


def test_an_endless_body_stops_at_the_limit(site, tmp_path, monkeypatch):
    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(1 << 16))

    message = site.refusal(tmp_path, endless, max_bytes=10_000_000)
    assert "(larger than the limit of 10000000 bytes; if you trust the address, set" in message
    assert len(site.requests) == 1
    assert site.fetch(tmp_path, WHOLE, max_bytes=len(CONTENT)) == CONTENT
    monkeypatch.setenv(files.BYTES_VARIABLE, str(len(CONTENT) - 1))
    assert f"limit of {len(CONTENT) - 1} bytes" in site.refusal(tmp_path, WHOLE)


def test_redirects_are_followed_but_not_for_ever_and_to_no_other_protocol(site, tmp_path):
    assert site.fetch(tmp_path, fixed(302, Location="/b?c=d%20e"), WHOLE) == CONTENT
    ring = fixed(302, Location="/file")
    assert "(download failed: TooManyRedirects)" in site.refusal(tmp_path, ring)
    for target in ("file:///etc/passwd", "ftp://127.0.0.1/x", "x://["):
        site.requests.clear()
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
