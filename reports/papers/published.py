"""What a paper printed: tables, numbers and claims, read from its file in ``studies/published``.

Every cell of a table and every claim becomes a :class:`Row`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...data_loaders import suggest
from ...harness.study.toml import load_study
from ..errors import ReportError
from ..formatting import slug

PAPERS = ("sbp12", "bsca18", "mpfp14", "cuts08", "bmrm07")
Scale = Literal["small", "full"]
#: Measures that depend on the machine: a time by itself compares with no printed one.
TIMES = frozenset(
    {"wall_s", "cpu_s", "merge_s", "seconds_to_error", "seconds_to_risk", "seconds_per_iteration"}
)
#: How a unit turns a measured value into what is printed.
UNITS: Mapping[str, float] = {"": 1.0, "%": 100.0, "s": 1.0, "ratio": 1.0, "points": 100.0}


class _Published(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(_Published):
    """A study whose records can stand for what the paper did."""

    study: str  # one that ships with marginbench
    scale: Scale  # with which ``--scale`` it is run
    where: str = ""  # which of its runs, as ``run --where`` takes it; empty: all that rows need
    differs: str = ""  # how its conditions differ from the paper's; empty: as far as it tells, not
    # The paper's word -> label in the study. Those that are named here are the only ones that this
    # source has; without any, labels are the paper's words.
    tasks: dict[str, str] = Field(default_factory=dict)
    solvers: dict[str, str] = Field(default_factory=dict)


class Against(_Published):
    """The other side of a ratio or difference: what is not given is as on the first side."""

    task: str = ""
    solver: str = ""
    measure: str = ""
    at: float | None = None


class Row(_Published):
    """A printed number or a claim, and the measured quantity that it is held against."""

    id: str  # unique in the paper: what ``--only`` takes, or begins with
    place: str = Field(min_length=1)  # where the paper has it
    says: str = Field(min_length=1)  # in our words
    printed: float | str | None = None  # the number, in its unit; of claims nothing
    sd: float | None = None  # the printed standard deviation
    # What the measured value is held to where that is not what is printed: of a time the ratio of
    # printed times, of a kernel's width the parameter that it gives.
    expected: float | None = None
    unit: Literal["", "%", "s", "ratio", "points"] = ""
    # How far the measured value may be from the printed one: by so much in its unit, or by so large
    # a ratio; and why so far.
    tolerance: float | None = Field(None, ge=0)
    factor: float | None = Field(None, ge=1)
    because: str = ""
    # Of a claim: the bounds of the measured quantity, in the unit.
    below: float | None = None
    above: float | None = None
    # The quantity: see :mod:`.quantities`.
    measure: str = ""
    task: str = ""
    solver: str = ""
    at: float | None = None
    tasks: tuple[str, ...] = ()
    # The "value"; its "ratio" or "difference" to that of ``against``; or its "slope" in logarithms
    # over ``tasks`` of several sizes.
    by: Literal["value", "ratio", "difference", "slope"] = "value"
    against: Against | None = None
    every: bool = False  # whether a claim is about the value of every run, not about their mean
    not_run: str = ""  # why no study has it
    # What we measured that explains a difference; shown only where there is one. The name of a row
    # in braces stands for our value of it.
    explanation: str = ""

    @property
    def is_time(self) -> bool:
        """Whether it is seconds of a machine, and no ratio of them."""
        return self.measure in TIMES and self.by == "value"

    @property
    def is_ours(self) -> bool:
        """Whether it asks what the paper leaves open, or is of a later one: no count has it."""
        return self.id.startswith(("riddle/", "later/"))

    @property
    def is_bounded(self) -> bool:
        """Whether ``below`` and ``above`` hold it, and no tolerance of a printed number does."""
        printed = self.printed if self.expected is None else self.expected
        return not isinstance(printed, float) or self.factor is self.tolerance is None

    @property
    def band(self) -> tuple[float, float]:
        """The values, in the unit, that agree with what is printed."""
        printed = self.printed if self.expected is None else self.expected
        if isinstance(printed, float) and self.factor is not None:
            return printed / self.factor, printed * self.factor
        if isinstance(printed, float) and self.tolerance is not None:
            return printed - self.tolerance, printed + self.tolerance
        low = float("-inf") if self.above is None else self.above
        return low, float("inf") if self.below is None else self.below

    @property
    def sides(self) -> list[tuple[str, str]]:
        """The tasks and solvers that it needs, in the paper's words."""
        pairs = [(task, self.solver) for task in self.tasks or (self.task,)]
        if self.against is not None:
            pairs.append((self.against.task or self.task, self.against.solver or self.solver))
        return list(dict.fromkeys(pairs))


@dataclass(frozen=True)
class Table:
    """A table as it is printed: the rows of its cells, a text where nothing is measured."""

    id: str
    place: str
    title: str
    corner: str
    columns: Sequence[tuple[str, str]]  # group, head
    rows: Sequence[tuple[str, Sequence[Row | str]]]


