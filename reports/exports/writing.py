"""Write the files of an export: whole or not at all, and never over what is not its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...data_loaders.atomic import replacing
from ...harness.interrupts import interrupts_deferred
from ...harness.storage import exclusive, holds, storing
from ..errors import ReportError

#: The file that lists the others.
MANIFEST = "manifest.json"
_FORMAT = "marginbench export 1"
_REMEDY = "make room there or allow writing, or give another folder as --out"


@dataclass(frozen=True)
class Origin:
    """What a file is made from.

    Attributes
    ----------
    study, results : str
        The study, and its results folder as it was given.
    records : str
        SHA-256 of all that is recorded of its runs.
    commits : tuple of str
        Of the code that made the records.
    marginbench, matplotlib : str
        The versions that made the file; figures depend on both.
    """

    study: str
    results: str
    records: str
    commits: tuple[str, ...]
    marginbench: str
    matplotlib: str


@dataclass(frozen=True)
class Artefact:
    """A file of an export.

    Attributes
    ----------
    path : str
        Below the folder of the export, with slashes.
    what : {"figure", "table", "data"}
    name, title : str
    command : str
        Makes it again.
    content : bytes
    """

    path: str
    what: str
    name: str
    title: str
    command: str
    content: bytes

    def entry(self, origin: Origin) -> dict[str, Any]:
        """What the manifest says of it."""
        return {
            "sha256": _digest(self.content),
            "bytes": len(self.content),
            "what": self.what,
            "name": self.name,
            "title": self.title,
            "command": self.command,
            **asdict(origin),
            "commits": list(origin.commits),
        }


def write_all(
    folder: Path, artefacts: Iterable[Artefact], origin: Origin, *, force: bool = False
) -> tuple[list[Path], list[Path]]:
    """Write files and their manifest; existing files with the same bytes stay.

    The manifest keeps what it says of other files of earlier exports to the folder, as long as they
    are there.

    The files, without the manifest.
    """
    artefacts = list(artefacts)
    with exclusive(folder):
        recorded = _recorded(folder, force=force)
        stale = [item for item in artefacts if not holds(folder / item.path, item.content)]
        if not force:
            _check_own([folder / item.path for item in stale], folder, recorded, origin)
        kept = {path: entry for path, entry in recorded.items() if (folder / path).is_file()}
        entries = {item.path: item.entry(origin) for item in artefacts}
        with interrupts_deferred() as look:
            if stale:
                # If this process is killed, the next export knows old and new files as its own.
                begun = {item.path: _begun(folder, item, origin) for item in stale}
                _write_manifest(folder, {**kept, **entries, **begun})
            for item in stale:
                _write(folder / item.path, item.content)
                look()
            _write_manifest(folder, {**kept, **entries})
    written = {item.path for item in stale}
    return (
        [folder / item.path for item in artefacts if item.path in written],
        [folder / item.path for item in artefacts if item.path not in written],
    )


def _begun(folder: Path, item: Artefact, origin: Origin) -> dict[str, Any]:
    """The entry of a file that is about to be written, with the one that it replaces."""
    path = folder / item.path
    replaces = _digest(path.read_bytes()) if path.is_file() else ""
    return {**item.entry(origin), "replaces": replaces}


def _write_manifest(folder: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    listed = {"format": _FORMAT, "files": dict(sorted(entries.items()))}
    content = (json.dumps(listed, indent=1, ensure_ascii=False) + "\n").encode()
    if not holds(folder / MANIFEST, content):
        _write(folder / MANIFEST, content)


def _recorded(folder: Path, *, force: bool) -> Mapping[str, Mapping[str, Any]]:
    """The entries of the folder's manifest by path; none without one."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["format"] != _FORMAT:
            raise ValueError(manifest["format"])
        return {str(name): dict(entry) for name, entry in manifest["files"].items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ReportError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        if force:
            return {}
        raise ReportError(
            f"{path}: is not a manifest of this release; give another folder as --out, or use "
            "--force to replace it"
        ) from None


def _check_own(
    paths: list[Path], folder: Path, recorded: Mapping[str, Mapping[str, Any]], origin: Origin
) -> None:
    """Refuse to replace what others wrote or changed, or what is of other results."""
    reasons = {path: _not_ours(path, folder, recorded, origin) for path in paths}
    foreign = [(path, reason) for path, reason in reasons.items() if reason]
    if foreign:
        path, reason = foreign[0]
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        raise ReportError(
            f"{path}: {reason}{more}; move it away, give another folder as --out, or use --force "
            "to replace it"
        )


def _not_ours(
    path: Path, folder: Path, recorded: Mapping[str, Mapping[str, Any]], origin: Origin
) -> str:
    """Why a path is not to be replaced; empty if it is ours, or free."""
    if not path.exists() and not path.is_symlink():
        return ""
    if not path.is_file():
        return "is in the way and no file"
    entry = recorded.get(path.relative_to(folder).as_posix())
    if entry is None:
        return "exists, and no export wrote it"
    if _digest(path.read_bytes()) not in (entry.get("sha256"), entry.get("replaces")):
        return "has been changed since it was exported"
    if entry.get("study") != origin.study or not _same(entry.get("results"), origin.results):
        return f"is of other results ({entry.get('results')})"
    return ""


def _same(one: object, other: str) -> bool:
    try:
        return Path(str(one)).resolve() == Path(other).resolve()
    except ValueError:  # no path at all, as with a null character
        return False


def _write(path: Path, content: bytes) -> None:
    with storing(path, _REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as sink:
            sink.write(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
