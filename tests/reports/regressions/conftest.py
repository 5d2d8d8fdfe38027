"""Snapshots, and small repositories with results, for the tests of regressions."""

import os
import subprocess

import pandas as pd
import pytest
from asv import results, runner

from marginbench.reports.regressions.asv_files import COLUMNS, Lane, Snapshot

DAY = 86_400_000  # in milliseconds, as asv has dates


def snapshot(values, commit="a" * 40, **fields):
    """A snapshot of the suite ``work.Work``: cell -> measure -> value, None of one that failed."""
    rows = [
        (f"work.Work {cell}", measure, 0, float("nan") if number is None else float(number))
        for cell, each in values.items()
        for measure, number in each.items()
    ]
    versions = {f"work.Work.{measure}": "1" for _, measure, *_ in rows}
    defaults = {"date": 0, "lane": Lane("vm", "env"), "machine": {}, "versions": versions}
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return Snapshot(commit=commit, values=frame, **(defaults | fields))


def over_time(values, commits=()):
    """A snapshot of each of these values, a day apart."""
    commits = commits or [f"{place + 1:x}" * 40 for place in range(len(values))]
    return [
        snapshot(each, commit, date=place * DAY)
        for place, (each, commit) in enumerate(zip(values, commits, strict=True))
    ]


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


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path / "repo")


def write_asv(folder, commit, benchmarks, env="env"):
    """The file that asv itself writes for a commit: names, parameters, values and samples."""
    machine = {"machine": "vm", "cpu": "Example"}
    made = results.Results(machine, {}, commit, 1_700_000_000_000, "3.11", env, {})
    for name, params, numbers, samples in benchmarks:
        benchmark = {"name": name, "params": params, "version": f"v-{name}"}
        counts = [1 if each else None for each in samples]
        done = runner.BenchmarkResult(numbers, samples, counts, 0, "", b"")
        made.add_result(benchmark, done, record_samples=True)
    made.save(str(folder))


def write_results(folder, by_commit, cells, env="env"):
    """Write results of benchmarks with one parameter: commits -> benchmarks -> values of cells."""
    for commit, values in by_commit.items():
        params, none = [[repr(cell) for cell in cells]], [None] * len(cells)
        write_asv(folder, commit, [(name, params, values[name], none) for name in values], env)
    return folder
