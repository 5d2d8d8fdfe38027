"""Where files come from: mirror folder, mirror address, public address, and none of them."""

import errno
import gzip
import hashlib
import logging
import lzma
import os
import time
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from marginbench.data_loaders import (
    DataError,
    fetch,
    files,
    load,
    verify,
)
from marginbench.data_loaders.errors import CacheError
from marginbench.data_loaders.files import LocalFile, RemoteFile, reading

TRAIN = b"+1 1:0.5 3:-2\n-1 2:1e-3\n+1\n-1 1:7 2:0 4:1\n"
TEST = b"-1 3:1\n+1 1:2 2:3\n"


def refusal(source) -> str:
    with pytest.raises(DataError) as caught:
        load(source)
    message = str(caught.value)
    assert "\n" not in message
    assert verify(source).state == "missing"
    return message


def cached_names(cache) -> list[str]:
    """What is there besides locks."""
    found = [path for path in cache.iterdir() if path.suffix != ".lock"]
    return sorted(path.name for path in found)


def test_a_mirror_folder_is_read_in_place(tiny, mirror, monkeypatch, cache):
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    monkeypatch.setattr(files, "_download", None)
    data = load(tiny())
    assert data.X_train.shape == (4, 4)
    assert data.X_test.shape == (2, 4)
    assert cached_names(cache) == ["tiny.parquet"]


@pytest.mark.parametrize("mirror_is", ["empty folder", "address without the file", "not set"])
def test_public_addresses_come_last(tiny, server, tmp_path, monkeypatch, mirror_is):
    if mirror_is == "empty folder":
        monkeypatch.setenv("MARGINBENCH_MIRROR", str(tmp_path))
    elif mirror_is == "address without the file":
        monkeypatch.setenv("MARGINBENCH_MIRROR", server + "/elsewhere")
    assert load(tiny(url=server)).X_train.shape == (4, 4)


def test_when_no_place_has_the_file_every_place_is_named(tiny, server, tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(tmp_path / "empty"))
    message = refusal(tiny(url=server + "/elsewhere"))
    assert message.startswith("tiny: cannot fetch 'tiny.trn'; tried ")
    assert f"{tmp_path / 'empty' / 'tiny' / 'tiny.trn'} (no such file)" in message
    assert f"{server}/elsewhere/tiny/tiny.trn (HTTP status 404)" in message
    assert "set MARGINBENCH_MIRROR=FOLDER" in message


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_a_mirror_shows_its_password_and_token_to_nobody_but_the_server(
    tiny, server, monkeypatch, scheme
):
    address = f"{scheme}{server[4:].replace('://', '://me:secret@')}"
    monkeypatch.setenv("MARGINBENCH_MIRROR", f"{address}/elsewhere?token=secret")
    message = refusal(tiny(files=(RemoteFile("tiny.trn", ()),)))
    assert f"{scheme}://...@{server[7:]}/elsewhere/tiny/tiny.trn?... (" in message
    assert "secret" not in message
    monkeypatch.setenv("MARGINBENCH_MIRROR", f"{server}/?token=secret")
    with pytest.raises(DataError, match=r"tiny\.trn\?\.\.\., ") as caught:
        load(tiny(fingerprint="0" * 64))
    assert "secret" not in str(caught.value)
    assert load(tiny()).X_train.shape == (4, 4)


def test_no_network_at_all(tiny):
    message = refusal(tiny(url="http://127.0.0.1:9"))
    assert "http://127.0.0.1:9/tiny/tiny.trn (no connection)" in message


def test_a_silent_server_is_not_waited_for(tiny, serving, monkeypatch):
    class Silent(BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(0.6)

    monkeypatch.setattr(files, "TIMEOUT_S", 0.2)
    assert "(no answer in 0.2 s)" in refusal(tiny(url=serving(Silent)))


@pytest.mark.parametrize("days", [6, 8])
def test_whole_files_of_an_interrupted_fetch_are_kept_for_a_week(tiny, server, cache, mirror, days):
    (mirror / "tiny" / "tiny.tst").unlink()
    source = tiny(url=server)
    assert "(HTTP status 404)" in refusal(source)
    (kept,) = cache.glob(".tiny.downloads")
    assert [path.read_bytes() for path in kept.rglob("tiny.*")] == [TRAIN]
    then = time.time() - days * 86400
    os.utime(kept, (then, then))
    (mirror / "tiny" / "tiny.trn").unlink()
    (mirror / "tiny" / "tiny.tst").write_bytes(TEST)
    if days < 7:
        assert load(source).n_train == 4
    else:
        assert "cannot fetch 'tiny.trn'" in refusal(source)


def test_downloads_that_cannot_be_used_are_not_kept(tiny, serving, mirror, cache, server):
    path = mirror / "tiny" / "tiny.tst"
    path.write_bytes(b"+1 1:nan\n-1 1:1\n")
    assert "tiny.tst, line 1: the value of '1:nan' is not finite" in refusal(tiny(url=server))
    assert cached_names(cache) == []
    path.write_bytes(TEST)
    assert load(tiny(url=server)).n_test == 2


def test_a_known_sha256_is_checked(tiny, server, mirror, monkeypatch):
    sha256 = hashlib.sha256((mirror / "tiny" / "tiny.trn").read_bytes()).hexdigest()
    wrong = "0" * 64
    assert "(SHA-256 differs from the known one)" in refusal(tiny(url=server, sha256=wrong))
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    assert f"SHA-256 is {sha256}, expected {wrong}" in refusal(tiny(sha256=wrong))
    assert load(tiny(sha256=sha256)).n_train == 4


def test_downloads_say_nothing(tiny, server, capfd):
    fetch(tiny(url=server))
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("pooch").level != logging.ERROR


def test_content_that_is_not_the_pinned_one_is_refused(tiny, mirror, monkeypatch):
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    message = refusal(tiny(fingerprint="0" * 64))
    assert f"expected fingerprint {'0' * 64}, got " in message
    assert str(mirror / "tiny" / "tiny.trn") in message
    right = message.split()[-1]
    assert load(tiny(fingerprint=right)).fingerprint == right
    (mirror / "tiny" / "tiny.tst").write_bytes(b"-1 3:1\n+1 1:2 2:3.5\n")
    assert verify(tiny(fingerprint=right)).state == "ok"  # the cache does not look at the mirror
    with pytest.raises(DataError, match=f"expected fingerprint {right}, got "):
        load(tiny(fingerprint=right), cache_dir=mirror / "other")


def test_a_download_that_finds_no_room_is_no_fault_of_the_server(tiny, monkeypatch, cache):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(cache))

    monkeypatch.setattr(files.pooch, "retrieve", full)
    with pytest.raises(CacheError) as caught:
        load(tiny(url="http://127.0.0.1:9"))
    message = str(caught.value)
    assert message.startswith(f"tiny: cannot write 'tiny.trn' to the cache folder {cache} ")
    assert "(No space left on device); set MARGINBENCH_CACHE" in message
    assert [name for name in cached_names(cache) if "partial" in name] == []


