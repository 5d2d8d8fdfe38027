"""The record store: what comes back, what old files become, and what is taken for no record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marginbench.data_loaders.atomic import replacing
from marginbench.harness.errors import RecordError
from marginbench.harness.planning.plan import kind_named, kind_names
from marginbench.harness.results.feasibility import FeasibilityRecord, Stage
from marginbench.harness.results.measures import Column, Measure, columns_of, measures_of
from marginbench.harness.results.records import SCHEMA_VERSION, RecordBase, schema_of
from marginbench.harness.results.sealing import sealed
from marginbench.harness.results.store import RecordStore
from marginbench.harness.results.svm import Checkpoint, Record

OLD = Path(__file__).parent / "old_records"
COMMON: dict[str, Any] = {
    "key": "ab" * 32,
    "study": "s",
    "task": "t / <odd>",
    "solver": "SMO",
    "solver_class": "marginbench:SMO",
    "seed": 0,
    "status": "converged",
    "counters": {"kernel_evals": 10, "of_a_user": 2**60},
}


def svm_record(**changes: Any) -> Record:
    checkpoint = Checkpoint(
        n_iter=1, counters={"kernel_evals": 10}, wall_s=0.1, cpu_s=0.1, n_support=3,
        train_error=0.2, test_error=0.3, primal=5.0, dual=None,
    )  # fmt: skip
    return Record(
        **(COMMON | {"dataset": "digits", "primal": 1 / 3, "trace": [checkpoint]}) | changes
    )


def feasibility_record(**changes: Any) -> FeasibilityRecord:
    stage = Stage(n_iter=1, counters={"matvecs": 4}, wall_s=0.1, phi_lo=-0.5, phi_up=1 / 3)
    return FeasibilityRecord(**(COMMON | {"found": "separable", "trace": [stage]}) | changes)


MAKERS: dict[str, Callable[..., RecordBase]] = {
    "svm": svm_record,
    "feasibility": feasibility_record,
}
each_kind = pytest.mark.parametrize("kind", kind_names())
record_types = [kind_named(kind).record for kind in kind_names()]
stored_types = [*record_types, *(cls.checkpoint for cls in record_types)]


def write_row(folder: Path, row: dict[str, Any], schema: pa.Schema) -> Path:
    """A row as a writer that is wrong would write it: under checksums that hold."""
    path = folder / "edited.parquet"
    path.write_bytes(sealed(pa.Table.from_pylist([row], schema=schema)))
    return path


@each_kind
def test_a_record_comes_back_as_it_was(tmp_path: Path, kind: str) -> None:
    store = RecordStore(tmp_path)
    for record in (MAKERS[kind](), MAKERS[kind](counters=None, trace=[], status="failed")):
        path = store.write(record)
        assert store.read(path) == record
        assert path.parent == tmp_path
        assert path.stat().st_mode & 0o044  # others may read results
        assert store.paths() == [path]


def test_records_of_all_kinds_lie_in_one_folder(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    written = [MAKERS[kind](key=kind[:2] * 32) for kind in kind_names()]
    for record in written:
        store.write(record)
    assert sorted(map(repr, store.scan())) == sorted(map(repr, written))


@each_kind
def test_others_can_read_a_record(tmp_path: Path, kind: str) -> None:
    table = pq.read_table(RecordStore(tmp_path).write(MAKERS[kind]()))
    (row,) = table.to_pylist()
    assert (row["kind"], row["status"], row["schema_version"]) == (
        kind,
        "converged",
        SCHEMA_VERSION,
    )
    assert dict(row["counters"]) == COMMON["counters"]
    assert table.schema.field("seed").type == pa.int64()


def test_a_row_of_a_table_has_a_column_for_each_counter() -> None:
    row = svm_record().row()
    assert (row["kernel_evals"], row["of_a_user"]) == (10, 2**60)
    assert not {"counters", "trace"} & set(row)
    assert svm_record().trace[0].row()["kernel_evals"] == 10
    assert "kernel_evals" not in svm_record(counters=None).row()


def test_text_that_no_file_can_hold_is_escaped(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    found = store.read(store.write(svm_record(status="failed", reason="half: \ud800")))
    assert found.reason == "half: \\ud800"


@each_kind
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"status": "zonk"}, "its status is 'zonk'"),
        ({"trace": None}, "its trace is missing"),
        ({"trace": [None]}, "its trace is missing"),
        ({"budget": "garbage"}, "its budget is not a JSON object"),
        ({"environment": None}, "its environment is not a JSON object"),
        ({"params": "[]"}, "its params is not a JSON object"),
        ({"counters": {"inner_products": -1}}, "its inner_products is -1"),
        ({"seed": -1}, "its seed is -1"),
        ({"test_error": -5.0}, "its test_error is -5.0"),
        ({"test_error": 1.5}, "its test_error is 1.5"),
        ({"test_error": float("nan")}, "its test_error is nan"),
    ],
)
def test_an_edited_record_is_refused_in_one_line(
    tmp_path: Path, kind: str, changes: dict[str, Any], complaint: str
) -> None:
    record = MAKERS[kind]()
    row = {"kind": kind, **asdict(record)} | changes
    path = write_row(tmp_path, row, schema_of(type(record)))
    with pytest.raises(RecordError) as caught:
        RecordStore(tmp_path).read(path)
    assert str(caught.value) == f"{path}: not a record of a run ({complaint})"


@pytest.mark.parametrize("epochs", ["", "{}", "[1]", None])
def test_epochs_that_are_no_list_of_objects_are_refused(tmp_path: Path, epochs: Any) -> None:
    row = {"kind": "svm", **asdict(svm_record()), "epochs": epochs}
    with pytest.raises(RecordError, match="its epochs is not a JSON array"):
        RecordStore(tmp_path).read(write_row(tmp_path, row, schema_of(Record)))


@each_kind
def test_an_impossible_checkpoint_is_refused(tmp_path: Path, kind: str) -> None:
    record = MAKERS[kind]()
    row = {"kind": kind, **asdict(record)}
    row["trace"][0]["n_iter"] = -3
    path = write_row(tmp_path, row, schema_of(type(record)))
    with pytest.raises(RecordError, match=r"\(its trace says that n_iter is -3\)"):
        RecordStore(tmp_path).read(path)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"key_parts": '{"seed":1}'}, r"\(its key is not that of its key_parts\)"),
        ({"schema_version": 9}, "schema version 9, this release reads 8"),
        ({"schema_version": None}, "schema version None, this release reads 8"),
        ({"kind": "quantum"}, "a record of the kind 'quantum', this release knows svm and "),
        ({"another": 1}, "columns differ from the schema: another"),
        ({"seed": "zero"}, r"not a record of a run \(a value of another type: "),
        ({"counters": "many"}, r"not a record of a run \("),
        ({"trace": [{"n_iter": 1}]}, "its trace has other columns"),
    ],
)
def test_a_row_of_another_shape_is_refused(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    row = {"kind": "svm", **asdict(svm_record())}
    for name in changes:
        row.pop(name, None)
    columns = [item for item in schema_of(Record) if item.name in row]
    others = pa.Table.from_pylist([changes]).schema
    write_row(tmp_path, row | changes, pa.schema([*columns, *others]))
    (found,) = RecordStore(tmp_path).scan()
    assert isinstance(found, RecordError)
    assert str(tmp_path) in str(found)
    with pytest.raises(RecordError, match=complaint):
        raise found


@pytest.mark.parametrize("kept", [0, 1, 100, 2000])
def test_a_truncated_record_is_an_error_not_a_crash(tmp_path: Path, kept: int) -> None:
    store = RecordStore(tmp_path)
    path = store.write(svm_record())
    path.write_bytes(path.read_bytes()[:kept])
    [found] = store.scan()
    assert isinstance(found, RecordError)
    assert "not a readable record" in str(found)


def test_a_record_in_the_making_is_not_listed(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    path = tmp_path / svm_record().file_name
    with replacing(path) as sink:
        sink.write(b"half of it")
        sink.flush()
        assert len(list(tmp_path.iterdir())) == 1
        assert store.paths() == []
    assert store.paths() == [path]


def old_row(name: str) -> dict[str, Any]:
    """A stored row as it was written then."""
    row: dict[str, Any] = pq.ParquetFile(OLD / f"{name}.parquet").read().to_pylist()[0]
    return row


def old_record(name: str) -> RecordBase:
    return RecordStore(OLD).read(OLD / f"{name}.parquet")


COUNTS = ("kernel_evals", "kernel_evals_computed", "inner_products", "matvecs")
NO_COUNTER: dict[str, int] = {}


@pytest.mark.parametrize(
    ("name", "version", "added"),
    [
        # Version 1 counted kernel entries only; its solvers needed no inner products.
        ("svm-1", 1, {"inner_products": 0}),
        ("svm-2", 2, NO_COUNTER),
        ("svm-3", 3, NO_COUNTER),
    ],
)
def test_a_record_of_an_old_schema_keeps_its_values(
    name: str, version: int, added: dict[str, int]
) -> None:
    row, found = old_row(name), old_record(name)
    assert row["schema_version"] == version
    assert isinstance(found, Record)
    assert found.schema_version == SCHEMA_VERSION
    assert found.counters == counts_of(row) | added
    assert found.counters["kernel_evals"] > 0
    for column in set(row) - {"schema_version", "trace", *COUNTS}:
        assert getattr(found, column) == row[column], column
    assert len(found.trace) == len(row["trace"]) > 1
    for checkpoint, old in zip(found.trace, row["trace"], strict=True):
        assert checkpoint.counters == counts_of(old) | added
        for column in set(old) - set(COUNTS):
            assert getattr(checkpoint, column) == old[column], column
    if version < 3:
        assert (found.epochs, found.reference_alpha_sum) == ("[]", None)
    assert (found.tuning, found.tuning_wall_s, found.tuning_evals) == ("[]", None, None)


def counts_of(row: dict[str, Any]) -> dict[str, int]:
    """The counters of an old row, which had a column each."""
    return {name: row[name] for name in COUNTS if row.get(name) is not None}


def test_an_old_record_of_a_solver_that_does_not_count() -> None:
    found = old_record("svm-3-uncounted")
    assert found.solver == "LIBSVM"
    assert found.counters is None
    assert [checkpoint.counters for checkpoint in found.trace] == [None]
    assert found.n_iter is not None


def test_an_old_record_of_a_feasibility_method_keeps_its_values() -> None:
    row, found = old_row("feasibility-1"), old_record("feasibility-1")
    assert isinstance(found, FeasibilityRecord)
    renamed = {
        "part": "task",
        "method": "solver",
        "method_class": "solver_class",
        "solve_s": "wall_s",
    }
    assert (row["found"], found.found) == ("inseparable", "margin_at_most_tol")
    for column in set(row) - {"schema_version", "trace", "found", *COUNTS}:
        assert getattr(found, renamed.get(column, column)) == row[column], column
    assert found.counters == counts_of(row)
    assert found.counters["matvecs"] > 0
    assert (found.fingerprint, found.evaluation_s) == (None, None)
    for stage, old in zip(found.trace, row["trace"], strict=True):
        assert (stage.n_iter, stage.wall_s) == (old["iteration"], old["seconds"])
        assert stage.counters == {"matvecs": old["matvecs"]}
        assert (stage.phi_lo, stage.phi_up) == (old["phi_lo"], old["phi_up"])
    assert len(found.trace) > 1


@pytest.mark.parametrize(
    "name", ["svm-4", "svm-5", "svm-6", "svm-7", "feasibility-4", "feasibility-5"]
)
def test_a_record_of_versions_4_to_7_keeps_its_values(name: str) -> None:
    row, found = old_row(name), old_record(name)
    assert row.pop("schema_version") == int(name[-1])
    assert found.schema_version == SCHEMA_VERSION
    if name.endswith("4"):
        assert (found.key_parts, found.version, found.claimed) == ("{}", "", "")
    if isinstance(found, Record):
        assert found.n_classes == row.get("n_classes")
        assert (found.other_problem, found.judged_by) == ("", "model")
    assert row.pop("kind") == found.kind
    assert found.counters == dict(row.pop("counters"))
    states = row.pop("trace")
    for column, value in row.items():
        # What became of this word has a test of its own.
        if value != "inseparable":
            assert getattr(found, column) == value, column
    assert len(found.trace) == len(states) > 0
    for checkpoint, state in zip(found.trace, states, strict=True):
        assert asdict(checkpoint) == state | {"counters": dict(state["counters"])}


def test_what_passed_for_inseparable_in_version_5_is_a_margin_of_at_most_tol() -> None:
    row, found = old_row("feasibility-5"), old_record("feasibility-5")
    assert (row["schema_version"], row["found"]) == (5, "inseparable")
    assert isinstance(found, FeasibilityRecord)
    assert (found.schema_version, found.found) == (SCHEMA_VERSION, "margin_at_most_tol")
    assert found.phi_up == row["phi_up"]
    assert (found.status, found.key_parts) == ("converged", row["key_parts"])


OLD_NAMES = ["svm-1", "svm-2", "svm-3", "svm-4", "feasibility-1", "feasibility-4"]


@pytest.mark.parametrize("name", OLD_NAMES)
@pytest.mark.parametrize("trace", [None, [None]])
def test_a_damaged_old_record_is_refused(tmp_path: Path, name: str, trace: Any) -> None:
    table = pq.read_table(OLD / f"{name}.parquet")
    row = old_row(name) | {"trace": trace}
    path = tmp_path / "edited.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=table.schema), path)
    with pytest.raises(RecordError, match="not a record of a run"):
        RecordStore(tmp_path).read(path)


@pytest.mark.parametrize("declared", stored_types, ids=lambda cls: cls.__name__)
def test_every_column_is_declared_with_its_meaning(declared: type) -> None:
    columns = columns_of(declared)
    assert set(columns) == {item.name for item in fields(declared)}
    for name, column in columns.items():
        assert isinstance(column, Column), name
        assert len(column.doc) > 2, name
        assert column.doc[-1] not in ".!", name


@pytest.mark.parametrize("declared", record_types, ids=lambda cls: cls.__name__)
def test_the_schema_has_every_column_with_the_type_of_its_values(declared: Any) -> None:
    schema = schema_of(declared)
    assert schema.names == ["kind", *columns_of(declared)]
    trace = schema.field("trace").type.value_type
    assert [item.name for item in trace] == list(columns_of(declared.checkpoint))
    assert trace.field("counters").type == schema.field("counters").type
    for name, column in columns_of(declared).items():
        if column.json:
            assert schema.field(name).type == pa.string(), name
        if column.low is not None:
            assert schema.field(name).type in (pa.int64(), pa.float64()), name


#: What pages, tables and the terminal show, by kind: columns of runs and of checkpoints.
SHOWN = {
    "svm": {
        "wall_s", "cpu_s", "kernel_evals", "kernel_evals_computed", "inner_products",
        "train_error", "test_error", "n_support", "suboptimality", "n_iter", "peak_memory_mb",
    },
    "feasibility": {
        "wall_s", "cpu_s", "n_iter", "matvecs", "inner_products", "kernel_evals", "gamma",
        "train_error", "test_error", "peak_memory_mb",
    },
}  # fmt: skip


@each_kind
def test_what_reports_show_is_declared_as_a_measure(kind: str) -> None:
    measures = measures_of(kind_named(kind).record)
    assert set(measures) >= SHOWN[kind]
    for name, measure in measures.items():
        assert isinstance(measure, Measure)
        assert measure.title, name
        assert measure.words == measure.words.strip() != "", name
        # A value that may be absent says why.
        assert bool(measure.needs) == bool(measure.absent), name


@each_kind
def test_a_checkpoint_and_its_run_agree_on_their_measures(kind: str) -> None:
    cls = kind_named(kind).record
    runs = measures_of(cls)
    for name, measure in measures_of(cls.checkpoint).items():
        assert runs[name] == measure, name


def test_a_run_that_was_killed_has_the_numbers_of_its_last_checkpoint() -> None:
    stages = [
        Stage(
            n_iter=n, wall_s=float(n), counters={"matvecs": 4 * n}, phi_lo=-1.0 / n, phi_up=1.0 / n
        )
        for n in (1, 2)
    ]
    record = FeasibilityRecord(
        key="k", study="s", task="t", solver="m", solver_class="c", seed=0, wall_s=9.0, trace=stages
    )
    record.take_last_checkpoint()
    assert (record.n_iter, record.counters, record.phi_up) == (2, {"matvecs": 8}, 0.5)
    assert record.wall_s == 9.0  # the time that it was given, not that of the checkpoint
