"""Measures: the quantities of a run, each declared once, with the column that holds it.

The declaration of a column (:func:`column`) gives the schema of the records and its documentation,
the words on axes, and the headings of tables on the page and in the terminal.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Literal

from ...solvers.numeric.counters import FeasibilityCounters

#: How a value reads: a fraction as a percentage, a count with a prefix, a whole number in full,
#: a time, a power of ten, a plain number, megabytes.
Format = Literal["percent", "count", "integer", "seconds", "scientific", "number", "megabytes"]


@dataclass(frozen=True)
class Measure:
    """A quantity of a run."""

    title: str  # as the heading of a column
    words: str  # in a sentence and on an axis
    format: Format
    # Empty where values of different solvers are not ranked.
    better: Literal["lower", "higher", ""] = ""
    short: str = ""  # the heading in the terminal; empty: tables there leave it out
    # Its place among the columns of a table of results, in ascending order; 0: it is in none.
    table: int = 0
    needs: str = ""  # a trait that the solver must have ("instrumented", "minimises")
    absent: str = ""  # why there is no value of a solver without that trait
    # Why there may be no value otherwise; empty: it was not counted, or is not known.
    unknown: str = ""
    meaning: str = ""  # a sentence for readers of tables; empty: what the words say


@dataclass(frozen=True)
class Column:
    """What a column of a record holds."""

    doc: str  # its meaning, with the unit
    json: Literal["", "object", "array"] = ""  # whether it is a text that holds such a JSON value
    low: float | None = None  # the range that values must be in
    high: float | None = None
    measure: Measure | None = None  # how it is shown, if it is a quantity of the run


def column(doc: str, *, default: Any = MISSING, **about: Any) -> Any:
    """A field of a record or checkpoint, see :class:`Column`; a column of the stored table."""
    metadata = {"column": Column(doc, **about)}
    if isinstance(default, dict | list):
        return field(default_factory=type(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@cache
def columns_of(record_type: type) -> dict[str, Column]:
    """The columns of a type of records or checkpoints by name, in the order of the schema."""
    return {item.name: item.metadata["column"] for item in fields(record_type)}


@cache
def measures_of(record_type: type) -> dict[str, Measure]:
    """The measures of a type of records or checkpoints by column, the counters among them."""
    measures = {
        name: item.measure
        for name, item in columns_of(record_type).items()
        if item.measure is not None
    }
    return measures | counter_measures()


_COUNTED = {
    "kernel_evals": "Kernel entries that the method asks for, as if nothing were cached.",
    "kernel_evals_computed": "Kernel entries that were really computed.",
    "matvecs": "Products of the data's or the kernel's matrix with a vector.",
}


@cache
def counter_measures() -> dict[str, Measure]:
    """The counters of all solvers as measures, by name."""
    return {
        item.name: Measure(
            item.metadata["title"],
            item.metadata["words"],
            "count",
            needs="instrumented",
            absent="not instrumented",
            meaning=_COUNTED.get(item.name, ""),
        )
        for item in fields(FeasibilityCounters)
    }
