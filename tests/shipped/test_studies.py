"""The studies that ship with the project, and pages of studies that are not complete."""

import shutil

import pytest

from marginbench import report
from marginbench.harness.execution.runner import run_study
from marginbench.harness.study.toml import load_study, study_names

from ..harness.answers import InProcess


def test_every_shipped_study_is_valid():
    assert len(study_names()) >= 21
    for name in study_names():
        study = load_study(name)
        assert study.name == name
        assert study.title
        assert study.description.strip()


GRID = """
name = "grid"
seeds = 2
[[task]]
label = "board"
dataset = "checkers"
dataset_params = { n_train = [60, 240], n_test = 100 }
gamma = 10.0
C = [0.1, 1.0]
[[solver]]
name = "SMO"
[[solver]]
name = "Pegasos"
params = { max_epochs = [2, 5] }
"""


@pytest.mark.slow
def test_the_page_of_a_prefix_of_a_study_is_written(tmp_path):
    (tmp_path / "grid.toml").write_text(GRID)
    study = load_study(tmp_path / "grid.toml")
    run_study(study, tmp_path / "whole", executor=InProcess())
    (whole,) = (tmp_path / "whole" / "journal").glob("*.jsonl")
    some = tmp_path / "some"
    (some / "journal").mkdir(parents=True)
    shutil.copy(tmp_path / "whole" / "study.json", some)
    n = 0
    for line in whole.read_bytes().splitlines(keepends=True):
        with (some / "journal" / whole.name).open("ab") as journal:
            journal.write(line)
        n += b'"type":"record"' in line[:100]
        # Tables are empty in early ones.
        if b'"type":"record"' in line[:100] and n in (1, 3):
            assert "</html>" in report(some).read_text(encoding="utf-8")
