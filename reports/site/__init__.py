"""A static site of several studies: an overview, their reports and records, and regressions.

Importing this package is light; what writes a site is imported when one is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...harness.results.stores import local_folder


@dataclass(frozen=True)
class PublishedSite:
    """What :func:`publish` wrote.

    Attributes
    ----------
    index : Path
        The page to open.
    studies : int
        Their number.
    files : int
        Files that were written, without the lists of them.
    left_out : tuple of str
        Why results folders were left out, a line each.
    """

    index: Path
    studies: int
    files: int
    left_out: tuple[str, ...] = ()


def publish(
    folders: Iterable[Path | str],
    out: Path | str,
    *,
    title: str = "",
    pages: Mapping[str, Path | str] | None = None,
    force: bool = False,
    keep_going: bool = False,
    history: Path | str | None = None,
    repository: Path | str | None = None,
) -> PublishedSite:
    """Write a static site of results folders, for any web server or to be opened as files.

    The same records give the same files, wherever the folders are. A second call replaces what the
    first one wrote: files that would not change are not touched, those of which there is no study
    any more are removed, and files of others stay.

    Parameters
    ----------
    folders : iterable of Path or str
        Results folders, each with ``study.json`` and ``journal/``; their order makes no difference.
    out : Path or str
        The site's folder: a new one, or that of an earlier call.
    title : str, optional
        The heading of the overview.
    pages : mapping of str to Path or str, optional
        Folders of further static pages by title, each with an ``index.html``. They are copied to
        the site and linked from the overview.
    force : bool
        Write into a folder that has other files, and replace those in the way.
    keep_going : bool
        Leave out results folders that cannot be published instead of raising an error.
    history : Path or str, optional
        asv's folder of results, for pages of regressions commit by commit. With it, there may be no
        results folders.
    repository : Path or str, optional
        A folder of the git checkout that has the commits of ``history``; by default the one around
        ``history`` or the current folder, if there is one.

    Returns
    -------
    PublishedSite

    Raises
    ------
    ReportError
        If a results folder is damaged, or ``out`` is somebody else's folder;
        nothing is written.
    StorageError
        If something cannot be written.
    """
    from .build import write_site

    return write_site(
        [local_folder(folder) for folder in folders],
        Path(out),
        title,
        {name: Path(folder) for name, folder in (pages or {}).items()},
        (
            None if history is None else Path(history),
            None if repository is None else Path(repository),
        ),
        force=force,
        keep_going=keep_going,
    )
