"""Fixtures: an empty cache, small datasets of one's own, a web server on this machine."""

import contextlib
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from marginbench.data_loaders import DataError, Source, find
from marginbench.data_loaders.files import RemoteFile
from marginbench.data_loaders.libsvm import read_pair

TRAIN = b"+1 1:0.5 3:-2\n-1 2:1e-3\n+1\n-1 1:7 2:0 4:1\n"
TEST = b"-1 3:1\n+1 1:2 2:3\n"


def refused(call, *given, **named):
    """The one line with which a call refuses what it is given."""
    with pytest.raises(DataError) as caught:
        call(*given, **named)
    message = str(caught.value)
    assert message.isprintable()
    return message


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no mirror, for every test; the folder of the cached files."""
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MARGINBENCH_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def mirror(tmp_path):
    """A folder laid out as a mirror, with the two files of the dataset `tiny`."""
    folder = tmp_path / "mirror" / "tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.trn").write_bytes(TRAIN)
    (folder / "tiny.tst").write_bytes(TEST)
    return folder.parent


@pytest.fixture
def tiny():
    """Make a source of two LIBSVM files, with 4 features and classes -1 and +1."""

    def make(url="http://127.0.0.1:9", sha256=None, **kwargs):
        defaults = {
            "name": "tiny",
            "summary": "a test",
            "format": "LIBSVM text",
            "split": "as written",
            "read": partial(read_pair, train="tiny.trn", test="tiny.tst", width=4, classes=(-1, 1)),
            "licence": "none",
            "citation": "@misc{tiny}",
            "files": (
                RemoteFile("tiny.trn", (f"{url}/tiny/tiny.trn",), sha256),
                RemoteFile("tiny.tst", (f"{url}/tiny/tiny.tst",)),
            ),
        }
        return Source(**defaults | kwargs)

    return make


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Put files into a mirror in place of those of a registered dataset: its source."""
    mirror = tmp_path / "published"
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))

    def put(name, *contents):
        source = find(name)
        folder = mirror / (source.mirror_folder or name)
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in zip(source.files, contents, strict=True):
            (folder / file.name).write_bytes(content)
        files = tuple(replace(file, sha256=None) for file in source.files)
        return replace(source, files=files, fingerprint=None)

    return put


@contextlib.contextmanager
def serving(handler, site=None):
    """A server on this machine whose requests are the affair of ``server.site``: its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.site = site
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def asked():
    """The paths that the server was asked for."""
    return []


@pytest.fixture
def server(mirror, asked):
    """The address of a web server that serves the mirror."""

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, *args):
            asked.append(self.path)

        def log_error(self, *args):
            """Say nothing."""

    with serving(partial(Handler, directory=str(mirror))) as address:
        yield address
