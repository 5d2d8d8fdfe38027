"""What a site holds, and how a new one takes the place of the one before.

All new files are written to a folder in the site, ``.publishing``, first. Then the entries of the
site's root (``index.html``, ``studies/``...) are exchanged by renaming, whole. ``manifest.json``
names those that ``publish`` wrote, old and new ones before the exchange: if a command is killed in
it, the next one knows them all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...data_loaders.atomic import replacing
from ...harness.storage import storing
from ..errors import ReportError

MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
_STAGING, _OLD = ".publishing", ".old"
_FORMAT, _VERSION = "marginbench site", 1
_REMEDY = "make room there or allow writing, then publish again"


def owned_entries(site: Path, *, force: bool = False) -> frozenset[str]:
    """The entries of a site's root that ``publish`` wrote; none of a new or empty folder."""
    try:
        values = json.loads((site / MANIFEST).read_bytes())
        if (values["format"], values["version"]) == (_FORMAT, _VERSION):
            # A manifest may come with a site from elsewhere: it must not lead out of the folder.
            return frozenset(name for name in values["entries"] if re.fullmatch(r"\w[^/\\]*", name))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    others = {item.name for item in site.iterdir()} - {_STAGING, ".lock"}
    if others and not force:
        raise ReportError(
            f"{site}: is not empty and no site of marginbench ({MANIFEST} is missing or damaged); "
            "choose a new folder, or write into this one with --force (nothing in it is removed)"
        )
    return frozenset()


@contextlib.contextmanager
def staging(site: Path) -> Iterator[Path]:
    """The folder for the new files of a site, which is empty and goes at the end of the block."""
    folder = site / _STAGING
    try:
        with storing(folder, _REMEDY):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def stage(staged: Path, name: str, content: bytes) -> None:
    """Write a new file of the site where it waits for the others."""
    path = staged / name
    with storing(path, _REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def exchange(
    site: Path, staged: Path, owned: Iterable[str], about: Mapping[str, Any], *, force: bool = False
) -> int:
    """Put the new files in the place of those that ``publish`` wrote before; how many they are."""
    paths = sorted(path for path in staged.rglob("*") if path.is_file())
    sums = {}
    for path in paths:
        with path.open("rb") as source:
            name = path.relative_to(staged).as_posix()
            sums[name] = hashlib.file_digest(source, "sha256").hexdigest()
    files = {
        name: {"bytes": (staged / name).stat().st_size, "sha256": digest}
        for name, digest in sums.items()
    }
    lines = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    stage(staged, SUMS, lines.encode())
    new = {path.name for path in staged.iterdir()}
    for path in (site / name for name in new.difference(owned)):
        if os.path.lexists(path) and not (force and path.is_file()):
            raise ReportError(
                f"{path}: stands where a page belongs and was not written by 'publish'; move it"
                + (", or replace it with --force" if path.is_file() else "")
            )
    old = staged / _OLD
    with storing(site, _REMEDY):
        old.mkdir()
        described = {"format": _FORMAT, "version": _VERSION, **about}
        _write(site, described | {"entries": sorted(new.union(owned)), "files": files})
        for name in sorted(new.union(owned)):
            if os.path.lexists(site / name):
                os.replace(site / name, old / name)
            if name in new:
                os.replace(staged / name, site / name)
        _write(site, described | {"entries": sorted(new), "files": files})
    return len(files)


def _write(site: Path, values: Mapping[str, Any]) -> None:
    with replacing(site / MANIFEST) as sink:
        sink.write((json.dumps(values, indent=1) + "\n").encode())
