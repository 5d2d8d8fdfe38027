"""Whether the page of a results folder would be the same, told without making it.

What the page was made of is kept as a digest in the cache folder: the records (each checked against
its checksum), ``study.json``, the command, and the program with its libraries. If anything differs
or cannot be told, or the page is not as it was written, it is made again.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ..harness.errors import RecordError
from ..harness.hashing import hash_json
from ..harness.results.description import FILE_NAME
from ..harness.results.folders.stamps import (
    program_stamp,
    records_stamp,
    remember,
    remembered,
)
from ..harness.results.store import RecordStore

_WHAT = "page"
#: Variables of the environment that can change the page or the tables.
_VARIABLES = ("COLUMNS", "LANG", "LC_ALL", "TZ", "MPLCONFIGDIR", "MATPLOTLIBRC")


@dataclass(frozen=True)
class PageStamp:
    """What the page of a folder is made of, and how its tables are printed.

    Attributes
    ----------
    folder : Path
        The results folder.
    digest : str
        Of all that the page depends on; empty if that cannot be told.
    terminal : str
        What the printed tables depend on besides.
    """

    folder: Path
    digest: str
    terminal: str

    @classmethod
    def of(cls, folder: Path, command: str, terminal: object = "") -> PageStamp:
        """The stamp of a folder as it is now.

        Parameters
        ----------
        folder : Path
        command : str
            The command line that the page shows.
        terminal : object
            Its width and colours; the ``repr`` counts.
        """
        try:
            records = records_stamp(RecordStore(folder / "runs"))
            study = hashlib.sha256((folder / FILE_NAME).read_bytes()).hexdigest()
        except (RecordError, OSError):
            return cls(folder, "", "")
        variables = [os.environ.get(name) for name in _VARIABLES]
        parts = [sorted(records.items()), study, command, program_stamp(), variables]
        return cls(folder, hash_json([str(folder), parts]), repr(terminal))

    def printed(self) -> str | None:
        """The tables that were printed with this page, if it is still there; otherwise None."""
        known = remembered(self.folder, _WHAT)
        if not self.digest or known.get("digest") != self.digest:
            return None
        if known["page"] != _digest_of(self.folder) or known["terminal"] != self.terminal:
            return None
        return str(known["printed"])

    def keep(self, printed: str) -> None:
        """Keep what was printed with the page that the folder has now."""
        page = _digest_of(self.folder)
        if self.digest and page:
            remember(
                self.folder,
                _WHAT,
                {
                    "digest": self.digest,
                    "page": page,
                    "terminal": self.terminal,
                    "printed": printed,
                },
            )


def _digest_of(folder: Path) -> str:
    """Of the page; empty if there is none."""
    try:
        return hashlib.sha256((folder / "report.html").read_bytes()).hexdigest()
    except OSError:
        return ""
