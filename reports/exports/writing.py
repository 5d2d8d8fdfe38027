"""Write the files of an export: whole or not at all, and never over what is not its own."""

from __future__ import annotations

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

#: The file that lists the others.
MANIFEST = "manifest.json"
_FORMAT = "marginbench export 1"
_REMEDY = "make room there or allow writing, or give another folder as --out"


class File(NamedTuple):
    """A file of an export."""

    path: str  # below the folder of the export, with slashes
    content: bytes
    about: dict[str, Any]  # what the manifest says of it


def write_all(
    folder: Path, files: Sequence[File], *, force: bool = False
) -> tuple[list[Path], list[Path]]:
    """Write files and their manifest; the files that are new or changed, and the others.

    The manifest keeps what it says of other files of earlier exports, as long as they are there.
    """
    with exclusive(folder):
        recorded = _recorded(folder)
        stale = [item for item in files if not holds(folder / item.path, item.content)]
        owned = {MANIFEST, *recorded} if recorded else set()
        for name in (MANIFEST, *(item.path for item in stale)):
            path = folder / name
            if os.path.lexists(path) and not ((force or name in owned) and path.is_file()):
                raise ReportError(
                    f"{path}: exists, and no export wrote it; move it away, give another folder as "
                    "--out, or replace a file with --force"
                )
        kept = {path: entry for path, entry in recorded.items() if (folder / path).is_file()}
        listed = kept | {
            item.path: {
                "sha256": hashlib.sha256(item.content).hexdigest(),
                "bytes": len(item.content),
                **item.about,
            }
            for item in files
        }
        manifest = {"format": _FORMAT, "files": dict(sorted(listed.items()))}
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        # A folder's name may hold bytes that are no text, which become escapes that JSON reads.
        content = text.encode(errors="backslashreplace")
        with interrupts_deferred() as look:
            # First: the files of an export that is killed in between are known to the next one.
            if not holds(folder / MANIFEST, content):
                _write(folder / MANIFEST, content)
            for item in stale:
                _write(folder / item.path, item.content)
                look()
    written = {item.path for item in stale}
    return (
        [folder / item.path for item in files if item.path in written],
        [folder / item.path for item in files if item.path not in written],
    )


def _recorded(folder: Path) -> Mapping[str, Any]:
    """The entries of the folder's manifest by path; none without a manifest of an export."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return dict(manifest["files"]) if manifest["format"] == _FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _write(path: Path, content: bytes) -> None:
    with storing(path, _REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            sink.write(content)
