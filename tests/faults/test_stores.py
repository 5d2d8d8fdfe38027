"""Studies on S3, as moto's server plays it, with a proxy before it that fails as servers do.

Whatever happens on the way, the records are those of a local run. The long form
(MARGINBENCH_FAULTS=long) has more sequences of faults.
"""

import contextlib
import http.client
import os
import threading
import time
from http.server import BaseHTTPRequestHandler

import pytest

from marginbench.harness.errors import UserError
from marginbench.harness.execution.runner import run_study
from marginbench.harness.results.stores import (
    RETRY_VARIABLE,
    StoreError,
    StoreUrl,
    local_folder,
    synced,
)
from marginbench.solvers.numeric.compiling import cache_folder

from ..data_loaders.conftest import serving
from ..harness.answers import InProcess
from ..harness.conftest import board_study
from .conftest import LONG, numbers

WHY = "of the extra 'cloud' and the group 'dev'"
boto3 = pytest.importorskip("boto3", reason=WHY)
pytest.importorskip("obstore", reason=WHY)
moto = pytest.importorskip("moto.server", reason="moto[s3] plays S3, from the group 'dev'")

pytestmark = pytest.mark.slow
BUCKET = "studies"


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on to a server, or fails in a way that the test chooses."""

    protocol_version = "HTTP/1.1"

    def handle_any(self):
        site = self.server.site
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with site.lock:
            site.requests.append((self.command, self.path))
            fault = site.choose(len(site.requests), self.command, self.path)
        with contextlib.suppress(OSError):
            if fault == "503":
                self._answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
                return
            if fault == "slow":
                time.sleep(0.5)
            status, headers, content = self._passed_on(site.port, body)
            self.close_connection = fault in ("lost", "cut")
            if fault != "lost":
                sent = content[: len(content) // 2] if fault == "cut" else content
                self._answer(status, {"Content-Length": str(len(content))} | headers, sent)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

    def _passed_on(self, port, body):
        server = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        server.request(self.command, self.path, body, dict(self.headers))
        found = server.getresponse()
        content = found.read()
        kept = {k: v for k, v in found.headers.items() if k.lower() not in _OF_A_CONNECTION}
        if self.command == "HEAD":
            kept["Content-Length"] = found.headers.get("Content-Length", "0")
        server.close()
        return found.status, kept, content

    def _answer(self, status, headers, content):
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        """Say nothing."""


_OF_A_CONNECTION = {"connection", "content-length", "transfer-encoding", "server", "date"}


class Site:
    """S3 on this machine, behind the proxy."""

    def __init__(self, port):
        self.port, self.requests, self.lock = port, [], threading.Lock()
        self.choose = in_turn({}, 1)

    def client(self):
        """S3 past the proxy."""
        return boto3.client("s3", endpoint_url=f"http://127.0.0.1:{self.port}")

    def names(self, folder):
        found = self.client().list_objects_v2(Bucket=BUCKET, Prefix=f"{folder}/")
        return [item["Key"].partition("/")[2] for item in found.get("Contents", [])]


@pytest.fixture(scope="module")
def port():
    """That of moto's server."""
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield server.get_host_and_port()[1]
    server.stop()


@pytest.fixture(autouse=True)
def own_settings(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
        "NUMBA_CACHE_DIR": str(cache_folder().parent),
        "MARGINBENCH_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def site(port, own_settings, monkeypatch):
    site = Site(port)
    with serving(Proxy, site) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        site.client().create_bucket(Bucket=BUCKET)
        yield site


@pytest.fixture
def url(request):
    """A path of this test alone."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return StoreUrl.parsed(f"s3://{BUCKET}/{name}")


@pytest.fixture(scope="module")
def board():
    return board_study(seeds=4, solver=[{"name": "Perceptron"}])


@pytest.fixture(scope="module")
def alone(board, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "results"
    run_study(board, folder, executor=InProcess())
    return numbers(folder)


def run(study, url):
    """Run a study on a store; the mirror."""
    with synced(str(url), lambda line: None) as (folder, exchange):
        summary = run_study(study, folder, executor=InProcess(), exchange=exchange)
        assert sum(summary.statuses.values()) == 4
        return folder


def files(folder):
    """What of a mirror is in the store."""
    patterns = ("journal/*.jsonl", "sources/*.json", "study.json")
    paths = [path for pattern in patterns for path in folder.glob(pattern)]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def in_turn(faults, of):
    """Each fault now and then."""
    return lambda count, method, path: faults.get(count % of, "")


@pytest.mark.parametrize(
    ("faults", "of"),
    [
        ({3: "503", 7: "cut", 11: "lost", 15: "slow"}, 17),
        *([({0: "503"}, 3), ({0: "cut"}, 4), ({0: "lost"}, 5)] if LONG else []),
    ],
)
def test_a_server_that_fails_now_and_then_changes_nothing(
    site, url, board, alone, faults, of, tmp_path, monkeypatch
):
    site.choose = in_turn(faults, of)
    mirror = run(board, url)
    assert numbers(mirror) == alone
    # As if on another machine.
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "elsewhere"))
    again = local_folder(str(url))
    assert again != mirror
    assert files(again) == files(mirror)
    assert {name.partition("/")[0] for name in site.names(url.path)} == {
        "journal", "sources", "study.json"
    }  # fmt: skip


def test_a_server_that_is_gone_ends_no_study_and_the_next_command_pushes(
    site, url, board, alone, monkeypatch
):
    monkeypatch.setenv(RETRY_VARIABLE, "0.5")
    is_gone = threading.Event()

    def from_the_first_line_on(number, method, path):
        if method == "PUT" and "/journal/" in path:
            is_gone.set()
        return "503" if is_gone.is_set() else ""

    site.choose = from_the_first_line_on
    with pytest.raises(StoreError) as caught:
        run(board, url)
    message = str(caught.value)
    assert message.startswith(f"{url}: cannot be read or written (")
    assert "; what was recorded stays in " in message
    assert caught.value.exit_code == 4
    assert not any(name.startswith("journal/") for name in site.names(url.path))
    site.choose = in_turn({}, 1)
    assert numbers(run(board, url)) == alone
    assert any(name.startswith("journal/") for name in site.names(url.path))


def test_what_is_wrong_with_a_store_is_said_in_a_line(site, url, monkeypatch, tmp_path):
    def refused(message, url=url, error=StoreError):
        with pytest.raises(error, match=message):
            local_folder(str(url))

    refused(rf"^{url}: no results here \(study.json is missing\)$", error=UserError)
    refused(r"^s3://no-such/a: cannot be read or written \(.*NoSuchBucket", "s3://no-such/a")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    refused(r"credentials.*; see 'Credentials' in docs/stores")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    refused(r"The config profile \(nobody\) could not be found")
