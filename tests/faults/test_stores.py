"""Studies on S3, as moto's server plays it, which fails as servers do.

Whatever happens on the way, the records are those of a local run. The long form
(MARGINBENCH_FAULTS=long) has more sequences of faults.
"""

import itertools
import os
import socket

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

from ..harness.answers import InProcess
from ..harness.conftest import board_study
from .conftest import LONG, numbers

WHY = "of the extra 'cloud' and the group 'dev'"
boto3 = pytest.importorskip("boto3", reason=WHY)
pytest.importorskip("obstore", reason=WHY)
moto = pytest.importorskip(
    "moto.moto_server.threaded_moto_server", reason="moto[s3] plays S3, from the group 'dev'"
)

pytestmark = pytest.mark.slow
BUCKET = "studies"


class Site:
    """S3 on this machine, whose answers fail in the way that the test chooses."""

    def __init__(self, application):
        self.application, self.numbers = application, itertools.count(1)
        self.choose = in_turn({}, 1)

    def __call__(self, environ, start_response):
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        fault = self.choose(next(self.numbers), method, path)
        if fault == "503":
            start_response("503 Slow Down", [("Content-Length", "0")])
            return []
        content = b"".join(self.application(environ, start_response))
        if fault == "lost":
            # It was done, and nobody hears of it.
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return [content[: len(content) // 2] if fault == "cut" else content]

    def names(self, folder):
        self.choose = in_turn({}, 1)
        found = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"{folder}/")
        return [item["Key"].partition("/")[2] for item in found.get("Contents", [])]


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
def site(own_settings, monkeypatch):
    application, sites = moto.DomainDispatcherApplication, []

    def failing(create):
        sites.append(Site(application(create)))
        return sites[0]

    monkeypatch.setattr(moto, "DomainDispatcherApplication", failing)
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.get_host_and_port()[1]}")
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    yield sites[0]
    server.stop()


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
    patterns = ("journal/*.jsonl", "study.json")
    paths = [path for pattern in patterns for path in folder.glob(pattern)]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def in_turn(faults, of):
    """Each fault now and then."""
    return lambda count, method, path: faults.get(count % of, "")


@pytest.mark.parametrize(
    ("faults", "of"),
    [
        ({3: "503", 7: "cut", 11: "lost"}, 17),
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
        "journal", "study.json"
    }  # fmt: skip


def test_a_server_that_is_gone_ends_no_study_and_the_next_command_pushes(
    site, url, board, alone, monkeypatch
):
    monkeypatch.setenv(RETRY_VARIABLE, "0.5")
    taken = []

    def once_it_has_taken_something(number, method, path):
        if method == "PUT" and "/journal/" in path and not taken:
            taken.append(path)
            return ""
        return "503" if taken else ""

    site.choose = once_it_has_taken_something
    with pytest.raises(StoreError) as caught:
        run(board, url)
    message = str(caught.value)
    assert message.startswith(f"{url}: cannot be read or written (")
    assert "; what was recorded stays in " in message
    assert caught.value.exit_code == 4
    (first,) = (name for name in site.names(url.path) if name.startswith("journal/"))
    site.choose = in_turn({}, 1)
    assert numbers(run(board, url)) == alone
    assert first in site.names(url.path)
    assert len(site.names(url.path)) > 2


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
