"""Versions of a solver: told by content, named with the commit, and never mixed in one folder."""

import itertools
import json
import shutil
import subprocess
from contextlib import closing
from dataclasses import replace
from importlib import metadata

import pandas as pd
import pytest

from marginbench import Perceptron
from marginbench.harness.errors import UserError
from marginbench.harness.execution.runner import run_study
from marginbench.harness.hashing import hash_json
from marginbench.harness.planning.fingerprint import (
    content_version,
    numeric_versions,
    version_of,
)
from marginbench.harness.planning.report import chosen, explain, in_words
from marginbench.harness.results.description import read_description, write_description
from marginbench.harness.results.journal import Journal
from marginbench.harness.study.select import select
from marginbench.reports import analysis
from marginbench.reports.results import load_results

from .answers import InProcess, Lenient, Told
from .conftest import BOARD

SOLVER = """
from marginbench import Perceptron
from shared_step import STEP

class Mine(Perceptron):
    "A solver of a user."

    max_passes = {passes}
"""


class Folder:
    """A results folder, a user's solver that is edited, and what the last command said."""

    def __init__(self, folder, make_study):
        self.results, self.file = folder / "results", folder / "mine.py"
        (folder / "shared_step.py").write_text("STEP = 1\n")
        self.edit(1)
        self.whole = make_study(
            task=[{**BOARD, "label": "a"}, {**BOARD, "label": "b"}],
            solver=[{"name": f"{self.file}:Mine"}, {"name": "Perceptron"}],
            seeds=1,
        )

    def edit(self, passes):
        self.file.write_text(SOLVER.format(passes=passes))

    def run(self, **selection):
        executor, progress = Lenient(), Told()
        options = {"whole": self.whole, "progress": progress, "executor": executor}
        summary = run_study(select(self.whole, **selection), self.results, **options)
        self.said, self.ran = progress.lines, executor.runs
        return summary

    def keys(self):
        """The keys of the records that count."""
        return {cell: entry.key for cell, entry in Journal(self.results).current.items()}

    def described_with(self, change):
        """Change what study.json says of the study."""
        described = read_description(self.results)
        change(described["study"])
        write_description(self.results, described)


@pytest.fixture
def folder(tmp_path, make_study):
    return Folder(tmp_path, make_study)


def test_a_folder_never_mixes_versions(folder):
    folder.run()
    first = folder.keys()
    assert len(first) == 4
    folder.edit(2)
    folder.run(datasets=["a"])
    results = load_results(folder.results)
    assert "The runs of Mine are of 2 versions" in "\n".join(analysis.cautions(results))
    folder.run()
    assert folder.ran == 1
    changed = {cell for cell, key in folder.keys().items() if key != first[cell]}
    assert changed == {("a", "Mine", 0), ("b", "Mine", 0)}
    runs = pd.read_parquet(folder.results / "runs.parquet")
    assert runs.groupby("solver")["version"].nunique().to_dict() == {"Mine": 1, "Perceptron": 1}
    results = load_results(folder.results)
    assert not [text for text in analysis.cautions(results) if "versions of its code" in text]
    assert "1 record of other versions or settings no longer count" in folder.said
    # Code that is edited back needs no new run.
    folder.edit(1)
    summary = folder.run()
    journal = Journal(folder.results)
    for record in journal.records():
        parts = json.loads(record.key_parts)
        assert hash_json(parts) == record.key
        assert hash_json(journal.source(parts["source"])) == parts["source"]
        assert parts["source"].startswith(content_version(record.version))
    assert (folder.ran, summary.already_recorded) == (0, 4)
    assert folder.keys() == first
    assert "2 records of this version count again" in folder.said


def git(folder, *arguments):
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    return subprocess.check_output([*command, *arguments], text=True).strip()


