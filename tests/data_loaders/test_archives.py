"""Files in zip archives, in folders of other names, and where a package installs them."""

import gzip
import lzma
import zipfile
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from marginbench.data_loaders import DataError, load, verify
from marginbench.data_loaders.files import LocalFile, RemoteFile, reading

TRAIN = b"+1 1:0.5 3:-2\n-1 2:1e-3\n"
TEST = b"-1 3:1\n+1 1:2 2:3\n"


@pytest.fixture
def zipped(tiny, mirror: Path):
    """A source whose two files stand in one archive of the mirror, and that archive."""
    for name in ("tiny.trn", "tiny.tst"):
        (mirror / "tiny" / name).unlink()
    path = mirror / "tiny" / "both.zip"
    write(path, {"tiny.trn": TRAIN, "tiny.tst": TEST})
    files = tuple(
        RemoteFile(name, ("http://127.0.0.1:9/none",), archive="both.zip")
        for name in ("tiny.trn", "tiny.tst")
    )
    return tiny(files=files), path


def write(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def refusal(source) -> str:
    with pytest.raises(DataError) as caught:
        load(source)
    assert "\n" not in str(caught.value)
    assert verify(source).state == "missing"
    return str(caught.value)


def test_an_archive_of_a_mirror_folder_is_read_in_place(zipped, mirror, monkeypatch):
    source, _ = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    data = load(source)
    assert data.X_train.toarray().tolist() == [[0.5, 0, -2, 0], [0, 1e-3, 0, 0]]
    assert data.y_test.tolist() == [-1, 1]


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
    write(path, {"tiny.trn": TRAIN, "readme": b""})
    assert refusal(source) == (
        f"{path}: the archive has no file 'tiny.tst' (it has: tiny.trn, readme)"
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"<!DOCTYPE html>",
        lambda data: data[:-30],
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    ],
    ids=["empty", "page", "cut", "flipped bit"],
)
def test_a_damaged_archive_is_named(zipped, mirror, monkeypatch, damage):
    source, path = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    path.write_bytes(damage(path.read_bytes()))
    message = refusal(source)
    assert message.startswith(f"{path}:tiny.trn: cannot be read (")


def test_a_locked_archive_is_named(zipped, mirror, monkeypatch):
    source, path = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):  # the flag of encryption
        position = data.index(signature)
        data[position + offset] |= 1
    path.write_bytes(bytes(data))
    message = refusal(source)
    assert message.startswith(f"{path}:tiny.trn: cannot be read (")
    assert "encrypted" in message


def test_a_wrong_line_in_an_archive_has_a_number(zipped, mirror, monkeypatch):
    source, path = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(mirror))
    write(path, {"tiny.trn": TRAIN, "tiny.tst": TEST + b"+1 1:nan\n"})
    assert refusal(source) == f"{path}:tiny.tst, line 3: the value of '1:nan' is not finite"


def test_both_places_of_a_mirror_are_named_when_the_file_is_in_neither(
    zipped, tmp_path, monkeypatch
):
    source, _ = zipped
    monkeypatch.setenv("MARGINBENCH_MIRROR", str(tmp_path / "none"))
    message = refusal(source)
    assert f"{tmp_path}/none/tiny/tiny.trn (no such file)" in message
    assert f"{tmp_path}/none/tiny/both.zip:tiny.trn (no such file)" in message
    assert "http://127.0.0.1:9/none (no connection)" in message


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_packed_file_in_an_archive_is_unpacked_twice(tmp_path, compress):
    write(tmp_path / "a.zip", {"inner": compress(TRAIN)})
    with reading(LocalFile(tmp_path / "a.zip", "a.zip:inner", "inner")) as stream:
        assert stream.read() == TRAIN


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
    (tmp_path / "mine" / "tiny" / "tiny.trn").write_bytes(TRAIN)
    data = load(replace(source, files=installed), cache_dir=tmp_path / "other")
    assert (data.n_train, data.n_test) == (2, 2)


def test_a_file_without_an_address_must_be_in_the_mirror(tiny):
    files = (RemoteFile("tiny.trn", ()), RemoteFile("tiny.tst", ()))
    assert refusal(tiny(files=files)) == (
        "tiny: cannot fetch 'tiny.trn'; it has no public address; put the file at "
        "FOLDER/tiny/tiny.trn and set MARGINBENCH_MIRROR=FOLDER (a folder or an http address)"
    )
