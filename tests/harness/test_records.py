"""The record store: what it refuses to take for a record."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marginbench.data_loaders.atomic import replacing
from marginbench.harness.records import SCHEMA, Checkpoint, Record, RecordError, RecordStore

CHECKPOINT = Checkpoint(1, 10, 10, 0.1, 0.1, 3, 0.2, 0.3, 5.0, 4.0)


def record(**changes: Any) -> Record:
    values: dict[str, Any] = {
        "key": "ab" * 32,
        "study": "s",
        "task": "t / <odd>",
        "dataset": "digits",
        "solver": "SMO",
        "solver_class": "marginbench.solvers.smo.smo:SMO",
        "seed": 0,
        "status": "converged",
        "trace": [CHECKPOINT],
    }
    return Record(**(values | changes))


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    path = store.write(record(kernel_evals=None, primal=1 / 3))
    assert store.read(path) == record(kernel_evals=None, primal=1 / 3)
    assert path.parent == tmp_path
    assert path.stat().st_mode & 0o044  # others may read results
    assert store.paths() == [path]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"status": "zonk"}, "its status is 'zonk'"),
        ({"trace": None}, "its trace is missing"),
        ({"trace": [None]}, "its trace is missing"),
        ({"budget": "garbage"}, "its budget is not a JSON object"),
        ({"environment": None}, "its environment is not a JSON object"),
        ({"kernel_evals": -1}, "its kernel_evals is -1"),
        ({"inner_products": -1}, "its inner_products is -1"),
        ({"test_error": -5.0}, "its test_error is -5.0"),
    ],
)
def test_an_edited_record_is_refused_in_one_line(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    row = asdict(record()) | changes
    path = tmp_path / "edited.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=SCHEMA), path)
    with pytest.raises(RecordError) as caught:
        RecordStore(tmp_path).read(path)
    assert str(caught.value) == f"{path}: not a record of a run ({complaint})"


NEW_IN_3 = ("epochs", "reference_alpha_sum", "reference_n_free")


def old_record(folder: Path, **changes: Any) -> Path:
    """A record as the first version of the schema had it: without inner products."""
    row = asdict(record(**changes)) | {"schema_version": 1}
    for name in NEW_IN_3:
        del row[name]
    del row["inner_products"]
    for checkpoint in row["trace"] or []:
        del checkpoint["inner_products"]
    without = [item for item in SCHEMA if item.name not in ("inner_products", "trace", *NEW_IN_3)]
    trace = SCHEMA.field("trace").type.value_type
    kept = [item for item in trace if item.name != "inner_products"]
    schema = pa.schema([*without, ("trace", pa.list_(pa.struct(kept)))])
    path = folder / "old.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=schema), path)
    return path


def test_a_record_of_the_first_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    found = RecordStore(tmp_path).read(old_record(tmp_path, kernel_evals=10))
    expected = record(kernel_evals=10, inner_products=0)
    expected.trace = [replace(CHECKPOINT, inner_products=0)]
    assert found == expected
    uncounted = replace(CHECKPOINT, kernel_evals=None, kernel_evals_computed=None)
    found = RecordStore(tmp_path).read(old_record(tmp_path, trace=[uncounted]))
    assert found == record(trace=[uncounted])


def test_a_record_of_the_second_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    row = asdict(record()) | {"schema_version": 2}
    for name in NEW_IN_3:
        del row[name]
    path = tmp_path / "old.parquet"
    schema = pa.schema([item for item in SCHEMA if item.name not in NEW_IN_3])
    pq.write_table(pa.Table.from_pylist([row], schema=schema), path)
    assert RecordStore(tmp_path).read(path) == record()


@pytest.mark.parametrize("epochs", ["", "{}", "[1]", "[{]", None])
def test_epochs_that_are_no_list_of_objects_are_refused(tmp_path: Path, epochs: Any) -> None:
    path = tmp_path / "edited.parquet"
    pq.write_table(
        pa.Table.from_pylist([asdict(record()) | {"epochs": epochs}], schema=SCHEMA), path
    )
    with pytest.raises(RecordError, match="its epochs are not a JSON array of objects"):
        RecordStore(tmp_path).read(path)


@pytest.mark.parametrize("trace", [None, [None]])
def test_a_damaged_record_of_the_first_schema_is_refused(tmp_path: Path, trace: Any) -> None:
    with pytest.raises(RecordError, match="its trace is missing"):
        RecordStore(tmp_path).read(_damaged(tmp_path, trace))


def _damaged(folder: Path, trace: Any) -> Path:
    row = asdict(record()) | {"schema_version": 1, "trace": trace}
    path = folder / "damaged.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=SCHEMA), path)
    return path


def test_another_version_of_the_schema_is_named(tmp_path: Path) -> None:
    row = asdict(record()) | {"schema_version": 4}
    path = tmp_path / "newer.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=SCHEMA), path)
    with pytest.raises(RecordError, match="schema version 4, this release reads 3"):
        RecordStore(tmp_path).read(path)


def test_a_record_in_the_making_is_not_listed(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    path = tmp_path / record().file_name
    with replacing(path) as sink:
        sink.write(b"half of it")
        sink.flush()
        assert len(list(tmp_path.iterdir())) == 1
        assert store.paths() == []
    assert store.paths() == [path]


@pytest.mark.parametrize("kept", [0, 1, 100, 2000])
def test_a_truncated_record_is_an_error_not_a_crash(tmp_path: Path, kept: int) -> None:
    store = RecordStore(tmp_path)
    path = store.write(record())
    path.write_bytes(path.read_bytes()[:kept])
    [found] = store.scan()
    assert isinstance(found, RecordError)
    assert "not a readable record" in str(found)
