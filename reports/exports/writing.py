"""Write files into a folder: each whole or not at all, and never over what is another's."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...data_loaders.atomic import replacing
from ...harness.interrupts import interrupts_deferred
from ...harness.storage import exclusive, holds, storing
from ..errors import ReportError

#: The file that lists the others, and the one with their digests alone, if a command writes it.
MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
_REMEDY = "make room there or allow writing, or give another folder as --out"


class File(NamedTuple):
    """A file to write."""

    path: str  # below the folder, with slashes
    content: bytes
    about: Mapping[str, Any] = {}  # what the manifest says of it

    @property
    def digest(self) -> str:
        """Its SHA-256."""
        return hashlib.sha256(self.content).hexdigest()


def write_all(
    folder: Path,
    files: Sequence[File],
    format: str,
    *,
    force: bool = False,
    whole: Mapping[str, Any] | None = None,
) -> tuple[list[Path], list[Path]]:
    """Write files and their manifest; the files that are new or changed, and the others.

    Files of earlier calls stay, with what the manifest says of them, but where the new ones are the
    ``whole`` of the folder, of which the manifest says this: then they go. What is not in a
    manifest of this format is another's, and only replaced by ``force``.
    """
    with exclusive(folder):
        found = _recorded(folder, format)
        owned = set() if found is None else {MANIFEST, SUMS, *found}
        recorded = found or {}
        if whole is not None and not (force or owned) and set(os.listdir(folder)) - {".lock"}:
            raise ReportError(
                f"{folder}: is not empty and nothing that marginbench wrote ({MANIFEST} is missing "
                "or damaged); choose a new folder, or write into this one with --force"
            )
        stale = [item for item in files if not holds(folder / item.path, item.content)]
        for name in (MANIFEST, *(item.path for item in stale)):
            path = folder / name
            if os.path.lexists(path) and not ((force or name in owned) and path.is_file()):
                raise ReportError(
                    f"{path}: exists, and marginbench did not write it; move it away, give another "
                    "folder as --out, or replace a file with --force"
                )
        listed = {
            item.path: {"sha256": item.digest, "bytes": len(item.content), **item.about}
            for item in files
        }
        about = {"format": format, **(whole or {})}
        with interrupts_deferred() as look:
            # First: the files of a command that is killed in between are known to the next one.
            _write_manifest(folder, about, recorded | listed)
            for item in stale:
                _write(folder / item.path, item.content)
                look()
            if whole is not None:
                for name in recorded.keys() - listed.keys():
                    _remove(folder, name)
                _write_manifest(folder, about, listed)
    written = {item.path for item in stale}
    return (
        [folder / item.path for item in files if item.path in written],
        [folder / item.path for item in files if item.path not in written],
    )


def _recorded(folder: Path, format: str) -> dict[str, Any] | None:
    """What the folder's manifest says of the files that are there; None without one."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest["format"] != format:
            return None
        files = dict(manifest["files"])
        # A manifest may come from elsewhere: it must not lead out of the folder.
        places = {name: (folder / name).resolve() for name in files}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    root = folder.resolve()
    return {
        name: files[name]
        for name, place in places.items()
        if place.is_relative_to(root) and place.is_file()
    }


def _write_manifest(folder: Path, about: Mapping[str, Any], files: Mapping[str, Any]) -> None:
    values = {**about, "files": dict(sorted(files.items()))}
    text = json.dumps(values, indent=1, ensure_ascii=False)
    # A folder's name may hold bytes that are no text, which become escapes that JSON reads.
    content = f"{text}\n".encode(errors="backslashreplace")
    if not holds(folder / MANIFEST, content):
        _write(folder / MANIFEST, content)


def _write(path: Path, content: bytes) -> None:
    with storing(path, _REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            sink.write(content)


def _remove(folder: Path, name: str) -> None:
    """Remove a file, and the folders that are empty without it."""
    with storing(folder / name, _REMEDY):
        (folder / name).unlink()
    with contextlib.suppress(OSError):
        for parent in [*Path(name).parents][:-1]:
            (folder / parent).rmdir()
