"""The studies that ship with the project, run as a user runs them."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from marginbench import report
from marginbench.harness.study.toml import load_study, study_names
from marginbench.solvers.numeric.compiling import cache_folder


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    """The quickstart study with one seed: its folder, its records, and what a second call says."""
    folder = tmp_path_factory.mktemp("quickstart")
    first, second = (marginbench(folder, "run", "--seeds", "1", "--out", "out") for _ in range(2))
    assert first.returncode == 0, first.stderr
    return folder / "out", pd.read_parquet(folder / "out" / "runs.parquet"), second


def marginbench(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "marginbench", *arguments],
        cwd=folder,
        env=os.environ
        | {
            "MARGINBENCH_CACHE": str(folder / "cache"),
            "NUMBA_CACHE_DIR": str(cache_folder().parent),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_shipped_study_is_valid():
    shipped = {"quickstart", "sbp12-adult", "sbp12-figure2", "sbp12-figure3", "bsca18", "bmrm07"}
    shipped |= {"mpfp14-table2", "mpfp14-figure1", "mpfp14-images", "squared-loss"}
    shipped |= {"large-scale", "large-scale-text"}
    shipped |= {"cuts08-scaling", "cuts08-fixed-c1", "cuts08-table1", "low-rank"}
    shipped |= {"cuts08-million", "bsca18-table1", "sbp12-bias"}
    shipped |= {"mpfp14-large", "mpfp14-images-small"}
    assert shipped <= set(study_names())
    for name in study_names():
        study = load_study(name)
        assert study.name == name
        assert study.title
        assert study.description.strip()


def test_every_run_is_accounted_for(quickstart):
    folder, runs, _ = quickstart
    planned = json.loads((folder / "study.json").read_text())["planned"]
    assert sorted(runs["key"]) == sorted(run["key"] for run in planned)
    assert set(runs["status"]) <= {"converged", "budget", "skipped"}
    assert (runs.loc[runs["status"] == "skipped", "reason"] != "").all()


def test_every_solver_comes_within_reach_of_smo(quickstart):
    _, runs, _ = quickstart
    done = runs[runs["status"] != "skipped"]
    for task in ("digits", "breast-cancer"):
        errors = done[done["task"] == task].set_index("solver")["test_error"]
        assert set(errors.index) == {"SMO-textbook", "SBP", "SDCA", "Pegasos", "Perceptron"}
        assert errors["SMO-textbook"] <= 0.03
        assert (errors - errors["SMO-textbook"]).max() <= 0.02


def test_smo_agrees_with_libsvm_and_with_the_reference(quickstart):
    _, runs, _ = quickstart
    exact = runs[runs["solver"].isin(["SMO-textbook", "LIBSVM"]) & (runs["status"] != "skipped")]
    assert (exact["suboptimality"] <= 3e-3).all()
    # No primal value lies below the certified lower bound of the optimum.
    lower = exact["reference_primal"] - exact["reference_gap"]
    assert (exact["primal"] >= lower * (1 - 1e-9)).all()
    with_bias = exact[exact["task"] == "digits, with bias"].set_index("solver")
    assert with_bias.loc["SMO-textbook", "test_error"] == with_bias.loc["LIBSVM", "test_error"]


def test_traces_start_at_the_first_checkpoint_and_costs_grow(quickstart):
    _, runs, _ = quickstart
    for run in runs[runs["status"] != "skipped"].itertuples():
        trace = pd.DataFrame(list(run.trace))
        assert (np.diff(trace["wall_s"]) >= 0).all()
        assert trace["wall_s"].iloc[-1] == run.wall_s
        if run.solver == "LIBSVM":
            assert len(trace) == 1
            assert trace["counters"].isna().all()
            continue
        assert len(trace) >= 10
        # One row, or two where an iteration asks for two.
        counted, total = [dict(counters) for counters in trace["counters"]], dict(run.counters)
        asked = [counters["kernel_evals"] for counters in counted]
        assert run.n_train <= asked[0] <= 2 * run.n_train
        assert (np.diff(asked) >= 0).all()
        assert asked[-1] == total["kernel_evals"]
        assert total["kernel_evals_computed"] <= total["kernel_evals"]


def test_a_second_call_repeats_nothing(quickstart):
    folder, runs, second = quickstart
    assert second.returncode == 0
    assert f"{len(runs)} of {len(runs)} runs already recorded" in second.stderr + second.stdout
    assert len(pd.read_parquet(folder / "runs.parquet")) == len(runs)
    assert (folder / "report.html").stat().st_size > 100_000


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
    done = marginbench(tmp_path, "run", "grid.toml", "--out", "whole", "--quiet")
    assert done.returncode == 0, done.stderr
    (whole,) = (tmp_path / "whole" / "journal").glob("*.jsonl")
    lines = whole.read_bytes().splitlines(keepends=True)
    n = 0
    some = tmp_path / "some"
    (some / "journal").mkdir(parents=True)
    shutil.copy(tmp_path / "whole" / "study.json", some)
    for line in lines:
        with (some / "journal" / whole.name).open("ab") as journal:
            journal.write(line)
        n += b'"type":"record"' in line[:100]
        # Tables are empty in early ones.
        if b'"type":"record"' in line[:100] and (n in (1, 2, 3, 5, 8, 13) or n % 20 == 0):
            assert "</html>" in report(some).read_text(encoding="utf-8")
