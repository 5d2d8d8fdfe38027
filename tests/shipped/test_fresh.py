"""What README and CONTRIBUTING promise, in a fresh copy and a fresh environment."""

import json
import os
import re
import shutil
import subprocess
import sys
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
    listed = run("git", "ls-files", "-z", cwd=ROOT).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    run("git", "init", "-q", "-b", "main", cwd=folder)
    run("git", "add", "-A", cwd=folder)
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for message in ("first", "second"):
        run("git", *identity, "commit", "-q", "--allow-empty", "-m", message, cwd=folder)
    return folder


def run(*words, cwd, **environment):
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=cwd, env=clean | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def test_the_run_command_of_the_readme(checkout, tmp_path):
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- run-command -->\n```sh\n(.*?)```", readme, re.DOTALL)
    # Machine code that these tests have compiled is that of the same sources.
    kept = {"NUMBA_CACHE_DIR": str(cache_folder().parent)}
    run("bash", "-euc", block[1], cwd=checkout, MARGINBENCH_CACHE=str(tmp_path / "cache"), **kept)

    records = pd.read_parquet(checkout / "results" / "quickstart" / "runs.parquet")
    assert len(records) == 56
    assert set(records["status"]) == {"converged", "budget", "skipped"}
    assert json.loads(records["environment"].iloc[0])["commit"]
    page = (checkout / "results" / "quickstart" / "report.html").read_text()
    assert "<svg" in page


def test_the_wheel_holds_all_that_a_run_needs(checkout, tmp_path):
    pip = (sys.executable, "-m", "pip")
    run(*pip, "wheel", "-q", "--no-deps", "-w", str(tmp_path / "dist"), ".", cwd=checkout)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    target = str(tmp_path / "installed")
    run(*pip, "install", "-q", "--no-deps", "--target", target, str(wheel), cwd=tmp_path)
    command = (sys.executable, "-m", "marginbench", "run", "--seeds", "1")
    words = ("--dataset", "digits", "--solver", "SMO")
    environment = {"PYTHONPATH": target, "MARGINBENCH_CACHE": str(tmp_path / "cache")}
    run(*command, *words, cwd=tmp_path, **environment)

    assert (tmp_path / "results" / "quickstart" / "report.html").is_file()
    records = pd.read_parquet(tmp_path / "results" / "quickstart" / "runs.parquet")
    # Installed, not imported from the checkout: no commit vouches for it.
    assert json.loads(records["environment"].iloc[0])["commit"] is None
    words = ("mpfp14", "--only", "riddle/products/ldfp-1-000-5-000")
    run(*command[:3], "reproduce", *words, cwd=tmp_path, **environment)
    assert (tmp_path / "results" / "papers" / "mpfp14.html").is_file()
    where = run(
        sys.executable,
        "-c",
        "import marginbench; print(marginbench.__file__)",
        cwd=tmp_path,
        **environment,
    )
    assert where.stdout.startswith(target)
