"""Runs and checkpoints as tables in long format, and what each of their columns is."""

from __future__ import annotations

import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...harness.planning.plan import kind_named
from ...harness.results.measures import columns_of, counter_measures
from ..analysis import Analysis
from ..described import SvmTask
from ..numbers import kernel_parameters

#: The tables of data by name, and what a row of each is.
TITLES: Mapping[str, str] = MappingProxyType(
    {
        "runs": "One row for each planned run",
        "traces": "One row for each checkpoint of each run",
        "columns": "What the columns of runs and traces are",
    }
)

# Columns that reports add to those of the records.
_ADDED: Mapping[str, str] = MappingProxyType(
    {
        "kind": "name of the kind of study",
        "ok": "whether the run ended as planned and has a result",
        "instrumented": "whether the solver counts what it evaluates",
        "minimises": "whether the solver minimises the objective of the task",
        "shows_model": "whether the run is judged by its model, not by its predictions alone",
        "evaluations": "sum of kernel entries, inner products and stored matrix entries",
        "evaluations_computed": "the same of those really computed",
        "checkpoint": "number of the checkpoint in its run, from 0",
        "resolution": "reference_gap / reference_primal: below it suboptimality is not known",
        "suboptimality_is_bound": "whether suboptimality is only known to be at most its value",
        "suboptimality": "(primal - reference) / reference; in traces not below the resolution",
        "status": 'how the run ended; "missing" or "damaged": it has no readable record',
    }
)


def frames(analysis: Analysis) -> dict[str, pd.DataFrame]:
    """The tables of :data:`TITLES`."""
    runs, traces = analysis.runs, analysis.traces
    parameters = kernel_parameters(analysis.tasks_of(SvmTask), runs.columns)
    runs = runs.join(parameters, on="task")
    return {"runs": runs, "traces": traces, "columns": _columns(analysis, runs, traces)}


def _columns(analysis: Analysis, runs: pd.DataFrame, traces: pd.DataFrame) -> pd.DataFrame:
    """A row for each column: table, column, type and meaning."""
    # Any: mypy takes classes of unfrozen dataclasses for unhashable, as their instances are.
    record: Any = kind_named(analysis.kind).record
    meanings = {
        **{name: f"count: {item.words}" for name, item in counter_measures().items()},
        **{name: item.doc for name, item in columns_of(record).items()},
        **_ADDED,
    }
    of_checkpoint = {name: item.doc for name, item in columns_of(record.checkpoint).items()}
    rows = [
        (table, column, _type(frame[column]), _meaning(column, {**known, **_ADDED}))
        for table, frame, known in (
            ("runs", runs, meanings),
            ("traces", traces, meanings | of_checkpoint),
        )
        for column in frame.columns
    ]
    return pd.DataFrame(rows, columns=["table", "column", "type", "meaning"])


def _meaning(column: str, known: Mapping[str, str]) -> str:
    name = column.removeprefix("kernel_")
    parameter = f"parameter {name} of the task's kernel" if name != column else ""
    return known.get(column, parameter)


def _type(column: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    return "number" if pd.api.types.is_numeric_dtype(column) else "text"


def parquet_bytes(frame: pd.DataFrame, compression: str = "snappy") -> bytes:
    """A frame as Parquet; the same frame gives the same bytes."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    sink = io.BytesIO()
    # The metadata of pandas name its version.
    pq.write_table(table.replace_schema_metadata(None), sink, compression=compression)
    return sink.getvalue()
