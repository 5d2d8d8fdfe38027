"""Tables as numbers for programs: CSV with plain columns, in full precision."""

from __future__ import annotations

import pandas as pd

from ..tables import Cell, Table

#: Formats of tables.
WRITTEN = ("csv", "tex")


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as CSV in UTF-8: an unknown value is empty, an infinite one "inf".

    Floats have as many digits as it takes to read the same numbers again.
    """
    return frame.to_csv(index=False, lineterminator="\n").encode()


def frame_of(table: Table) -> pd.DataFrame:
    """What a table says, not formatted; of a table of texts the texts.

    Returns
    -------
    DataFrame
        The numbers of the table, or else a column for each heading, followed where there is any by
        what stands below its values, as "HEADING (range)" and "HEADING (note)".
    """
    if table.numbers is not None:
        return table.numbers
    columns: dict[str, list[str]] = {}
    for place, heading in enumerate(table.headings):
        cells = [row[place] for row in table.rows]
        columns[_unused(heading.title, columns)] = [_text(cell) for cell in cells]
        for name in ("range", "note"):
            below = [str(getattr(cell, name)) for cell in cells]
            if any(below):
                columns[_unused(f"{heading.title} ({name})", columns)] = below
    return pd.DataFrame(columns)


def _text(cell: Cell) -> str:
    """The value of a cell, in full where the page abbreviates it."""
    return cell.hint or cell.value


def _unused(title: str, taken: dict[str, list[str]]) -> str:
    number, found = 1, title
    while found in taken:
        number += 1
        found = f"{title} {number}"
    return found
