"""The records of a study as two tables, for whoever wants to compute with them."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from marginbench.harness.description import FILE_NAME
from marginbench.reports.results import Results


def data_files(results: Results) -> dict[str, bytes]:
    """The files of a study's data by name.

    Parameters
    ----------
    results : Results

    Returns
    -------
    dict of str to bytes
        ``runs.parquet`` has a row for each planned run, ``traces.parquet`` one for each checkpoint,
        with the columns of :class:`marginbench.reports.results.Results`; ``study.json`` is that of
        the results folder.
    """
    return {
        "runs.parquet": _parquet(results.runs),
        "traces.parquet": _parquet(results.traces),
        FILE_NAME: _original(results.folder),
    }


def _parquet(frame: pd.DataFrame) -> bytes:
    # Without pandas' own metadata: they name its version, and nothing here needs them.
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _original(folder: Path) -> bytes:
    return (folder / FILE_NAME).read_bytes()
