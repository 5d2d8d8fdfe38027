"""Fixtures: an empty cache, small datasets of one's own, a web server on this machine."""

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from marginbench.data_loaders import Source, find, load
from marginbench.data_loaders.files import RemoteFile
from marginbench.data_loaders.libsvm import read_pair

REAL_MIRROR = os.environ.get("MARGINBENCH_MIRROR", "")

TRAIN = b"+1 1:0.5 3:-2\n-1 2:1e-3\n+1\n-1 1:7 2:0 4:1\n"
TEST = b"-1 3:1\n+1 1:2 2:3\n"


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
            "default_gamma": 1.0,
            "default_C": 1.0,
            "files": (
                RemoteFile("tiny.trn", (f"{url}/tiny/tiny.trn",), sha256),
                RemoteFile("tiny.tst", (f"{url}/tiny/tiny.tst",)),
            ),
        }
        return Source(**{**defaults, **kwargs})

    return make


@pytest.fixture
def real_data(monkeypatch):
    """Load a dataset from the mirror that the tests were started with, if that has its files."""

    def load_real(name, params=None):
        source = find(name)
        folder = Path(REAL_MIRROR) / (source.mirror_folder or source.name)
        for file in source.files:
            places = [folder / file.name, folder / (file.archive or file.name)]
            if not any(path.is_file() for path in [*places, Path(file.installed or file.name)]):
                pytest.skip(
                    f"MARGINBENCH_MIRROR is not a folder with {folder.name}/{file.name}: "
                    "no real data here"
                )
        monkeypatch.setenv("MARGINBENCH_MIRROR", REAL_MIRROR)
        return load(name, params)

    return load_real


@pytest.fixture
def server(mirror):
    """The address of a web server that serves the mirror."""
    yield from serve(partial(Quiet, directory=str(mirror)))


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder without a log."""

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def serving():
    """Start a server with a handler of one's own; returns its address."""
    running = []

    def start(handler):
        running.append(serve(handler))
        return next(running[-1])

    yield start
    for server in running:
        server.close()


def serve(handler):
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=partial(httpd.serve_forever, poll_interval=0.01))
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}"
        finally:
            httpd.shutdown()
            thread.join()
