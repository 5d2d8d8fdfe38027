"""Run records: what is stored of one run.

What all kinds of studies have in common is declared here; each kind adds columns of its own. The
declaration gives the line of a record in the journal and the columns of ``runs.parquet``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache, partial
from itertools import accumulate, chain
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

import pyarrow as pa
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from ..errors import RecordError
from .measures import Measure, column, columns_of

SCHEMA_VERSION = 9

Status = Literal[
    "converged",
    "no_separator",
    "budget",
    "timeout",
    "memory",
    "crashed",
    "failed",
    "diverged",
    "wrong",
    "skipped",
]
#: Statuses of runs that went as planned; every other one makes the command exit with 1.
EXPECTED_STATUSES: frozenset[Status] = frozenset({"converged", "no_separator", "budget", "skipped"})

_WALL = Measure(
    "Wall time",
    "wall-clock seconds",
    "seconds",
    table=90,
    meaning="Time on the clock meanwhile. A busy machine stretches it more than CPU time.",
)
CPU = Measure(
    "CPU time",
    "CPU seconds",
    "seconds",
    short="CPU",
    table=80,
    meaning="CPU time of the process inside the solver, loading, compiling, scoring excluded.",
)
_TEST_ERROR = Measure(
    "Test error",
    "test error",
    "percent",
    better="lower",
    short="test error",
    table=10,
    meaning="The share of test points that the model at the end of the run gets wrong.",
)
TRAIN_ERROR = Measure(
    "Train error",
    "train error",
    "percent",
    table=20,
    meaning="The share of training points that this model gets wrong.",
)
_ITERATIONS = Measure(
    "Iterations",
    "iterations",
    "integer",
    short="iterations",
    meaning="Iterations of the method until the run ended.",
)


@dataclass(frozen=True, kw_only=True)
class CheckpointBase:
    """A checkpoint of a run of any kind."""

    n_iter: int | None = column(
        "iterations done; null: the solver does not tell", low=0, measure=_ITERATIONS
    )
    counters: dict[str, int] | None = column(
        "counts by name; null: the solver is not instrumented", default=None
    )
    wall_s: float = column("seconds inside the solver, evaluation excluded", measure=_WALL)
    test_error: float | None = column(
        "fraction in [0, 1]", default=None, low=0, high=1, measure=_TEST_ERROR
    )


@dataclass(kw_only=True)
class RecordBase:
    """The outcome of one run of any kind. Field by field the columns of the stored table."""

    #: Name of the kind of study.
    kind: ClassVar[str]
    #: What its trace is made of.
    checkpoint: ClassVar[type[CheckpointBase]]

    # what was run
    schema_version: int = column("version of the schema", default=SCHEMA_VERSION)
    key: str = column("SHA-256 of all that determines the run")
    key_parts: str = column(
        "what the key is made of: the JSON of which it is the hash; {}: not known",
        default="{}",
        json="object",
    )
    version: str = column(
        "of the solver's code: ten digits of its hash, the commit if it is known; empty: not known",
        default="",
    )
    study: str = column("name of the study")
    task: str = column("label of the task, unique in the study")
    solver: str = column("label of the solver, unique in the study")
    solver_class: str = column('"module:Class" or "file.py:Class"')
    params: str = column("every parameter of the solver", default="{}", json="object")
    seed: int = column("seed of the run, or number of the instance", low=0)
    budget: str = column("the limits by name: seconds, megabytes", default="{}", json="object")
    # how it ended
    status: Status = column("how it ended", default="failed")
    reason: str = column("one line; empty when there is nothing to say", default="")
    traceback: str = column("of a run that raised or crashed", default="")
    started_at: str = column("ISO 8601, UTC", default="")
    # costs
    n_iter: int | None = column("iterations done", default=None, low=0, measure=_ITERATIONS)
    counters: dict[str, int] | None = column(
        "counts by name; null: the solver is not instrumented", default=None
    )
    wall_s: float | None = column(
        "wall-clock seconds inside the solver, evaluation excluded", default=None, measure=_WALL
    )
    cpu_s: float | None = column("CPU seconds of the process meanwhile", default=None, measure=CPU)
    compile_s: float | None = column("seconds of building and warming up", default=None)
    evaluation_s: float | None = column("seconds of scoring", default=None)
    data_s: float | None = column("seconds of loading or generating the data", default=None)
    peak_memory_mb: float | None = column(
        "largest resident memory of the worker, 10^6 bytes",
        default=None,
        measure=Measure("Memory", "peak memory", "megabytes", short="memory"),
    )
    # scores, recomputed by the harness from what the solver returned
    train_error: float | None = column(
        "fraction in [0, 1]", default=None, low=0, high=1, measure=TRAIN_ERROR
    )
    test_error: float | None = column(
        "fraction in [0, 1]", default=None, low=0, high=1, measure=_TEST_ERROR
    )
    # setting
    jobs: int = column("runs at the same time", default=1)
    threads: int = column("threads of numeric libraries", default=1)
    environment: str = column("software and machine", default="{}", json="object")
    trace: list[Any] = column("the checkpoints", default=[])

    @classmethod
    def parsed(cls, values: Any) -> dict[str, Any]:
        """Columns that came from another process; a ValueError if a record cannot have them."""
        return parsed_columns(cls, values)

    @property
    def impossible(self) -> str:
        """Why no run can have these values; empty if one can."""
        try:
            self.parsed(vars(self))
            for state in self.trace:
                parsed_columns(self.checkpoint, vars(state))
        except ValueError as error:
            return str(error)
        return ""

    def take(self, columns: Mapping[str, Any]) -> None:
        """Fill in columns from the outcome of the run."""
        for name, value in columns.items():
            setattr(self, name, value)

    def take_last_checkpoint(self) -> None:
        """Fill in the counts and scores of the last checkpoint: those of a run that was killed."""
        if self.trace:
            names = {item.name for item in fields(self)} - {"wall_s"}
            self.take({k: v for k, v in vars(self.trace[-1]).items() if k in names})

    def values(self) -> dict[str, Any]:
        """All columns as JSON takes them; of the trace a list for each column."""
        names = [item.name for item in fields(self.checkpoint)]
        trace = {name: [getattr(state, name) for state in self.trace] for name in names}
        return {"kind": self.kind, **vars(self), "trace": trace}


def record_of(values: Mapping[str, Any]) -> RecordBase:
    """The record, of whatever kind, with these :meth:`~RecordBase.values`; else a RecordError."""
    from .feasibility import FeasibilityRecord
    from .svm import Record

    types: dict[str, type[RecordBase]] = {"svm": Record, "feasibility": FeasibilityRecord}
    kind = str(values.get("kind"))
    if kind not in types:
        names = " and ".join(types)
        raise RecordError(f"a record of the kind {kind!r}, this release knows {names}")
    cls = types[kind]
    check_columns(cls, values)
    columns = {name: _numbers(cls.checkpoint, name, v) for name, v in values["trace"].items()}
    states = zip(*columns.values(), strict=True)
    trace = [cls.checkpoint(**dict(zip(columns, state, strict=True))) for state in states]
    row = {name: _numbers(cls, name, [v])[0] for name, v in values.items() if name != "kind"}
    return cls(**row | {"trace": trace})


def check_columns(cls: Any, values: Mapping[str, Any]) -> None:
    """RecordError if the columns are not those of the schema."""
    columns, of_trace = columns_of(cls).keys() | {"kind"}, columns_of(cls.checkpoint).keys()
    unknown = sorted(values.keys() ^ columns) or sorted(values["trace"].keys() ^ of_trace)
    if unknown:
        raise RecordError(f"columns differ from the schema: {', '.join(unknown)}")


def _numbers(declared: Any, name: str, values: list[Any]) -> list[Any]:
    """The values of a column; numbers that JSON has no words for are texts in a journal."""
    if name not in _floats(declared):
        return values
    return [float(value) if isinstance(value, str) else value for value in values]


@cache
def _floats(declared: Any) -> frozenset[str]:
    return frozenset(n for n, hint in get_type_hints(declared).items() if _is_of(float, hint))


def parsed_columns(declared: Any, values: Any) -> dict[str, Any]:
    """Columns that came from another process; a ValueError if no run can have them."""
    if not isinstance(values, dict):
        raise ValueError("no columns of a record")
    adapters, parsed = _adapters(declared), {}
    for name, value in values.items():
        if name not in adapters:
            raise ValueError(f"no column {name!r:.40}")
        try:
            parsed[name] = adapters[name].validate_python(value)
        except ValidationError:
            raise ValueError(f"{name} is {value!r:.40}") from None
    return parsed


@cache
def _adapters(declared: Any) -> dict[str, TypeAdapter[Any]]:
    """What checks a value of each column."""
    hints, adapters = get_type_hints(declared), {}
    for name, item in columns_of(declared).items():
        hint = hints[name]
        if _is_of(int, hint):
            # All of them count something.
            hint = Annotated[hint, Field(ge=int(item.low or 0), lt=2**63)]
        elif item.low is not None or item.high is not None:
            hint = Annotated[hint, Field(ge=item.low, le=item.high)]
        elif item.json:
            hint = Annotated[hint, AfterValidator(partial(_checked_json, kind=item.json))]
        elif name == "counters":
            hint = dict[str, Annotated[int, Field(ge=0, lt=2**63)]] | None
        adapters[name] = TypeAdapter(hint)
    return adapters


def _is_of(plain: type, hint: Any) -> bool:
    return hint is plain or plain in get_args(hint)


@lru_cache(64)
def _checked_json(text: str, kind: str) -> str:
    """The text, if it is that of a JSON object, or of an array of objects ("array")."""
    value = json.loads(text)
    items = value if isinstance(value, list) else [value]
    if isinstance(value, list) != (kind == "array") or not all(isinstance(i, dict) for i in items):
        raise ValueError(f"no JSON {kind}")
    return text


def schema_of(record_type: Any) -> pa.Schema:
    """The schema of the stored table, from the declarations of the columns."""
    trace = pa.list_(pa.struct(_arrow_fields(record_type.checkpoint)))
    columns = [
        pa.field(item.name, trace) if item.name == "trace" else item
        for item in _arrow_fields(record_type)
    ]
    return pa.schema([pa.field("kind", pa.string()), *columns])


def table_of(record_type: type[RecordBase], rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The table of records of a kind, each given by its :meth:`~RecordBase.values`."""
    schema = schema_of(record_type)
    arrays = []
    for item in schema:
        values = [row[item.name] for row in rows]
        if item.name == "trace":
            states = []
            for state in item.type.value_type:
                flat = [*chain.from_iterable(trace[state.name] for trace in values)]
                flat = _numbers(record_type.checkpoint, state.name, flat)
                states.append(pa.array(flat, state.type))
            ends = accumulate((len(trace["wall_s"]) for trace in values), initial=0)
            structs = pa.StructArray.from_arrays(states, fields=[*item.type.value_type])
            arrays.append(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, item.type))
        else:
            arrays.append(pa.array(_numbers(record_type, item.name, values), item.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _arrow_fields(declared: type) -> list[pa.Field]:
    hints = get_type_hints(declared)
    return [pa.field(item.name, _arrow_type(hints[item.name])) for item in fields(declared)]


def _arrow_type(hint: Any) -> pa.DataType:
    """The type of a column from its annotation; None is null."""
    members = get_args(hint)
    plain = members[0] if type(None) in members else hint
    if plain == dict[str, int]:
        return pa.map_(pa.string(), pa.int64())
    types = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    return types.get(plain, pa.string())
