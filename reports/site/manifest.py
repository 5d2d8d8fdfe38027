"""What a site holds: the files that ``publish`` wrote, and how others take their place.

``manifest.json`` lists every file with its size and SHA-256. Files are written to a folder beside
them first and then renamed, one by one; the manifest that lists the old and the new ones is written
before, so that the next command recognises whatever a killed one leaves.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ...data_loaders.atomic import replacing
from ...harness.storage import holds, storing
from ..errors import ReportError

MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
#: Holds the new files until they are all there.
STAGING = ".publishing"
_LOCK = ".lock"
_FORMAT = "marginbench site"
_VERSION = 1
_REMEDY = "make room there or allow writing, then publish again"


@dataclass(frozen=True)
class Manifest:
    """The files of a site, by their path from its root.

    Attributes
    ----------
    files : mapping of str to str
        The SHA-256 of each.
    sizes : mapping of str to int
        Their bytes.
    earlier : mapping of str to str
        What an unfinished command may have left: files of the site as it was before.
    about : mapping
        The studies and the solvers of the site.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    earlier: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def hashes_of(self, path: str) -> set[str]:
        """What a file that ``publish`` wrote there may be; empty where it wrote none."""
        return {hashes[path] for hashes in (self.files, self.earlier) if path in hashes}

    @property
    def paths(self) -> set[str]:
        """All files that ``publish`` wrote."""
        return {*self.files, *self.earlier}

    def encoded(self) -> bytes:
        """The content of ``manifest.json``."""
        values: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, **self.about}
        values["files"] = {
            path: {"bytes": self.sizes[path], "sha256": self.files[path]}
            for path in sorted(self.files)
        }
        if self.earlier:
            values["earlier"] = dict(sorted(self.earlier.items()))
        return (json.dumps(values, indent=1, ensure_ascii=True) + "\n").encode()


@dataclass(frozen=True)
class Changes:
    """What has changed in a site.

    Attributes
    ----------
    written, unchanged, removed : int
        Files.
    kept : tuple of str
        Files that ``publish`` once wrote and no longer needs, but that were changed since.
    """

    written: int
    unchanged: int
    removed: int
    kept: tuple[str, ...]


def read_manifest(site: Path, *, force: bool = False) -> Manifest:
    """The manifest of a site; an empty one of a folder that is new or empty."""
    path = site / MANIFEST
    manifest = _parsed(path)
    if manifest is not None:
        return manifest
    others = {item.name for item in site.iterdir()} - {STAGING, _LOCK}
    if others and not force:
        raise ReportError(
            f"{site}: is not empty and no site of marginbench ({MANIFEST} is missing or damaged); "
            "choose a new folder, or write into this one with --force (nothing in it is removed)"
        )
    return Manifest()


def _parsed(path: Path) -> Manifest | None:
    try:
        values = json.loads(path.read_bytes())
        if values["format"] != _FORMAT or values["version"] != _VERSION:
            return None
        files = {name: str(item["sha256"]) for name, item in values["files"].items()}
        sizes = {name: int(item["bytes"]) for name, item in values["files"].items()}
        earlier = {name: str(item) for name, item in values.get("earlier", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    # A manifest may come with a site from elsewhere: it must not lead out of the folder.
    inside = all(_is_inside(name) for name in (*files, *earlier))
    return Manifest(files, sizes, earlier) if inside else None


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def stage(site: Path, name: str, content: bytes) -> None:
    """Write a new file of the site where it waits for the others."""
    path = site / STAGING / name
    with storing(path, _REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())


def clear_staging(site: Path) -> None:
    """Remove what a command that was killed has left there."""
    path = site / STAGING
    with storing(path, _REMEDY), contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


def replace_files(
    site: Path, before: Manifest, about: Mapping[str, Any], *, force: bool = False
) -> Changes:
    """Put the staged files in their places, and remove those that are no longer needed.

    Files that are as they should be are not touched.
    """
    staged = site / STAGING
    paths = staged.rglob("*") if staged.is_dir() else ()
    names = sorted(path.relative_to(staged).as_posix() for path in paths if path.is_file())
    files = {name: _hash_of(staged / name) for name in names}
    sizes = {name: (staged / name).stat().st_size for name in names}
    present = {name: _hash_of(site / name) for name in names if (site / name).is_file()}
    changed = [name for name in names if present.get(name) != files[name]]
    _check_places(site, changed, set() if force else set(present) - before.paths)
    old = {name: digest for name, digest in {**before.earlier, **before.files}.items()
           if files.get(name) != digest}  # fmt: skip
    stale = [name for name in old if name not in files]
    if changed or stale:
        _write(site, MANIFEST, Manifest(files, sizes, old, about).encoded())
    for path in (site / name for name in changed):
        with storing(path, _REMEDY):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(staged / path.relative_to(site), path)
    kept = tuple(name for name in sorted(stale) if not _removed(site, name, before))
    _finish(site, Manifest(files, sizes, about=about))
    clear_staging(site)
    return Changes(len(changed), len(names) - len(changed), len(stale) - len(kept), kept)


def _check_places(site: Path, names: Iterable[str], foreign: set[str]) -> None:
    for name in names:
        path = site / name
        if name in foreign:
            raise ReportError(
                f"{path}: stands where a page belongs and was not written by 'publish'; move it, "
                "or replace it with --force"
            )
        for part in (path, *path.parents[: len(PurePosixPath(name).parts) - 1]):
            if part.is_symlink() or (part.exists() and part.is_dir() == (part == path)):
                raise ReportError(f"{part}: stands where a page belongs; move it")


def _hash_of(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _removed(site: Path, name: str, before: Manifest) -> bool:
    """Remove a file that is as it was written, and the folders that this leaves empty."""
    path = site / name
    inside = not any(part.is_symlink() for part in (path, *path.parents) if part != site
                     and site in part.parents)  # fmt: skip
    with storing(path, _REMEDY):
        if not path.exists():
            return True
        if not inside or not path.is_file() or _hash_of(path) not in before.hashes_of(name):
            return False
        path.unlink()
        for folder in path.parents[: len(PurePosixPath(name).parts) - 1]:
            if any(folder.iterdir()):
                break
            folder.rmdir()
    return True


def _finish(site: Path, manifest: Manifest) -> None:
    """The list of sums, for ``sha256sum -c``, and the manifest."""
    content = manifest.encoded()
    sums = {**manifest.files, MANIFEST: hashlib.sha256(content).hexdigest()}
    lines = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    _write(site, SUMS, lines.encode())
    _write(site, MANIFEST, content)


def _write(site: Path, name: str, content: bytes) -> None:
    """Write a file of the root, unless it is what it should be."""
    path = site / name
    with storing(path, _REMEDY):
        if holds(path, content):
            return
        # Where whatever is left of it is removed with the other files.
        (site / STAGING).mkdir(exist_ok=True)
        with replacing(path, site / STAGING / f"{name}.part") as sink:
            sink.write(content)
