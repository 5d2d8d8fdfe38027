"""A study of a second, and stores in folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marginbench.harness.execution.session import run_study
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.results.remote.folder_objects import FolderObjects
from marginbench.harness.results.remote.mirror import Mirror
from marginbench.harness.study.model import StudyFile
from marginbench.harness.study.svm import Study
from marginbench.harness.study.toml import completed_study

BOARD = {
    "dataset": "checkers",
    "dataset_params": {"n_train": 40, "n_test": 20},
    "gamma": 10.0,
    "C": 1.0,
    "reference": False,
}


@pytest.fixture(scope="session")
def board() -> Study:
    """Two solvers on one task with three seeds."""
    values: dict[str, Any] = {
        "name": "board",
        "seeds": 3,
        "task": [{**BOARD, "label": "a"}],
        "solver": [{"name": "Perceptron"}, {"name": "Pegasos", "params": {"max_epochs": 1}}],
    }
    return completed_study(Study.model_validate(values), StudyFile("study"))


@pytest.fixture
def objects(tmp_path: Path) -> FolderObjects:
    return FolderObjects(str(tmp_path / "store"), "the store")


@pytest.fixture
def make_mirror(tmp_path: Path, objects: FolderObjects) -> Callable[..., Mirror]:
    """Makes a mirror of the store by its name; one of the same name goes on where it was."""

    def make(name: str = "mirror", of: Any = objects) -> Mirror:
        return Mirror(of, tmp_path / name, tmp_path / f"{name}.jsonl")

    return make


@pytest.fixture(scope="session")
def alone(board: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "results"
    run_study(board, folder, executor=InProcess())
    return folder
