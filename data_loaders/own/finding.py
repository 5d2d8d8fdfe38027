"""From what a user wrote to files: paths, folders, code, and what they are made of."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError, suggest
from ..files import LocalFile
from ..user_code import NotPython, bound_names, parsed
from .options import VERSION, Options
from .words import listed, printable

_PACKED = (".gz", ".bz2", ".xz")
#: The format of a file by the end of its name.
_FORMATS = {
    **dict.fromkeys((".csv", ".data"), "csv"),
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".npz": "npz",
    ".arff": "arff",
    **dict.fromkeys(("", ".txt", ".libsvm", ".svm", ".t", ".tr", ".trn", ".tst"), "libsvm"),
}


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error})") from None


@dataclass(frozen=True)
class Own:
    """What a name means: a file, a training and a test file, or what a file of code makes."""

    name: str
    files: tuple[LocalFile, ...]
    params: Mapping[str, Any]  # as given
    options: Options | None = None  # None for code: they are checked when it has run
    attribute: str = ""  # the name in a file of code

    def hashes(self) -> list[str]:
        """SHA-256 of the files."""
        hashes = []
        for file in self.files:
            with _readable(file.origin), file.path.open("rb") as stream:
                hashes.append(hashlib.file_digest(stream, "sha256").hexdigest())
        return hashes

    def identity(self) -> dict[str, Any]:
        """What enters the cache key: content and options; not where the files are."""
        if self.options is not None:
            formats = [format_of(file, self.options) for file in self.files]
            return {**self.options.identity(), "made_of": self.hashes(), "formats": formats}
        options = {"attribute": self.attribute, "options": dict(self.params)}
        return {"made_by": VERSION, "made_of": self.hashes(), **options}


def format_of(file: LocalFile, options: Options) -> str:
    """The format that the options set, or else that of the name."""
    if options.format:
        return options.format
    name = file.path.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    suffix = Path(name).suffix
    if suffix not in _FORMATS:
        endings = listed([each for each in _FORMATS if each], 20)
        raise DataError(
            f"{file.origin}: the format of {suffix!r} is not known; set format, or rename it "
            f"({endings})"
        )
    return _FORMATS[suffix]


def is_own(name: str, folder: str | Path | None = None) -> bool:
    """Whether a name that is not registered means a file, a folder or code.

    A relative path begins in `folder`, by default the current one.
    """
    file, colon, _ = name.rpartition(":")
    if colon and file.endswith(".py"):
        return True
    # No other name has a point or a slash in it.
    if "." in name or os.sep in name:
        return True
    try:
        return bool(name) and _at(name, folder).exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def find_own(
    name: str, params: Mapping[str, object] | None = None, folder: str | Path | None = None
) -> Own:
    """What a name means: a file, a folder with a training and a test file, or "file.py:name".

    Nothing but names of files is looked at, and no code is run. A relative path begins in `folder`,
    by default the current one. Raises `DataError` if there is no such file, or an option is not
    valid.
    """
    params = dict(params or {})
    file, colon, attribute = name.rpartition(":")
    if colon and file.endswith(".py"):
        code = _file(file, folder)
        _check_defines(code, attribute)
        return Own(name, (code,), params, attribute=attribute)
    if name.endswith(".py"):
        raise DataError(f"{name}: name what makes the data in it too, as in {name}:load")
    options = Options.of(params, name)
    path = _at(name, folder)
    if os.path.isdir(path):
        if options.test:
            raise DataError(f"{name}: is a folder with its own test file; remove test")
        names = [_name_in(name, path, role) for role in ("train", "test")]
    else:
        names = [name, *filter(None, [options.test_file])]
    files = tuple(_file(each, folder) for each in names)
    for each in files:
        format_of(each, options)
    return Own(name, files, params, options)


def _at(name: str, folder: str | Path | None) -> Path:
    return Path(folder or ".").joinpath(Path(name).expanduser())


def _name_in(name: str, folder: Path, role: str) -> str:
    with _readable(name):
        names = [each for each in os.listdir(folder) if each.partition(".")[0] == role]
    if len(names) != 1:
        content = f"{len(names)} files" if names else "no file"
        raise DataError(f"{name}: {content} {role}.* in this folder; one {role} file is needed")
    return f"{name.rstrip('/')}/{names[0]}"


def _file(name: str, folder: str | Path | None) -> LocalFile:
    path = _at(name, folder)
    with _readable(name):
        try:
            is_file = stat.S_ISREG(path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            is_file = False
    if not is_file:
        beside = os.listdir(path.parent) if path.parent.is_dir() else []
        # By stems: all names with the same ending are alike.
        names = {Path(each).stem: each for each in beside}
        near = difflib.get_close_matches(path.stem, names, n=1)
        hint = f" (did you mean '{printable(names[near[0]])}'?)" if near else ""
        raise DataError(f"{name}: no such file{hint}")
    return LocalFile(path, name)


def _check_defines(code: LocalFile, attribute: str) -> None:
    try:
        names = set(bound_names(parsed(code.path)))
    except NotPython as error:
        raise DataError(f"{code.origin}{error}") from None
    if attribute not in names and "*" not in names:
        raise DataError(
            f"{code.origin} defines no {attribute!r}{suggest(attribute, sorted(names))}"
        )
