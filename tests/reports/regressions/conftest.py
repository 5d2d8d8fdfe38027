"""Snapshots, and small repositories with results, for the tests of regressions."""

import functools
import json
import os
import subprocess

import pandas as pd
import pytest

from marginbench.reports.regressions.asv_files import COLUMNS, Lane, Snapshot


def make_snapshot(values, commit="a" * 40, **fields):
    """A snapshot of the suite ``work.Work`` from values by cell and measure."""
    rows = [
        (f"work.Work {cell}", measure, 0, float("nan") if number is None else float(number))
        for (cell, measure), number in values.items()
    ]
    versions = {f"work.Work.{measure}": "1" for _, measure in values}
    defaults = {"date": 0, "lane": Lane("vm", "py3.11"), "machine": {}, "versions": versions}
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return Snapshot(commit=commit, values=frame, **(defaults | fields))


@pytest.fixture(scope="session")
def snapshot():
    return make_snapshot


class Repo:
    """A small git repository in a folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words):
        names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
        environment = {**os.environ, **{f"GIT_{name}": "someone" for name in names}}
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=environment, check=True, capture_output=True,
            text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, subject, files=None):
        """Commit files; the hash."""
        for name, text in (files or {}).items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture(scope="session")
def make_repo():
    return Repo


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path / "repo")


def results_file(commit, values, cells, env):
    """What asv writes for a commit, of benchmarks with one parameter."""
    params = [[repr(cell) for cell in cells]]
    content = {
        "commit_hash": commit, "env_name": env, "date": 1_700_000_000_000,
        "params": {"machine": "vm", "cpu": "Example CPU"}, "python": "3.11", "requirements": {},
        "env_vars": {}, "durations": {}, "version": 2,
        "result_columns": ["result", "params", "version"],
        "results": {name: [numbers, params, "1"] for name, numbers in values.items()},
    }  # fmt: skip
    return json.dumps(content)


def write_folder(folder, by_commit, cells, env="virtualenv-py3.11"):
    """Write a folder of asv's results: commits -> benchmarks -> values of the cells."""
    (folder / "vm").mkdir(parents=True, exist_ok=True)
    for commit, values in by_commit.items():
        path = folder / "vm" / f"{commit[:8]}-{env}.json"
        path.write_text(results_file(commit, values, cells, env), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def write_asv_results():
    return write_folder


@pytest.fixture
def write_results(tmp_path):
    """``write_folder`` into the test's own folder."""
    return functools.partial(write_folder, tmp_path / "results")
