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
from marginbench.harness.results.stores import RETRY_VARIABLE, StoreError, local_folder, synced
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
URL = f"s3://{BUCKET}/study"


class Site:
    """S3 on this machine, whose answers fail in the way that the test chooses."""

    def __init__(self, application):
        self.application, self.numbers = application, itertools.count(1)
        self.choose = NEVER

    def __call__(self, environ, start_response):
        fault = self.choose(next(self.numbers), environ["REQUEST_METHOD"], environ["PATH_INFO"])
        if fault == "503":
            start_response("503 Slow Down", [("Content-Length", "0")])
            return []
        content = b"".join(self.application(environ, start_response))
        if fault == "lost":
            # It was done, and nobody hears of it.
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return [content[: len(content) // 2] if fault == "cut" else content]

    def names(self):
        self.choose = NEVER
        found = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="study/")
        return [item["Key"].removeprefix("study/") for item in found.get("Contents", [])]


def in_turn(faults, of):
    """Each fault now and then."""
    return lambda count, method, path: faults.get(count % of, "")


NEVER = in_turn({}, 1)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A server with an empty bucket, and no settings but those for it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    sites, application = [], moto.DomainDispatcherApplication

    def failing(create):
        sites.append(Site(application(create)))
        return sites[0]

    monkeypatch.setattr(moto, "DomainDispatcherApplication", failing)
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.get_host_and_port()[1]}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        "NO_PROXY": "127.0.0.1",
        "NUMBA_CACHE_DIR": str(cache_folder().parent),
        "MARGINBENCH_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    bucket = boto3.resource("s3").create_bucket(Bucket=BUCKET)
    bucket.objects.delete()  # of the test before
    yield sites[0]
    server.stop()


@pytest.fixture(scope="module")
def board():
    return board_study(seeds=4, solver=[{"name": "Perceptron"}])


@pytest.fixture(scope="module")
def alone(board, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "results"
    run_study(board, folder, executor=InProcess())
    return numbers(folder)


def run(study):
    """Run a study on the store; the mirror."""
    with synced(URL, lambda line: None) as (folder, exchange):
        summary = run_study(study, folder, executor=InProcess(), exchange=exchange)
        assert sum(summary.statuses.values()) == 4
        return folder


def files(folder):
    """What of a mirror is in the store."""
    paths = [*folder.glob("journal/*.jsonl"), folder / "study.json"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("faults", "of"),
    [
        ({3: "503", 7: "cut", 11: "lost"}, 17),
        ({0: "cut"}, 4),
        *([({0: "503"}, 3), ({0: "lost"}, 5)] if LONG else []),
    ],
)
def test_a_server_that_fails_now_and_then_changes_nothing(
    site, board, alone, faults, of, tmp_path, monkeypatch
):
    site.choose = in_turn(faults, of)
    mirror = run(board)
    assert numbers(mirror) == alone
    # As if on another machine.
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "elsewhere"))
    again = local_folder(URL)
    assert again != mirror
    assert files(again) == files(mirror)
    assert {name.partition("/")[0] for name in site.names()} == {"journal", "study.json"}


def test_a_server_that_is_gone_ends_no_study_and_the_next_command_pushes(
    site, board, alone, monkeypatch
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
        run(board)
    message = str(caught.value)
    assert message.startswith(f"{URL}: cannot be read or written (")
    assert "; what was recorded stays in " in message
    assert caught.value.exit_code == 4
    (first,) = (name for name in site.names() if name.startswith("journal/"))
    assert numbers(run(board)) == alone
    assert first in site.names()
    assert len(site.names()) > 2


def test_what_is_wrong_with_a_store_is_said_in_a_line(site, monkeypatch):
    def refused(message, url=URL, error=StoreError):
        with pytest.raises(error, match=message):
            local_folder(url)

    refused(rf"^{URL}: no results here \(study.json is missing\)$", error=UserError)
    refused(r"^s3://no-such/a: cannot be read or written \(.*NoSuchBucket", "s3://no-such/a")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    refused(r"credentials.*; see 'Credentials' in docs/stores")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    refused(r"The config profile \(nobody\) could not be found")
