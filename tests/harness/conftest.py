"""Shared by the tests of the harness: a cache of their own, small studies, and commands."""

import functools
from pathlib import Path

import pytest

from marginbench.harness.environment import git
from marginbench.harness.study.model import StudyFile
from marginbench.harness.study.svm import Study
from marginbench.harness.study.toml import completed_study
from marginbench.solvers.numeric.compiling import cache_folder

#: A task of a few points.
BOARD = {
    "dataset": "checkers",
    "dataset_params": {"n_train": 40, "n_test": 20},
    "gamma": 10.0,
    "C": 1.0,
    "reference": False,
}
SMALL_STUDY = {
    "name": "small",
    "seeds": 1,
    "budget": {"timeout": 20.0, "memory": 2000.0},
    "reference": {"tol": 1e-6},
    "task": [BOARD],
    "solver": [{"name": "SMO"}],
}


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Datasets and reference optima of the tests stay out of the user's cache.

    Machine code stays in it, so that workers need not compile for every session of tests.
    """
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(cache_folder().parent))
        patch.setenv("MARGINBENCH_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True, scope="session")
def known_commits():
    """What git says of the checkout is asked once."""
    here, once = Path(__file__).parents[2], functools.cache(git)

    def asked(folder, *arguments):
        return (once if folder.is_relative_to(here) else git)(folder, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("marginbench.harness.planning.fingerprint.git", asked)
        yield


@pytest.fixture(scope="session")
def make_study():
    """Builds a study: SMO on a task of a few points, one seed; with changes where given."""
    return lambda **changes: Study.model_validate({**SMALL_STUDY, **changes})


def write(folder, files):
    """Write files by their names, in folders that may be new."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def board_study(**values):
    """A study of a task of a few points, complete."""
    study = {"name": "board", "task": [{**BOARD, "label": "a"}], **values}
    return completed_study(Study.model_validate(study), StudyFile("study"))


@pytest.fixture(scope="session")
def whole():
    """Two tasks, two solvers, two seeds."""
    return board_study(
        title="A board",
        task=[{**BOARD, "label": "a"}, {**BOARD, "label": "b", "C": 2.0}],
        solver=[{"name": "Perceptron"}, {"name": "Pegasos", "params": {"max_epochs": 1}}],
        seeds=2,
    )


@pytest.fixture
def run(command):
    """Calls the command; a page is its command, and the tables are a word."""

    def write_report(results, command, where="", quiet=False):
        path = results / "report.html"
        path.write_text(command)
        if not quiet:
            print("tables")
        return path

    return functools.partial(command, page=write_report)
