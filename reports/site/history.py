"""The history of regressions as a part of a site: read, placed, and linked both ways."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ReportError
from ..regressions.asv_files import Snapshot, read_results
from ..regressions.history import History, histories
from ..regressions.pages import Surroundings, render_history
from ..regressions.repository import Repository

#: The folder of the site.
FOLDER = "regressions"
_CONFIGURATION = "asv.conf.json"


@dataclass(frozen=True)
class SiteHistory:
    """What was measured commit by commit.

    Attributes
    ----------
    lanes : sequence of History
        Never empty; the first one is shown first.
    commit_url : str
        What a hash is put behind to show the commit on the web; empty for none.
    """

    lanes: Sequence[History]
    commit_url: str = ""

    @property
    def verdict(self) -> str:
        """That on the newest commit."""
        return self.lanes[0].verdict

    @property
    def bad(self) -> bool:
        """Whether the newest commit made something worse."""
        return self.lanes[0].bad

    def page(self) -> bytes:
        """The page of the regressions, in its folder of the site."""
        return render_history(
            self.lanes, Surroundings("../index.html", commit_url=self.commit_url)
        ).encode()


def read_history(folder: Path, checkout: Path | None = None) -> SiteHistory:
    """Read asv's results and what git knows of their commits.

    Parameters
    ----------
    folder : Path
        asv's ``results_dir``.
    checkout : Path, optional
        A folder of the repository of the commits. By default the one in which ``folder`` lies, else
        the one of the current folder, if it has any of the commits.

    Raises
    ------
    ReportError
        If the folder holds no results or damaged ones, or the checkout is none.
    """
    snapshots = read_results(folder)
    repository = Repository(checkout) if checkout else _found(folder, snapshots)
    url = _commit_url(repository.root) if repository else ""
    return SiteHistory(histories(snapshots, repository), url)


def _found(folder: Path, snapshots: Sequence[Snapshot]) -> Repository | None:
    commits = sorted({each.commit for each in snapshots})
    for place in (folder, Path.cwd()):
        try:
            repository = Repository(place)
        except ReportError:
            continue
        if repository.ordered(commits):
            return repository
    return None


def _commit_url(root: Path) -> str:
    """``show_commit_url`` of asv's configuration; empty unless it is an address of the web."""
    try:
        lines = (root / _CONFIGURATION).read_text(encoding="utf-8").splitlines()
        # asv allows lines of comments.
        content = json.loads("\n".join(line for line in lines if line.lstrip()[:2] != "//"))
    except (OSError, ValueError, RecursionError):
        return ""
    found = content.get("show_commit_url") if isinstance(content, dict) else None
    known = isinstance(found, str) and found.startswith(("https://", "http://"))
    return str(found) if known else ""
