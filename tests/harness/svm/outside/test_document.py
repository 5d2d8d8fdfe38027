"""The examples of docs/outside-solvers.md run, and its table of classes is that of the code."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from marginbench import run
from marginbench.harness.evaluation.outside.estimators import KNOWN
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.svm import Record

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "outside-solvers.md"
BASE = """
name = "small"
seeds = 1
[[task]]
dataset = "checkers"
dataset_params = { n_train = 80, n_test = 40 }
gamma = 10.0
C = 1.0
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text("utf-8"), flags=re.S)


def example(words: str) -> str:
    (found,) = (block for block in blocks("toml") if words in block)
    return found


def ended(folder: Path, text: str) -> dict[str, Record]:
    """The records of a study by solver."""
    for script in blocks("python"):
        name = script.partition("\n")[0].removeprefix("# ")
        (folder / name).write_text(script, encoding="utf-8")
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    summary = run(path, out=folder / "results", seeds=1, quiet=True)
    records = Journal(summary.results).records()
    return {record.solver: record for record in records if isinstance(record, Record)}


def test_the_table_of_classes_is_that_of_the_code() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", DOCUMENT.read_text("utf-8"), re.M
    )
    table = {name: cells for name, *cells in rows if name in KNOWN or name.endswith("SVC")}
    assert list(table) == list(KNOWN)
    for name, known in KNOWN.items():
        decided, kernels, judged = table[name]
        assert tuple(re.findall(r"`(\w+)`", decided)) == known.decided
        assert kernels == (", ".join(known.kernels) or "none; runs on every task")
        assert judged.startswith("its model") == known.solves


@pytest.mark.slow
def test_the_classifiers_run(tmp_path: Path) -> None:
    found = ended(tmp_path, example('name = "peers"') + example("pipeline.py"))
    assert {label: record.status for label, record in found.items()} == {
        "SMO": "converged", "SVC": "converged", "LinearSVC": "converged",
        "RandomForestClassifier": "converged", "scaled": "converged",
    }  # fmt: skip
    assert {label for label, record in found.items() if record.suboptimality is None} == {
        "LinearSVC", "RandomForestClassifier", "scaled",
    }  # fmt: skip
    # Both are within the tolerance of the same optimum.
    assert max(found[label].suboptimality for label in ("SMO", "SVC")) < 1e-3
    assert found["SVC"].n_support > 0
    assert all(record.test_error < 0.2 for record in found.values())


@pytest.mark.slow
def test_peers_and_programs_of_another_problem_run(tmp_path: Path) -> None:
    if shutil.which("svm-train") is None:
        pytest.skip("svm-train is not installed (Debian: apt-get install libsvm-tools)")
    tools = example('name = "libsvm-tools"') + "other_problem = true\n"
    peers = [example('label = "svm-train"'), tools, example('name = "LIBSVM"')]
    found = ended(tmp_path, BASE + '[[solver]]\nname = "SMO"\n' + "".join(peers))
    assert {record.status for record in found.values()} == {"converged"}
    files, library, labels = found["libsvm-tools"], found["LIBSVM"], found["svm-train"]
    # The same algorithm on the same numbers: support vectors, objective and errors agree.
    assert files.n_support == library.n_support
    assert files.primal == pytest.approx(library.primal, rel=1e-3)
    assert files.test_error == library.test_error == labels.test_error
    assert files.other_problem == library.other_problem != ""
    assert (files.suboptimality, library.suboptimality) == (None, None)
    assert (labels.judged_by, labels.n_support, labels.counters) == ("predictions", None, None)
    assert 0 < files.cpu_s < 5
    assert files.peak_memory_mb < 60