def test_a_version_names_the_commit_of_a_clean_tree(tmp_path, monkeypatch):
    file, digest = tmp_path / "mine.py", "3f2a9c01d4" + "0" * 54
    file.write_text("A = 1\n")
    assert version_of(digest, file) == "3f2a9c01d4"  # no work tree
    git(tmp_path, "init", "-q")
    assert version_of(digest, file) == "3f2a9c01d4"  # no commit, not tracked
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "--short=10", "HEAD")
    (tmp_path / "other.py").write_text("B = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "second")
    assert version_of(digest, file) == f"3f2a9c01d4 git:{commit}"
    assert content_version(version_of(digest, file)) == "3f2a9c01d4"
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        assert version_of(digest, file) == "3f2a9c01d4"  # no git
    file.write_text("A = 2\n")
    assert version_of(digest, file) == "3f2a9c01d4"  # uncommitted changes


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def explained(folder):
    before = contents(folder.results)
    found = explain(folder.results, InProcess())
    assert contents(folder.results) == before  # explaining changes nothing
    return {(item.task, item.solver): item for item in found}


def differences(item):
    return [difference.words for difference in item.differences]


def test_a_changed_file_is_named(folder, monkeypatch):
    folder.run()
    assert {item.state for item in explained(folder).values()} == {"recorded"}
    (folder.file.parent / "shared_step.py").write_text("STEP = 2\n")
    found = explained(folder)
    assert found["a", "Perceptron"].state == "recorded"
    assert found["a", "Mine"].state == "stale"
    assert differences(found["a", "Mine"]) == ["source: shared_step.py has changed"]
    (segment,) = Journal(folder.results).segments()
    assert found["a", "Mine"].record.startswith(f"journal/{segment.name}:")
    text = "\n".join(in_words(list(found.values())))
    assert text.startswith("4 runs: 2 stale, 2 recorded\n")
    assert "stale       a / Mine / seed 0: its record has another key\n" in text
    folder.file.write_text("from marginbench import Perceptron\nclass Mine(Perceptron): pass\n")
    assert differences(explained(folder)["a", "Mine"]) == [
        "source: mine.py has changed",
        "source: shared_step.py is no longer used",
    ]
    # A folder of a release that did not keep them.
    monkeypatch.setattr(Journal, "source", lambda self, source_hash: None)
    (difference,) = explained(folder)["a", "Mine"].differences
    assert difference.field == "source"


def test_each_other_part_of_a_key_is_named(folder, monkeypatch):
    def change(study):
        study["solvers"]["Perceptron"]["params"] = {"max_epochs": 3}
        study["tasks"]["b"]["gamma"] = 5.0
        study["settings"]["budget"]["checkpoint_factor"] = 2.0

    folder.run()
    folder.described_with(change)
    versions = numeric_versions() | {"numpy": "9.9"}
    monkeypatch.setattr("marginbench.harness.planning.plan.numeric_versions", lambda: versions)
    found = explained(folder)
    numpy = f"versions.numpy: {metadata.version('numpy')} -> 9.9"
    factor, epochs = "task.checkpoint_factor: 1.19 -> 2.0", Perceptron().max_epochs
    expected = [f"params.max_epochs: {epochs} -> 3", factor, numpy]
    assert differences(found["a", "Perceptron"]) == expected
    expected = [factor, *(f"{name}: 10.0 -> 5.0" for name in ("params.gamma", "task.kernel.gamma"))]
    assert sorted(differences(found["b", "Mine"])) == sorted([*expected, numpy])


def test_what_is_not_recorded_is_told_apart(folder):
    folder.run(datasets=["a"])
    journal = Journal(folder.results)
    kept = journal.current["a", "Perceptron", 0]
    path = journal.folder / kept.segment
    content = bytearray(path.read_bytes())
    content[kept.offset + kept.size - 9] ^= 1
    path.write_bytes(content)
    folder.edit(2)
    folder.run(datasets=["a"], solvers=["Mine"])
    found = explained(folder)
    assert found["a", "Mine"].state == "recorded"
    assert (found["a", "Perceptron"].state, found["b", "Mine"].state) == ("damaged", "missing")
    assert found["a", "Perceptron"].reason.endswith(f"(byte {kept.offset}) is damaged")
    folder.edit(1)
    found = explained(folder)
    assert found["a", "Mine"].state == "superseded"
    folder.edit(3)
    found = explained(folder)
    assert found["a", "Mine"].state == "stale"
    assert differences(found["a", "Mine"]) == ["source: mine.py has changed"]


def test_a_raised_limit_is_named(folder):
    folder.run()
    records = list(Journal(folder.results).records())
    shutil.rmtree(folder.results / "journal")
    with closing(Journal(folder.results)) as journal:
        for record in records:
            journal.append_record(replace(record, status="timeout"))
    assert {item.state for item in explained(folder).values()} == {"recorded"}
    folder.described_with(lambda study: study["settings"]["budget"].update(timeout=99.0))
    item = explained(folder)["a", "Mine"]
    assert item.state == "repeated"
    assert item.reason == "it ended with 'timeout', and timeout is higher now"


def test_what_options_added_is_explained_and_a_run_found_by_its_key(folder):
    with pytest.raises(UserError, match="no results here"):
        explain(folder.file.parent, InProcess())
    folder.run()
    folder.run(solvers=["Pegasos"], datasets=["a"], seeds=2)
    pairs = [*itertools.product("ab", ["Mine", "Perceptron"]), ("a", "Pegasos")]
    assert explained(folder).keys() == set(pairs)
    found = explain(folder.results, InProcess())
    assert [item.seed for item in found if item.solver == "Pegasos"] == [0, 1]
    assert {item.state for item in found} == {"recorded"}
    assert found[1] in chosen(found, found[1].key[:4])
    with pytest.raises(UserError, match="give the beginning of a key, or TASK/SOLVER/SEED"):
        chosen(found, found[1].key[:3])
    # Runs of many seeds share a line.
    for seeds, words in (((3, 1, 2), "1 to 3"), ((7, 0, 1), "0, 1, 7"), ((1, 0), "0, 1")):
        runs = [replace(found[1], seed=seed) for seed in seeds]
        assert f" / seeds {words}: " in list(in_words(runs))[1]