# Files in zip archives, in folders of other names, and where a package installs them.

SHORT = b"+1 1:0.5 3:-2\n-1 2:1e-3\n"


@pytest.fixture
def zipped(tiny, mirror: Path):
    """A source whose two files stand in one archive of the mirror, and that archive."""
    for name in ("tiny.trn", "tiny.tst"):
        (mirror / "tiny" / name).unlink()
    path = mirror / "tiny" / "both.zip"
    write(path, {"tiny.trn": SHORT, "tiny.tst": TEST})
    files = tuple(
        RemoteFile(name, ("http://127.0.0.1:9/none",), archive="both.zip")
        for name in ("tiny.trn", "tiny.tst")
    )
    return tiny(files=files), path


def write(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def test_a_file_by_itself_comes_before_the_archive(zipped, mirror, monkeypatch):
    source, path = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    (path.parent / "tiny.tst").write_bytes(b"-1 3:1\n+1 1:2 2:3\n+1\n")
    assert load(source).n_test == 3


def test_an_archive_is_downloaded_once(zipped, mirror, serving, monkeypatch):
    source, _ = zipped
    asked = []

    class Counting(SimpleHTTPRequestHandler):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, directory=str(mirror), **kwargs)

        def log_message(self, *args):
            pass

        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

    monkeypatch.setenv("MARGINBENCH_MIRROR", serving(Counting))
    assert load(source).n_train == 2
    assert asked == ["/tiny/tiny.trn", "/tiny/both.zip", "/tiny/tiny.tst"]


def test_an_archive_without_the_file_is_named(zipped, mirror, monkeypatch):
    source, path = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    write(path, {"tiny.trn": SHORT, "readme": b""})
    assert refusal(source) == (
        f"{path}: the archive has no file 'tiny.tst' (it has: tiny.trn, readme)"
    )


def test_a_wrong_line_in_an_archive_has_a_number(zipped, mirror, monkeypatch):
    source, path = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    write(path, {"tiny.trn": SHORT, "tiny.tst": TEST + b"+1 1:nan\n"})
    assert refusal(source) == f"{path}:tiny.tst, line 3: the value of '1:nan' is not finite"


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_packed_file_in_an_archive_is_unpacked_twice(tmp_path, compress):
    write(tmp_path / "a.zip", {"inner": compress(SHORT)})
    with reading(LocalFile(tmp_path / "a.zip", "a.zip:inner", "inner")) as stream:
        assert stream.read() == SHORT


def test_the_folder_in_a_mirror_can_have_another_name(tiny, mirror, monkeypatch):
    (mirror / "tiny").rename(mirror / "tiny_set")
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    assert load(tiny(mirror_folder="tiny_set")).n_train == 4
    with pytest.raises(DataError, match=r"put the file at FOLDER/elsewhere/tiny\.trn and set"):
        load(tiny(mirror_folder="elsewhere", name="other"))


def test_an_installed_file_comes_before_the_network(tiny, mirror, tmp_path, monkeypatch):
    folder = mirror / "tiny"
    source = tiny()
    installed = tuple(replace(file, installed=str(folder / file.name)) for file in source.files)
    assert load(replace(source, files=installed)).n_train == 4
    # A mirror is what the user has chosen: it comes first.
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(tmp_path / "mine"))
    (tmp_path / "mine" / "tiny").mkdir(parents=True)
    (tmp_path / "mine" / "tiny" / "tiny.trn").write_bytes(SHORT)
    data = load(replace(source, files=installed), cache_dir=tmp_path / "other")
    assert (data.n_train, data.n_test) == (2, 2)


def test_a_file_without_an_address_must_be_in_the_mirror(tiny):
    files = (RemoteFile("tiny.trn", ()), RemoteFile("tiny.tst", ()))
    assert refusal(tiny(files=files)) == (
        "tiny: cannot fetch 'tiny.trn'; it has no public address; put the file at "
        "FOLDER/tiny/tiny.trn and set MARGINBENCH_MIRROR=FOLDER (a folder or an http address)"
    )
