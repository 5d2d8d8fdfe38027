"""What README and CONTRIBUTING promise, in a fresh copy and a fresh environment."""

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from marginbench.solvers.numeric.compiling import cache_folder

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout"),
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The tracked files as they stand, committed in a repository of their own."""
    folder = tmp_path_factory.mktemp("fresh") / "marginbench"
    for name in run("git", "ls-files", "-z", cwd=ROOT).stdout.rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    run("git", "init", "-q", "-b", "main", cwd=folder)
    run("git", "add", "-A", cwd=folder)
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    run("git", *identity, "commit", "-q", "-m", "first", cwd=folder)
    return folder


def run(*words, cwd, **environment):
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=cwd, env=clean | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def cached(folder):
    """Variables: data are cached in this folder, and machine code where these tests compile it."""
    return {"NUMBA_CACHE_DIR": str(cache_folder().parent), "MARGINBENCH_CACHE": str(folder)}


@pytest.fixture(scope="module")
def quickstart(checkout, tmp_path_factory):
    """What the README's command has written, its records, and what a second call says."""
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- run-command -->\n```sh\n(.*?)```", readme, re.DOTALL)
    kept = cached(tmp_path_factory.mktemp("cache"))
    run("bash", "-euc", block[1], cwd=checkout, **kept)
    second = run(".venv/bin/marginbench", "run", cwd=checkout, **kept)
    results = checkout / "results" / "quickstart"
    return results, pd.read_parquet(results / "runs.parquet"), second


def test_the_run_command_of_the_readme(quickstart):
    folder, runs, second = quickstart
    planned = json.loads((folder / "study.json").read_text())["planned"]
    assert sorted(runs["key"]) == sorted(run["key"] for run in planned)
    assert len(runs) == 56
    assert set(runs["status"]) == {"converged", "budget", "skipped"}
    assert (runs.loc[runs["status"] == "skipped", "reason"] != "").all()
    assert json.loads(runs["environment"].iloc[0])["commit"]
    assert "<svg" in (folder / "report.html").read_text()
    assert "56 of 56 runs already recorded" in second.stderr + second.stdout


def test_solvers_come_within_reach_of_smo_which_agrees_with_libsvm_and_the_reference(quickstart):
    _, runs, _ = quickstart
    done = runs[runs["status"] != "skipped"]
    for task in ("digits", "breast-cancer"):
        errors = done[(done["task"] == task) & (done["seed"] == 0)].set_index("solver")[
            "test_error"
        ]
        assert set(errors.index) == {"SMO-textbook", "SBP", "SDCA", "Pegasos", "Perceptron"}
        assert errors["SMO-textbook"] <= 0.03
        assert (errors - errors["SMO-textbook"]).max() <= 0.02
    exact = done[done["solver"].isin(["SMO-textbook", "LIBSVM"])]
    assert (exact["suboptimality"] <= 3e-3).all()
    # No primal value lies below the certified lower bound of the optimum.
    lower = exact["reference_primal"] - exact["reference_gap"]
    assert (exact["primal"] >= lower * (1 - 1e-9)).all()
    with_bias = exact[exact["task"] == "digits, with bias"].set_index("solver")
    assert with_bias.loc["SMO-textbook", "test_error"] == with_bias.loc["LIBSVM", "test_error"]


def test_the_wheel_holds_all_that_a_run_needs(quickstart, checkout, tmp_path):
    python = str(checkout / ".venv" / "bin" / "python")
    pip = (python, "-m", "pip", "-q")
    run(*pip, "wheel", "--no-deps", "-w", str(tmp_path), ".", cwd=checkout)
    [wheel] = tmp_path.glob("*.whl")
    packed = {name.removeprefix("marginbench/") for name in zipfile.ZipFile(wheel).namelist()}
    folders = ("data_loaders", "solvers", "harness", "reports", "studies")
    shipped = run("git", "ls-files", *folders, "src", cwd=checkout).stdout.splitlines()
    assert {name.removeprefix("src/marginbench/") for name in shipped} <= packed

    # In place of the checkout that the README installs, in an environment with nothing else.
    run(*pip, "install", "--no-deps", "--force-reinstall", str(wheel), cwd=tmp_path)
    words = ("run", "--seeds", "1", "--dataset", "digits", "--solver", "SMO")
    run(python, "-m", "marginbench", *words, cwd=tmp_path, **cached(tmp_path))
    assert (tmp_path / "results" / "quickstart" / "report.html").is_file()
    records = pd.read_parquet(tmp_path / "results" / "quickstart" / "runs.parquet")
    # Installed, not imported from the checkout: no commit vouches for it.
    assert json.loads(records["environment"].iloc[0])["commit"] is None
    words = ("reproduce", "mpfp14", "--only", "riddle/products/ldfp-1-000-5-000")
    run(python, "-m", "marginbench", *words, cwd=tmp_path, **cached(tmp_path))
    assert (tmp_path / "results" / "papers" / "mpfp14.html").is_file()
