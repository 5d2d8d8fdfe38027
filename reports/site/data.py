"""The records of a study as two tables, for whoever wants to compute with them."""

from __future__ import annotations

from pathlib import Path

from ...harness.results.description import FILE_NAME
from ..exports.data import parquet_bytes
from ..results import Results


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
        "runs.parquet": parquet_bytes(results.runs, "zstd"),
        "traces.parquet": parquet_bytes(results.traces, "zstd"),
        FILE_NAME: _original(results.folder),
    }


def _original(folder: Path) -> bytes:
    return (folder / FILE_NAME).read_bytes()
