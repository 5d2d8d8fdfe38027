"""Damaged results: every damage is refused and named, nothing is misread, nothing is fatal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from marginbench import RecordError, read_record
from marginbench.harness.results.store import RecordStore

HERE = Path(__file__).parent
OLD = HERE.parent / "harness" / "old_records"
KINDS = ("svm", "feasibility")
LONG = os.environ.get("MARGINBENCH_FAULTS") == "long"
each_kind = pytest.mark.parametrize("kind", KINDS)


#: A study of each kind, of one quick run.
STUDIES = {
    "svm": """
name = "board"
title = "A board"
seeds = 2
[[task]]
dataset = "checkers"
dataset_params = { n_train = 200, n_test = 100 }
gamma = 10.0
C = 1.0
[[solver]]
name = "SMO"
seeds = 2
""",
    "feasibility": """
name = "columns"
title = "A cell"
kind = "feasibility"
[[cell]]
label = "small"
generator = "ldfp"
m = 10
n = 100
tol = 0.0
instances = 2
[[method]]
name = "MPLFP"
""",
}
#: Columns that differ between two runs of the same code on the same data.
TIMINGS = frozenset({
    "started_at", "wall_s", "cpu_s", "system_s", "compile_s", "evaluation_s", "data_s",
    "peak_memory_mb", "environment",
})  # fmt: skip


def damaged_copies(file: Path, count: int, seed: int) -> dict[str, Any]:
    """What came of reading damaged copies of a file, in a process that may crash."""
    script = [sys.executable, HERE / "damaging.py", file, str(count), str(seed)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    assert sum(found["counts"].values()) == count
    return found


def sealed_copy(folder: Path, kind: str) -> Path:
    """A real record, written by this release."""
    return RecordStore(folder).write(read_record(OLD / f"{kind}-4.parquet"))


@each_kind
def test_no_damage_is_misread_or_fatal(tmp_path: Path, kind: str) -> None:
    count = 10_000 if LONG else 200
    found = damaged_copies(sealed_copy(tmp_path, kind), count, seed=1)
    assert set(found["counts"]) <= {"refused", "same"}, found
    # Most blocks differ from each other and from zeros.
    assert found["counts"]["refused"] > 0.95 * count


@each_kind
def test_no_damage_to_a_record_without_checksums_is_fatal(kind: str) -> None:
    """Records of older schemas can be misread; they are all the more closely looked at."""
    count = 10_000 if LONG else 200
    found = damaged_copies(OLD / f"{kind}-4.parquet", count, seed=2)
    assert set(found["counts"]) <= {"refused", "same", "misread"}, found
    assert found["counts"]["refused"] > 0.5 * count


@each_kind
def test_every_bit_of_the_checksum_itself_counts(tmp_path: Path, kind: str) -> None:
    path = sealed_copy(tmp_path, kind)
    content = path.read_bytes()
    start = content.rindex(b"marginbench-file-sha256:")
    for place in range(start - 30, start + 24 + 64 + 30):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(RecordError, match="damaged"):
            read_record(path)


def test_a_record_without_its_checksum_is_refused(tmp_path: Path) -> None:
    """As another program would write it that read it and changed a value."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = sealed_copy(tmp_path, "svm")
    table = pq.read_table(path)
    changed = table.set_column(
        table.schema.get_field_index("test_error"), "test_error", pa.array([0.0])
    )
    pq.write_table(changed, path)
    with pytest.raises(RecordError, match=r"damaged \(its checksum is missing\)"):
        read_record(path)


