"""The examples of docs/outside-solvers.md run, and its table of classes is that of the code."""

import json
import re
import shutil
from pathlib import Path

import pytest

from marginbench.harness.evaluation.estimators import PEERS
from marginbench.harness.execution.runner import run_study
from marginbench.harness.results.journal import Journal
from marginbench.harness.results.svm import Record
from marginbench.harness.study.toml import parse_study

from ..answers import InProcess

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "outside-solvers.md"
BASE = """
name = "small"
seeds = 1
[[task]]
dataset = "checkers"
dataset_params = { n_train = 80, n_test = 40 }
gamma = 10.0
C = 1.0
"""


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text("utf-8"), flags=re.S)


def example(words):
    (found,) = (block for block in blocks("toml") if words in block)
    return found


def ended(folder, text):
    """The records of a study by solver."""
    for script in blocks("python"):
        name = script.partition("\n")[0].removeprefix("# ")
        (folder / name).write_text(script, encoding="utf-8")
    study = parse_study(text.encode(), where="study.toml", folder=str(folder))
    run_study(study.model_copy(update={"seeds": 1}), folder / "results", executor=InProcess())
    records = Journal(folder / "results").records()
    return {record.solver: record for record in records if isinstance(record, Record)}


def test_the_table_of_classes_is_that_of_the_code():
    rows = re.findall(
        r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", DOCUMENT.read_text("utf-8"), re.M
    )
    table = {name: cells for name, *cells in rows if name in PEERS or name.endswith("SVC")}
    assert list(table) == list(PEERS)
    for name, known in PEERS.items():
        decided, kernels, judged = table[name]
        assert tuple(re.findall(r"`(\w+)`", decided)) == known.decided
        assert kernels == (", ".join(known.kernels) or "none; runs on every task")
        assert judged.startswith("its model") == bool(known.solves)


@pytest.mark.slow
def test_the_classifiers_run(tmp_path):
    found = ended(tmp_path, example('name = "peers"') + example("pipeline.py"))
    assert [*found] == ["SMO", "SVC", "LinearSVC", "RandomForestClassifier", "scaled"]
    assert {record.status for record in found.values()} == {"converged"}
    assert [record.suboptimality is None for record in found.values()] == [False] * 2 + [True] * 3
    # Both are within the tolerance of the same optimum.
    assert max(found[label].suboptimality for label in ("SMO", "SVC")) < 1e-3
    assert found["SVC"].n_support > 0
    assert all(record.test_error < 0.2 for record in found.values())


def test_a_fair_comparison_tunes_both_sides_and_a_peer_may_solve_another_problem(tmp_path):
    found = ended(tmp_path, example('name = "fair"'))
    chosen = json.loads(found["KNeighborsClassifier"].params)
    assert chosen["n_neighbors"] in (1, 3, 9)
    assert "C" not in chosen
    assert all(len(json.loads(record.tuning or "[]")) > 2 for record in found.values())
    assert {record.n_train for record in found.values()} == {958}  # four fifths of 1 198
    (tmp_path / "peer").mkdir()
    study = BASE + '[[solver]]\nname = "SMO"\n' + example('name = "LIBSVM"')
    found = ended(tmp_path / "peer", study)
    assert {record.status for record in found.values()} == {"converged"}
    assert found["LIBSVM"].other_problem != ""
    assert found["LIBSVM"].suboptimality is None


def test_a_program_in_a_classifier_finds_what_the_library_finds(tmp_path):
    if shutil.which("svm-train") is None:
        pytest.skip("svm-train is not installed (Debian: apt-get install libsvm-tools)")
    peers = example("svm_train.py") + example('name = "LIBSVM"').replace("other_problem = true", "")
    found = ended(tmp_path, BASE + "fit_intercept = true\n" + peers)
    program, library = found["SvmTrain"], found["LIBSVM"]
    assert (program.status, program.judged_by) == ("converged", "model"), program.reason
    assert program.n_support == library.n_support
    assert program.primal == pytest.approx(library.primal, rel=1e-3)
    assert program.test_error == library.test_error
    assert 0 <= program.suboptimality < 1e-2
    assert program.cpu_s > 0
