"""From what a user wrote to files: paths, folders, code, and what they are made of."""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import files
from ..errors import DataError, suggest
from ..user_code import NotPython, bound_names, parsed
from .options import VERSION, Options
from .words import listed

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


@dataclass(frozen=True)
class OwnFile:
    """One file: what the user calls it, and where it is."""

    name: str
    path: Path

    def format(self, options: Options) -> str:
        """The format that is asked for, or else that of the name."""
        if options.format:
            return options.format
        name = self.path.name.lower()
        for packed in _PACKED:
            name = name.removesuffix(packed)
        suffix = Path(name).suffix
        if suffix not in _FORMATS:
            known = listed([each for each in _FORMATS if each], 20)
            raise DataError(
                f"{self.name}: the format of {suffix!r} is not known; set format, or rename it "
                f"({known})"
            )
        return _FORMATS[suffix]

    def checked(self) -> OwnFile:
        """This, if it is there and can be read."""
        try:
            is_file = stat.S_ISREG(self.path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            is_file = False
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read ({error.strerror or error})") from None
        if not is_file:
            raise DataError(f"{self.name}: no such file{_near_file(self.path)}")
        if not os.access(self.path, os.R_OK):
            raise DataError(f"{self.name}: cannot be read (permission denied)")
        return self

    def check_size(self) -> int:
        """The most bytes that are read into memory, packed or not; refuses a file of more."""
        import psutil

        limit = files.max_bytes(psutil.virtual_memory().total // 4)
        size = self.path.stat().st_size
        if size > limit:
            raise DataError(
                f"{self.name}: {size} bytes; data are read into memory, at most {limit} bytes of a "
                f"file on this machine (a quarter of the memory, or {files.BYTES_VARIABLE})"
            )
        return limit

    def sha256(self) -> str:
        """Of the bytes of the file."""
        try:
            with self.path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read ({error.strerror or error})") from None


@dataclass(frozen=True)
class Code:
    """Code that makes data: a file, and a name in it."""

    name: str
    file: OwnFile
    attribute: str
    params: Mapping[str, Any]

    def identity(self) -> dict[str, Any]:
        """What enters the cache key."""
        return {
            "made_by": VERSION,
            "made_of": [self.file.sha256()],
            "attribute": self.attribute,
            "options": dict(self.params),
        }


@dataclass(frozen=True)
class Files:
    """A file, or a training and a test file, with options."""

    name: str
    train: OwnFile
    test: OwnFile | None
    options: Options

    @property
    def files(self) -> tuple[OwnFile, ...]:
        """All of them."""
        return (self.train,) if self.test is None else (self.train, self.test)

    def identity(self) -> dict[str, Any]:
        """What enters the cache key: content and options; not where the files are."""
        return {
            **self.options.identity(),
            "made_of": [file.sha256() for file in self.files],
            "formats": [file.format(self.options) for file in self.files],
        }


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
) -> Files | Code:
    """What a name means: a file, a folder with a training and a test file, or "file.py:name".

    Nothing but names of files is looked at, and no code is run. A relative path begins in `folder`,
    by default the current one. Raises `DataError` if there is no such file, or an option is not
    valid.
    """
    file, colon, attribute = name.rpartition(":")
    if colon and file.endswith(".py"):
        code = Code(name, OwnFile(file, _at(file, folder)).checked(), attribute, dict(params or {}))
        _check_defines(code)
        return code
    if name.endswith(".py"):
        raise DataError(f"{name}: name what makes the data in it too, as in {name}:load")
    options = Options.of(params or {}, name)
    path = _at(name, folder)
    if os.path.isdir(path):
        if options.test:
            raise DataError(f"{name}: is a folder with its own test file; remove test")
        train, test = (_file_in(name, path, role) for role in ("train", "test"))
        found = Files(name, train, test, options)
    else:
        train, tests = OwnFile(name, path).checked(), options.test_file
        test_file = OwnFile(tests, _at(tests, folder)).checked() if tests else None
        found = Files(name, train, test_file, options)
    for each in found.files:
        each.format(options)
    return found


def _at(name: str, folder: str | Path | None) -> Path:
    return Path(folder or ".").joinpath(Path(name).expanduser())


def _file_in(name: str, folder: Path, role: str) -> OwnFile:
    try:
        found = sorted(path for path in folder.iterdir() if path.name.partition(".")[0] == role)
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error})") from None
    if len(found) != 1:
        what = f"{len(found)} files" if found else "no file"
        raise DataError(f"{name}: {what} {role}.* in this folder; one {role} file is needed")
    return OwnFile(f"{name.rstrip('/')}/{found[0].name}", found[0]).checked()


def _near_file(path: Path) -> str:
    try:
        # By stems: all names with the same ending are alike.
        names = {each.stem: each.name for each in path.parent.iterdir() if each.is_file()}
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(path.stem, names, n=1)
    return f" (did you mean '{names[near[0]]}'?)" if near else ""


def _check_defines(code: Code) -> None:
    try:
        names = set(bound_names(parsed(code.file.path)))
    except NotPython as error:
        raise DataError(f"{code.file.name}{error}") from None
    if code.attribute not in names and "*" not in names:
        hint = suggest(code.attribute, sorted(names))
        raise DataError(f"{code.file.name} defines no {code.attribute!r}{hint}")
