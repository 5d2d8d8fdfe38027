"""Where files come from: mirror folder, mirror address, archive, package, public address, or none.

tests/faults/test_http.py and test_archives.py have servers and archives that lie.
"""

import hashlib
import time
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from marginbench.data_loaders import files, load, verify
from marginbench.data_loaders.files import RemoteFile

from .conftest import TEST, TRAIN, refused, serving


def refusal(source):
    message = refused(load, source)
    assert verify(source).state == "missing"
    return message


def cached_names(cache):
    """What is there besides locks."""
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_a_mirror_folder_is_read_in_place(tiny, mirror, monkeypatch, cache):
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    monkeypatch.setattr(files, "_download", None)
    data = load(tiny())
    assert (data.X_train.shape, data.X_test.shape) == ((4, 4), (2, 4))
    assert cached_names(cache) == ["tiny.parquet"]
    (mirror / "tiny").rename(mirror / "tiny_set")
    renamed = tiny(mirror_folder="tiny_set")
    assert load(renamed, cache_dir=cache / "again").fingerprint == data.fingerprint
    assert refusal(tiny(files=(RemoteFile("tiny.trn", ()),), name="other")) == (
        "other: cannot fetch 'tiny.trn'; it has no public address; tried "
        f"{mirror}/other/tiny.trn (no such file); put the file at "
        "FOLDER/other/tiny.trn and set MARGINBENCH_MIRROR=FOLDER (a folder or an http address)"
    )


def test_public_addresses_come_last(tiny, server, tmp_path, monkeypatch, capfd):
    for place in (str(tmp_path), server + "/elsewhere"):
        monkeypatch.setenv("MARGINBENCH_MIRROR", place)
        data = load(tiny(url=server), cache_dir=tmp_path / place[-4:])
        assert data.X_train.shape == (4, 4)
    assert capfd.readouterr() == ("", "")
    message = refusal(tiny(url="http://127.0.0.1:9"))
    assert message.startswith("tiny: cannot fetch 'tiny.trn'; tried ")
    assert f"{server}/elsewhere/tiny/tiny.trn (HTTP status 404)" in message
    assert "http://127.0.0.1:9/tiny/tiny.trn (download failed: ConnectionError)" in message
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
    message = refused(load, tiny(fingerprint="0" * 64))
    assert "tiny.trn?..., " in message
    assert "secret" not in message
    assert load(tiny()).X_train.shape == (4, 4)


def test_a_silent_server_is_not_waited_for(tiny, monkeypatch):
    class Silent(BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(0.6)

    monkeypatch.setattr(files, "TIMEOUT_S", 0.2)
    with serving(Silent) as address:
        assert "(download failed: ReadTimeout)" in refusal(tiny(url=address))


def test_whole_files_of_an_interrupted_fetch_are_kept(tiny, server, cache, mirror):
    (mirror / "tiny" / "tiny.tst").unlink()
    source = tiny(url=server)
    assert "(HTTP status 404)" in refusal(source)
    (kept,) = cache.glob(".tiny.downloads")
    assert [path.read_bytes() for path in kept.rglob("tiny.*")] == [TRAIN]
    (mirror / "tiny" / "tiny.trn").unlink()
    # What cannot be used is not kept, nor what was fetched with it.
    (mirror / "tiny" / "tiny.tst").write_bytes(b"+1 1:nan\n-1 1:1\n")
    assert "tiny.tst, line 1: '1:nan' is not an index from 1 to 4, " in refusal(source)
    assert cached_names(cache) == []


def test_a_file_or_content_that_is_not_the_known_one_is_refused(tiny, server, mirror, monkeypatch):
    sha256, wrong = hashlib.sha256(TRAIN).hexdigest(), "0" * 64
    assert "(SHA-256 differs from the known one)" in refusal(tiny(url=server, sha256=wrong))
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    assert f"SHA-256 is not {wrong}; replace the file" in refusal(tiny(sha256=wrong))
    message = refusal(tiny(sha256=sha256, fingerprint=wrong))
    assert f"{mirror}/tiny/tiny.trn" in message
    assert f"expected fingerprint {wrong}, got " in message
    pinned = tiny(fingerprint=message.split()[-1])
    assert load(pinned).fingerprint == pinned.fingerprint
    (mirror / "tiny" / "tiny.tst").write_bytes(b"-1 3:1\n+1 1:2 2:3.5\n")
    assert verify(pinned).state == "ok"  # the cache does not look at the mirror
    message = refused(load, pinned, cache_dir=mirror / "other")
    assert f"expected fingerprint {pinned.fingerprint}, got " in message


@pytest.fixture
def zipped(tiny, mirror):
    """A source whose two files stand in one archive of the mirror, and what writes that."""
    for path in (mirror / "tiny").iterdir():
        path.unlink()
    path = mirror / "tiny" / "both.zip"

    def write(**files):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name.replace("_", "."), data)

    write(tiny_trn=TRAIN, tiny_tst=TEST)
    files = (replace(file, archive="both.zip") for file in tiny().files)
    return tiny(files=tuple(files)), path, write


def test_an_archive_is_downloaded_once(zipped, server, asked, monkeypatch):
    monkeypatch.setenv("MARGINBENCH_MIRROR", server)
    assert load(zipped[0]).n_train == 4
    assert asked == ["/tiny/tiny.trn", "/tiny/both.zip", "/tiny/tiny.tst"]


def test_what_is_wrong_in_an_archive_is_named(zipped, mirror, monkeypatch):
    source, path, write = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    write(tiny_trn=TRAIN, readme=b"")
    assert refusal(source) == (
        f"{path}: the archive has no file 'tiny.tst' (it has: tiny.trn, readme)"
    )
    write(tiny_trn=TRAIN, tiny_tst=TEST + b"+1 1:nan\n")
    message = f"{path}:tiny.tst, line 3: '1:nan' is not an index from 1 to 4, a colon and a finite"
    assert refusal(source).startswith(message)
    # A file by itself comes before the archive.
    (path.parent / "tiny.tst").write_bytes(TEST + b"+1\n")
    assert load(source).n_test == 3


def test_an_installed_file_comes_before_the_network(tiny, mirror, tmp_path, monkeypatch):
    source = tiny()
    installed = (replace(file, installed=str(mirror / "tiny" / file.name)) for file in source.files)
    source = replace(source, files=tuple(installed))
    assert load(source).n_train == 4
    # A mirror is what the user has chosen: it comes first.
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(tmp_path / "mine"))
    (tmp_path / "mine" / "tiny").mkdir(parents=True)
    (tmp_path / "mine" / "tiny" / "tiny.trn").write_bytes(TEST)
    data = load(source, cache_dir=tmp_path / "other")
    assert (data.n_train, data.n_test) == (2, 2)
