"""The script that judges a branch, with git as it is and a stand-in for tox."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "regress.sh"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("git") is None, reason="needs bash and git"
)

# Of what comes after "--", BASE and HEAD are shown by their subjects.
TOX = """#!/usr/bin/env bash
[[ $* == *--notest* ]] && exit "${TOX_SETUP:-0}"
while [ "$1" != -- ]; do shift; done
echo "from $(git log -1 --format=%s "$2") to $(git log -1 --format=%s "$3"), ${*:4}"
exit "${TOX_EXIT:-0}"
"""


@pytest.fixture
def checkout(tmp_path):
    """A branch that has left main, which has gone on since."""
    (tmp_path / "tools").mkdir()
    tool = tmp_path / "tools" / "tox"
    tool.write_text(TOX, encoding="utf-8")
    tool.chmod(0o755)
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(SCRIPT, checkout / ".ci")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost"]
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["commit", "--quiet", "--allow-empty", "--message", "fork"],
        ["checkout", "--quiet", "-b", "branch"],
        ["commit", "--quiet", "--allow-empty", "--message", "change"],
        ["checkout", "--quiet", "main"],
        ["commit", "--quiet", "--allow-empty", "--message", "later"],
    ):
        subprocess.run([*git, *arguments], cwd=checkout, check=True)
    return checkout


def judge(checkout, *arguments, **environment):
    path = f"{checkout.parent / 'tools'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(checkout / ".ci" / SCRIPT.name), *arguments],
        env={"PATH": path, "GITHUB_STEP_SUMMARY": str(checkout.parent / "summary"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_verdict_is_shown_and_summarised_whatever_it_is(checkout, code):
    done = judge(checkout, "main", "branch", "--suite", "work", TOX_EXIT=str(code))
    assert done.returncode == code
    # From where the branch left main, not from what main has become.
    verdict = "from fork to change, --text --html regressions.html --suite work\n"
    assert done.stdout == verdict
    summary = (checkout.parent / "summary").read_text("utf-8")
    assert verdict in summary
    assert f"exit code {code}" in summary


def test_what_gives_no_verdict_is_a_failure(checkout):
    assert judge(checkout, "main", "branch", TOX_SETUP="1").returncode == 2
    assert judge(checkout, "main").returncode == 2
    done = judge(checkout, "main", "absent")
    assert done.returncode == 2
    assert "main, absent: no common ancestor here" in done.stderr
