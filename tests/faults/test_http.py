"""Downloads from servers that break off, lie, or have nothing.

A download ends with the bytes of the file or with an error of one line, and nothing but a whole
file ever stands under its final name.
"""

import contextlib
import itertools
import random
import resource
from http.server import BaseHTTPRequestHandler

import pytest

from marginbench.data_loaders import files
from marginbench.data_loaders.errors import CacheError
from marginbench.data_loaders.files import RemoteFile, gather

from ..data_loaders.conftest import refused, serving

CONTENT = random.Random(1).randbytes(300_000)


class Site:
    """A server on this machine: it answers each request by the next answer, the last for ever."""

    def __init__(self, folder):
        self.folder, self.url, self.answers, self.requests = folder, "", [], []

    def fetch(self, *answers, **fields):
        """The bytes that a download gives; DataError if it fails."""
        self.answers, self.requests = list(answers), []
        file = RemoteFile("file", (self.url,), **fields)
        path = gather("data", (file,), self.folder)["file"].path
        data = path.read_bytes()
        path.unlink()
        return data

    def refusal(self, *answers, **fields):
        message = refused(self.fetch, *answers, **fields)
        assert f"tried {self.url} (" in message
        assert list(self.folder.iterdir()) == []
        return message


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site = self.server.site
        site.requests.append(dict(self.headers))
        self.close_connection = True
        status, body, headers = site.answers.pop(0) if len(site.answers) > 1 else site.answers[0]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        with contextlib.suppress(OSError):  # whoever asked has gone
            for part in body:
                self.wfile.write(part)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.delenv("MARGINBENCH_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    site = Site(tmp_path)
    with serving(Handler, site) as address:
        site.url = f"{address}/file"
        yield site


def answer(status=200, *body, **headers):
    """A status, the parts of a body, and headers beside those that close the connection."""
    return status, body, {"Connection": "close", "Content_Length": len(b"".join(body))} | headers


def redirect(target):
    return answer(302, Location=target)


WHOLE = answer(200, CONTENT)
ENDLESS = (200, itertools.repeat(bytes(1 << 16)), {})
CHUNKED = (200, [b"5\r\nhello\r\n"], {"Transfer_Encoding": "chunked"})


@pytest.mark.parametrize(
    ("given", "reason", "n_requests"),
    [
        (answer(503), "HTTP status 503)", 1),
        (answer(200, CONTENT[:1000], Content_Length=300_000), "failed: ChunkedEncodingError)", 1),
        (CHUNKED, "download failed: ChunkedEncodingError)", 1),
        (ENDLESS, "larger than the limit of 10000000 bytes; if you trust the address, set ", 1),
        # Redirects are followed, but not for ever, and to no other protocol.
        (redirect("/file"), "download failed: TooManyRedirects)", 31),
        *((redirect(to), "", 1) for to in ("file:///etc/passwd", "ftp://127.0.0.1/x", "x://[")),
    ],
)
def test_what_comes_instead_of_the_file_is_told_and_not_kept(site, given, reason, n_requests):
    assert reason in site.refusal(given, max_bytes=10_000_000)
    assert len(site.requests) == n_requests
    assert site.fetch(redirect("/b?c=d%20e"), WHOLE) == CONTENT
    assert all(request["Accept-Encoding"] == "identity" for request in site.requests)


def test_the_limit_is_exact_and_that_of_the_user_if_there_is_one(site, monkeypatch):
    assert site.fetch(WHOLE, max_bytes=len(CONTENT)) == CONTENT
    monkeypatch.setenv(files.BYTES_VARIABLE, str(len(CONTENT) - 1))
    assert f"limit of {len(CONTENT) - 1} bytes" in site.refusal(WHOLE)


def test_on_a_full_disk_nothing_is_kept(site):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # larger files: an OSError
    try:
        with pytest.raises(CacheError, match=r"cannot write 'file' .* \(File too large\)"):
            site.fetch(WHOLE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(site.folder.iterdir()) == []
