"""The scripts that keep asv's results on a branch, with git as it is and a stand-in for asv."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / ".ci"
RESULTS = ".asv/results"
BRANCH = "asv-results"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform == "win32" or shutil.which("git") is None, reason="needs bash and git"
    ),
]

# Writes what asv would for HEAD, says how it was called, and does what a test gives it to do.
ASV = """#!/usr/bin/env bash
set -euo pipefail
echo "$*" >>"$ASV_CALLS"
if [ "$1" = machine ]; then
    exit
fi
bash -euo pipefail -c "${ASV_MEANWHILE:-true}"
mkdir -p .asv/results/ci
printf '{\\n"value": "%s"\\n}\\n' "${ASV_VALUE:-1}" \
    >".asv/results/ci/$(git rev-parse --short=8 HEAD)-env.json"
echo '{"version": 2}' >.asv/results/benchmarks.json
exit "${ASV_EXIT:-0}"
"""


class Place:
    """A bare repository, a checkout of it, and an ``asv`` on the path."""

    def __init__(self, folder):
        self.folder = folder
        self.origin, self.checkout = folder / "origin.git", folder / "checkout"
        self.calls = folder / "calls"
        tools = folder / "tools"
        tools.mkdir()
        (tools / "asv").write_text(ASV, encoding="utf-8")
        (tools / "asv").chmod(0o755)
        self.environment = {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            # As on a fresh runner: nobody has said who commits.
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "ASV_CALLS": str(self.calls),
            "ASV_PAUSE": "0",
        }
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.origin), at=folder)
        self.checkout = self.clone("checkout")
        shutil.copytree(SCRIPTS, self.checkout / ".ci")
        (self.checkout / ".gitignore").write_text(".asv/\n", encoding="utf-8")
        self.commit()

    def git(self, *arguments, at=None):
        who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        done = subprocess.run(
            ["git", *who, *arguments],
            cwd=at or self.checkout,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def clone(self, name):
        self.git("clone", "--quiet", str(self.origin), name, at=self.folder)
        return self.folder / name

    def commit(self):
        """Add a commit to main; the name that asv has for it."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "A change")
        self.git("push", "--quiet", "origin", "HEAD:main")
        return self.git("rev-parse", "--short=8", "HEAD")

    def fresh(self):
        """Lose the checkout's results, as the next runner would."""
        shutil.rmtree(self.checkout / ".asv")

    def nightly(self, **environment):
        return subprocess.run(
            [str(self.checkout / ".ci" / "asv-nightly.sh")],
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def kept(self):
        """The value of each result on the remote's branch, by commit."""
        names = self.git("ls-tree", "-r", "--name-only", BRANCH, at=self.origin).splitlines()
        found = {}
        for name in names:
            if name.startswith("ci/"):
                text = self.git("show", f"{BRANCH}:{name}", at=self.origin)
                found[name.removeprefix("ci/").partition("-")[0]] = json.loads(text)["value"]
        return found

    def runs(self):
        calls = self.calls.read_text("utf-8").splitlines()
        return [call.split()[1] for call in calls if call.startswith("run ")]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_the_first_run_makes_an_orphan_branch_and_the_second_adds_to_it(place):
    first = place.git("rev-parse", "--short=8", "HEAD")
    done = place.nightly()
    assert done.returncode == 0, done.stderr
    assert place.kept() == {first: "1"}
    # Apart from main, and without its files.
    with pytest.raises(subprocess.CalledProcessError):
        place.git("merge-base", "main", BRANCH, at=place.origin)
    assert ".gitignore" not in place.git("ls-tree", "--name-only", BRANCH, at=place.origin)

    place.fresh()
    second = place.commit()
    assert place.nightly(ASV_VALUE="2").returncode == 0
    assert place.kept() == {first: "1", second: "2"}
    # With no results at all, NEW would be every commit that there ever was.
    assert place.runs() == ["HEAD^!", "NEW"]


def test_a_failing_benchmark_fails_the_job_and_keeps_the_results(place):
    head = place.git("rev-parse", "--short=8", "HEAD")
    assert place.nightly(ASV_EXIT="2").returncode == 2
    assert place.kept() == {head: "1"}


def test_asv_is_interrupted_in_time_and_what_it_has_is_kept(place):
    head = place.git("rev-parse", "--short=8", "HEAD")
    slow = f"mkdir -p {RESULTS}/ci; echo '{{\"value\": 0}}' >{RESULTS}/ci/{head}-env.json; sleep 60"
    assert place.nightly(ASV_MEANWHILE=slow, ASV_SECONDS="1").returncode == 124
    assert place.kept() == {head: 0}


def _pushes(other, name, value):
    """What another runner does while this one measures: push a result of its own."""
    return (
        f"cd {other}; git config user.name y; git config user.email y@localhost; mkdir -p ci; "
        f'printf \'{{\\n"value": "{value}"\\n}}\\n\' >ci/{name}-env.json; git add --all; '
        f"git commit --quiet --message other; git push --quiet origin HEAD:{BRANCH}"
    )


def test_a_race_loses_nothing(place):
    first = place.git("rev-parse", "--short=8", "HEAD")
    place.nightly()
    other = place.clone("other")
    place.git("checkout", "--quiet", BRANCH, at=other)
    second = place.commit()
    done = place.nightly(ASV_VALUE="2", ASV_MEANWHILE=_pushes(other, "f" * 8, "9"))
    assert done.returncode == 0, done.stderr
    assert place.kept() == {first: "1", second: "2", "f" * 8: "9"}


def test_results_that_could_not_be_pushed_are_pushed_by_the_next_job(place):
    head = place.git("rev-parse", "--short=8", "HEAD")
    refusal = place.origin / "hooks" / "pre-receive"
    refusal.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    refusal.chmod(0o755)
    done = place.nightly()
    assert done.returncode == 2
    assert "try 5 of 5" in done.stderr
    assert f"{BRANCH} could not be pushed; the results are in {RESULTS}" in done.stderr
    refusal.unlink()
    done = place.nightly()
    assert done.returncode == 0
    assert "has results already" in done.stdout
    assert place.kept() == {head: "1"}
    assert len(place.runs()) == 1


def test_a_remote_that_does_not_answer_is_not_one_without_results(place):
    place.git("remote", "set-url", "origin", str(place.folder / "gone.git"))
    done = place.nightly()
    assert done.returncode == 2
    assert "origin does not answer" in done.stderr
    assert not place.calls.exists()