@dataclass(frozen=True)
class Paper:
    """A paper: where its numbers come from, its tables, and everything else that it says."""

    name: str
    title: str
    citation: str
    note: str
    sources: Sequence[Source]
    tables: Sequence[Table]
    claims: Sequence[Row]

    @property
    def rows(self) -> list[Row]:
        """All that is held against measurements, tables first."""
        cells = (cell for table in self.tables for _, cells in table.rows for cell in cells)
        return [*(cell for cell in cells if isinstance(cell, Row)), *self.claims]

    @cached_property
    def _labels(self) -> dict[str, tuple[set[str], set[str]]]:
        studies = {source.study: load_study(source.study) for source in self.sources}
        return {
            name: ({task.label for task in study.tasks}, {each.label for each in study.solvers})
            for name, study in studies.items()
        }

    def pairs(self, source: Source, row: Row) -> list[tuple[str, str]] | None:
        """The tasks and solvers of a source's study that a row needs; None if it lacks one."""
        tasks, solvers = self._labels[source.study]
        labels = [translated(source, *side) for side in row.sides]
        able = all(task in tasks and solver in solvers for task, solver in labels)
        return labels if able else None

    def chosen(self, only: tuple[str, ...]) -> list[Row]:
        """The rows of these names, or whose names begin so; all for an empty one.

        A ReportError if there is none for one of them.
        """
        for name in only:
            if not any(row.id.startswith(name) for row in self.rows):
                parts = ", ".join(dict.fromkeys(row.id.partition("/")[0] for row in self.rows))
                raise ReportError(f"--only {name}: {self.name} has no such row; it has {parts}")
        whole = {row.id for row in self.rows}.intersection(only)
        begun = tuple(set(only) - whole)
        return [row for row in self.rows if row.id in whole or row.id.startswith(begun)]


def translated(source: Source, task: str, solver: str) -> tuple[str, str]:
    """The labels of a task and a solver in a source's study; empty for what it has not."""
    return (
        source.tasks.get(task, "" if source.tasks else task),
        source.solvers.get(solver, "" if source.solvers else solver),
    )


def read_paper(name: str) -> Paper:
    """What a paper printed; a ReportError if there is no such paper."""
    if name not in PAPERS:
        raise ReportError(f"no paper {name!r}{suggest(name, PAPERS)}")
    file = resources.files("marginbench.studies") / "published" / f"{name}.toml"
    return parsed_paper(name, tomllib.loads(file.read_text("utf-8")))


def parsed_paper(name: str, values: dict[str, Any]) -> Paper:
    """A paper from the values of its file."""
    tables = [_table(item) for item in values.pop("table", [])]
    claims = [row for item in values.pop("claim", []) for row in _claims(item)]
    sources = [Source(**item) for item in values.pop("source", [])]
    return Paper(name=name, sources=sources, tables=tables, claims=claims, **values)


def _claims(item: dict[str, Any]) -> Iterator[Row]:
    """A claim, or one for each of the values that ``each`` lists for a key."""
    each: dict[str, list[Any]] = item.pop("each", {})
    if not each:
        yield _row(item, item.get("id", ""))
        return
    for values in zip(*each.values(), strict=True):
        named = dict(zip(each, map(str, values), strict=True))
        spec = {key: filled(value, named) for key, value in item.items()}
        own = dict(zip(each, values, strict=True))
        fields = {key: value for key, value in own.items() if key in Row.model_fields}
        words = [word for key, word in named.items() if f"{{{key}}}" in item["says"]]
        yield _row(spec | fields, f"{item['id']}/{slug(' '.join(words or named.values()))}")


def filled(value: Any, named: Mapping[str, str]) -> Any:
    """A value with ``{key}`` replaced, also inside tables."""
    if isinstance(value, str):
        for key, word in named.items():
            value = value.replace(f"{{{key}}}", word)
        return value
    if isinstance(value, dict):
        return {key: filled(item, named) for key, item in value.items()}
    return value


def _row(values: Mapping[str, Any], name: str) -> Row:
    printed = values.get("printed")
    return Row(
        **{
            **values,
            "id": name,
            "printed": printed if isinstance(printed, str | None) else float(printed),
        }
    )


def _table(item: dict[str, Any]) -> Table:
    """A table with a row for each cell: its keys are those of the table, row, column and cell.

    ``columns`` have ``head`` and ``group``, ``rows`` have ``head`` and ``cells``. A cell is a
    number, a text, or a table of keys; later keys win. ``texts`` says what printed words mean. With
    ``ratio_to``, the head of a column or row, times are held to their ratio to the cell there.
    """
    columns, rows = item.pop("columns"), item.pop("rows")
    name, title, corner = item.pop("id"), item.pop("title"), item.pop("corner", "")
    texts, unit = item.pop("texts", {}), item.pop("ratio_to", "")
    heads = [(column.pop("group", ""), column.pop("head")) for column in columns]
    cells = [
        [dict(cell) if isinstance(cell, dict) else {"printed": cell} for cell in row.pop("cells")]
        for row in rows
    ]
    words = [row.pop("head") for row in rows]
    lines = []
    for line, (word, row) in enumerate(zip(words, rows, strict=True)):
        made: list[Row | str] = []
        for index, (column, own) in enumerate(zip(columns, cells[line], strict=True)):
            text = own.get("printed")
            if isinstance(text, str):
                if not (text in texts or own.keys() & {"measure", "not_run"}):
                    made.append(text)
                    continue
                own = texts.get(text, {}) | own
            spec = item | row | column | own
            for absent in (row, column):
                if "not_run" in absent:  # whatever the cell would measure
                    spec |= {"measure": "", "not_run": absent["not_run"]}
            head = " ".join(filter(None, heads[index]))
            spec.setdefault("says", f"{word}: {head}")
            if unit and spec.get("measure") in TIMES and not isinstance(text, str):
                other = words.index(unit) if unit in words else line
                there = index if unit in words else [each for _, each in heads].index(unit)
                base = (item | rows[other] | columns[there] | cells[other][there])["solver"]
                if base != spec["solver"]:
                    spec |= {"by": "ratio", "against": {"solver": base}}
                    spec["expected"] = text / cells[other][there]["printed"]
            made.append(_row(spec, f"{name}/{slug(word)}/{slug(head)}"))
        lines.append((word, made))
    return Table(name, item["place"], title, corner, heads, lines)
