"""Archives that are made to do harm: bombs, two files of one name, links, hostile names."""

import bz2
import gzip
import io
import lzma
import random
import tarfile
import tracemalloc
import zipfile

import pytest

from marginbench.data_loaders import DataError, files, idx
from marginbench.data_loaders.files import LocalFile, reading

from ..data_loaders.conftest import refused
from .conftest import LONG

MIB = files.MIB
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
NAMES = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
RECORDS = {name: bytes([k]) + bytes(3072) for k, name in enumerate(NAMES)}
#: Damaged archives of each format that are tried.
N_DAMAGED = 3000 if LONG else 150


@pytest.fixture(autouse=True)
def no_limit_of_the_user(monkeypatch):
    monkeypatch.delenv(files.BYTES_VARIABLE, raising=False)


def zipped(data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner", data)
    return buffer.getvalue()


def bomb(kind, n_mib=40):
    """A small file that expands to so many MiB of zeros."""
    if kind in PACK:
        return PACK[kind](bytes(MIB)) * n_mib  # streams in a row are one file
    return zipped(bytes(n_mib * MIB) if kind == "zip" else bomb(kind.split()[0], n_mib))


def local(path, kind, data, **kwargs):
    path.write_bytes(data)
    return LocalFile(path, str(path), "inner" if "zip" in kind else None, **kwargs)


def n_read(file, block=MIB):
    total = 0
    with reading(file) as stream:
        while data := stream.read(block):
            total += len(data)
    return total


@pytest.mark.parametrize("kind", [*PACK, "zip", "gz in zip", "xz in zip"])
def test_a_bomb_is_stopped_exactly_at_the_limit_and_before_it_takes_memory(tmp_path, kind):
    file = local(tmp_path / "it", kind, bomb(kind), max_bytes=32 * MIB)
    assert file.path.stat().st_size < MIB // 4
    tracemalloc.start()
    try:
        message = refused(n_read, file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message == (
        f"{file.path}: expands to more than {32 * MIB} bytes; if you trust the file, set "
        "MARGINBENCH_MAX_FILE_BYTES to a higher limit"
    )
    assert peak < 16 * MIB
    data = bomb(kind, 2)
    assert n_read(local(tmp_path / "it", kind, data, max_bytes=2 * MIB)) == 2 * MIB
    # Read in one go, too: nothing beyond the limit is given out.
    smaller = local(tmp_path / "it", kind, data, max_bytes=2 * MIB - 1)
    assert f"expands to more than {2 * MIB - 1} bytes" in refused(n_read, smaller, -1)


def test_the_user_can_set_the_limit(tmp_path, monkeypatch):
    file = local(tmp_path / "it", "gz", bomb("gz", 2), max_bytes=MIB)
    monkeypatch.setenv(files.BYTES_VARIABLE, str(2 * MIB))
    assert n_read(file) == 2 * MIB
    monkeypatch.setenv(files.BYTES_VARIABLE, "1000")
    assert "more than 1000 bytes" in refused(n_read, file)
    for wrong in ("0", "-1", "1.5", "1 GB", "9" * 5000, "²"):
        monkeypatch.setenv(files.BYTES_VARIABLE, wrong)
        message = refused(n_read, file)
        assert message.startswith("MARGINBENCH_MAX_FILE_BYTES is '")
        assert message.endswith("'; set it to a positive whole number")


@pytest.mark.parametrize(
    ("changes", "reason"),  # by offset in the entry of the zip
    [
        ({6: 0xB8}, "zip file version 18.4"),
        ({9: 0x08, 46: 0xFF}, "'utf-8' codec"),  # the name is said to be UTF-8
        ({8: 0x01}, "encrypted"),
        ({8: 0x20}, "patched data"),
    ],
)
def test_a_zip_that_zipfile_cannot_handle_is_named(tmp_path, changes, reason):
    data = bytearray(zipped(b"1"))
    entry = data.index(b"PK\1\2")
    for offset, value in changes.items():
        data[entry + offset] = value
    message = refused(n_read, local(tmp_path / "it", "zip", bytes(data)))
    assert message.startswith(f"{tmp_path / 'it'}: cannot be read (")
    assert reason in message


def tar(folder="", **changes):
    """A tar of the batches; of some the data are others, or the fields of the header alone."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in RECORDS.items():
            info = tarfile.TarInfo(folder + name)
            change = changes.get(name.removesuffix(".bin"), data)
            if isinstance(change, bytes):
                info.size = len(change)
                archive.addfile(info, io.BytesIO(change))
            elif change is not None:
                for field, value in change.items():
                    setattr(info, field, value)
                archive.addfile(info)
    return buffer.getvalue()


def read_tar(path, data):
    path.write_bytes(data)
    return idx.read_cifar({"it": LocalFile(path, str(path))}, {}, name="it")


SPARSE = {"map": "0,0", "size": str(2**50), "name": "test_batch.bin"}
NOT_PLAIN = "test_batch.bin: is a link, a sparse file or a device, not a plain file"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"data_batch_4": None}, " the archive has no file 'data_batch_4.bin'"),
        ({"data_batch_2": bytes(3072)}, "data_batch_2.bin: 3072 bytes, not a whole number of rec"),
        ({"test_batch": b""}, "test_batch.bin: 0 bytes, not a whole number of records of 3073"),
        (
            {"data_batch_3": bytes(3073) + b"\x0a" + bytes(3072)},
            "data_batch_3.bin: label 2 is 10, not one of 0 to 9",
        ),
        # No memory is taken for bytes that need not follow.
        ({"test_batch": {"size": 2**40}}, f"test_batch.bin: {2**40} bytes, more than 30730000"),
        ({"test_batch": {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}}, NOT_PLAIN),
        ({"test_batch": {"type": tarfile.LNKTYPE, "linkname": "data_batch_1.bin"}}, NOT_PLAIN),
        ({"test_batch": {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5}}, NOT_PLAIN),
        ({"test_batch": {"type": tarfile.FIFOTYPE}}, NOT_PLAIN),
        (
            {"test_batch": {"pax_headers": {f"GNU.sparse.{k}": v for k, v in SPARSE.items()}}},
            NOT_PLAIN,
        ),
    ],
)
def test_an_archive_that_is_not_cifar_is_refused(tmp_path, changes, complaint):
    message = refused(read_tar, tmp_path / "it", tar(**changes))
    assert message.startswith(f"{tmp_path / 'it'}:{complaint}")


@pytest.mark.parametrize("folder", ["/", "a/../../"])
def test_paths_in_a_tar_lead_nowhere(tmp_path, monkeypatch, folder):
    work = tmp_path / "a" / "b"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    assert read_tar(tmp_path / "it", tar(folder)).train.y.tolist() == [0, 1, 2, 3, 4]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "it"]


@pytest.mark.parametrize("kind", [*PACK, "zip", "tar", "tar.gz"])
def test_damage_raises_nothing_but_an_error_of_one_line(tmp_path, kind):
    rng, path = random.Random(kind), tmp_path / "it"
    content = tar() if "tar" in kind else rng.randbytes(3000)
    packed = ({"zip": zipped, "tar": bytes, "tar.gz": gzip.compress} | PACK)[kind](content)
    for _ in range(N_DAMAGED):
        data = bytearray(packed)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(min(len(data), 8192))] = rng.randrange(256)
        data = bytes(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data)
        try:
            if "tar" in kind:
                read_tar(path, data)
            else:
                n_read(local(path, kind, data, max_bytes=MIB))
        except DataError as error:
            message = str(error)
            assert message.startswith(f"{path}:")
            assert message.isprintable()