def test_values_are_compared_with_their_checksum(tmp_path: Path) -> None:
    """The second digest holds where the first one was made for other values."""
    import hashlib

    import pyarrow as pa
    import pyarrow.parquet as pq

    path = sealed_copy(tmp_path, "svm")
    table, stored = pq.read_table(path), pq.read_metadata(path).metadata
    place = table.schema.get_field_index("test_error")
    changed = table.set_column(place, "test_error", pa.array([0.0]))
    with pq.ParquetWriter(path, changed.schema) as writer:
        writer.write_table(changed)
        mark = "marginbench-file-sha256:"
        writer.add_key_value_metadata(
            {
                "marginbench.content": stored[b"marginbench.content"].decode(),
                "marginbench.file": mark + "0" * 64,
            }
        )
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    path.write_bytes(content.replace(f"{mark}{'0' * 64}".encode(), f"{mark}{digest}".encode()))
    with pytest.raises(RecordError, match="its values do not match their checksum"):
        read_record(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.parquet"
    with path.open("wb") as sink:
        sink.write(b"PAR1")
        sink.truncate(2**40)  # a hole: it takes no space
    with pytest.raises(RecordError, match="larger than 256 MiB"):
        read_record(path)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: None])
def test_what_is_no_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "a.parquet"
    make(path)
    with pytest.raises(RecordError, match=f"^{path}: not a readable record"):
        read_record(path)


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs ``marginbench`` as a process of its own: exit code, output and errors."""
    cache = tmp_path_factory.mktemp("cache")

    def run(*arguments: object) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "marginbench", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=600,
            env=os.environ | {"MARGINBENCH_CACHE": str(cache), "COLUMNS": "200"},
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.slow) for kind in ("feasibility", "svm")],
)
def ran(
    request: pytest.FixtureRequest, command: Command, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with the study file and ``results``, two runs of a study of a kind."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "study.toml").write_text(STUDIES[request.param])
    code, _, err = command("run", folder / "study.toml", "--out", folder / "results")
    assert code == 0, err
    return folder


def values(record: Any) -> dict[str, Any]:
    """What two runs of the same code have in common."""
    found = {k: v for k, v in asdict(record).items() if k not in TIMINGS}
    found["trace"] = [
        {k: v for k, v in state.items() if k not in TIMINGS} for state in found["trace"]
    ]
    return found


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_damaged_record_is_named_by_report_and_redone_by_run(ran: Path, command: Command) -> None:
    results = ran / "results"
    path = RecordStore(results / "runs").paths()[0]
    before = values(read_record(path))
    flip(path, path.stat().st_size // 2)
    code, out, err = command("report", results)
    assert (code, err) == (0, "")
    assert f"runs/{path.name}: damaged (its bytes do not match their checksum)" in out
    assert "damaged: " in out
    assert "do not match their checksum" in (results / "report.html").read_text()
    code, out, err = command("run", ran / "study.toml", "--out", results)
    assert code == 0
    assert f"{path}: damaged (its bytes do not match their checksum); moved to" in err
    assert "1 of 2 runs already recorded" in err
    assert "2 runs: 2 converged" in out
    assert values(read_record(path)) == before
    assert (path.parent / f"_{path.name}.damaged").is_file()
    (path.parent / f"_{path.name}.damaged").unlink()


def test_a_damaged_description_is_never_shown(ran: Path, command: Command) -> None:
    results = ran / "results"
    path = results / "study.json"
    intact, page = path.read_bytes(), (results / "report.html").read_bytes()
    title = intact.index(b'"title": "') + 12
    flip(path, title)
    code, out, err = command("report", results)
    assert (code, out) == (2, "")
    assert err == (
        f"marginbench: {path}: damaged (its content does not match its digest); run the study "
        "again to write it anew\n"
    )
    assert (results / "report.html").read_bytes() == page
    code, out, err = command("run", ran / "study.toml", "--out", results)
    assert code == 0
    assert "moved to _study.json.damaged, written anew" in err
    assert "2 of 2 runs already recorded" in err
    assert path.read_bytes() == intact


def test_no_damage_to_a_description_shows_another(ran: Path) -> None:
    """What is read is what was written, or nothing."""
    count = 10_000 if LONG else 200
    found = damaged_copies(ran / "results" / "study.json", count, seed=3)
    assert set(found["counts"]) <= {"refused", "same"}, found
    assert found["counts"]["refused"] > 0.8 * count
