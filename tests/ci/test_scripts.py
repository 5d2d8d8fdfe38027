"""The scripts that keep asv's results on a branch and that judge a branch.

With git as it is, and stand-ins for asv and tox.
"""

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

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("git") is None, reason="needs bash and git"
)

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
# Of what comes after "--", BASE and HEAD are shown by their subjects.
TOX = """#!/usr/bin/env bash
[[ $* == *--notest* ]] && exit "${TOX_SETUP:-0}"
while [ "$1" != -- ]; do shift; done
echo "from $(git log -1 --format=%s "$2") to $(git log -1 --format=%s "$3"), ${*:4}"
exit "${TOX_EXIT:-0}"
"""


class Place:
    """A bare repository, a checkout of it, and the stand-ins on the path."""

    def __init__(self, folder):
        self.folder, self.origin = folder, folder / "origin.git"
        self.calls, self.summary = folder / "calls", folder / "summary"
        tools = folder / "tools"
        tools.mkdir()
        for name, text in (("asv", ASV), ("tox", TOX)):
            (tools / name).write_text(text, encoding="utf-8")
            (tools / name).chmod(0o755)
        self.environment = {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            # As on a fresh runner: nobody has said who commits.
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "ASV_CALLS": str(self.calls),
            "ASV_PAUSE": "0",
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.origin), at=folder)
        self.checkout = self.clone("checkout")
        shutil.copytree(SCRIPTS, self.checkout / ".ci")
        (self.checkout / ".gitignore").write_text(".asv/\n", encoding="utf-8")
        self.first = self.commit("fork")
        self.git("push", "--quiet", "origin", "HEAD:main")

    def git(self, *arguments, at=None):
        words = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *arguments]
        at = at or self.checkout
        done = subprocess.run(
            words, cwd=at, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def clone(self, name):
        self.git("clone", "--quiet", str(self.origin), name, at=self.folder)
        return self.folder / name

    def commit(self, subject):
        """Add a commit; the name that asv has for it."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "--short=8", "HEAD")

    def script(self, name, *arguments, **environment):
        return subprocess.run(
            [str(self.checkout / ".ci" / name), *arguments],
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def nightly(self, **environment):
        return self.script("asv-nightly.sh", **environment)

    def kept(self):
        """The value of each result on the remote's branch, by commit."""
        names = self.git("ls-tree", "-r", "--name-only", BRANCH, "ci/", at=self.origin).split()
        return {
            name[len("ci/") :].partition("-")[0]: json.loads(
                self.git("show", f"{BRANCH}:{name}", at=self.origin)
            )["value"]
            for name in names
        }

    def runs(self):
        calls = self.calls.read_text("utf-8").splitlines()
        return [call.split()[1] for call in calls if call.startswith("run ")]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.mark.slow
def test_the_first_run_makes_an_orphan_branch_and_the_second_adds_to_it(place):
    done = place.nightly()
    assert done.returncode == 0, done.stderr
    assert place.kept() == {place.first: "1"}
    # Apart from main, and without its files.
    with pytest.raises(subprocess.CalledProcessError):
        place.git("merge-base", "main", BRANCH, at=place.origin)
    assert ".gitignore" not in place.git("ls-tree", "--name-only", BRANCH, at=place.origin)

    shutil.rmtree(place.checkout / ".asv")  # as on the next runner
    second = place.commit("change")
    assert place.nightly(ASV_VALUE="2").returncode == 0
    assert place.kept() == {place.first: "1", second: "2"}
    # With no results at all, NEW would be every commit that there ever was.
    assert place.runs() == ["HEAD^!", "NEW"]


# Writes a result, and does not end.
SLOW = f"""
mkdir -p {RESULTS}/ci
echo '{{"value": 0}}' >{RESULTS}/ci/$(git rev-parse --short=8 HEAD)-env.json
sleep 60
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asv", "code", "value"),
    [({"ASV_EXIT": "2"}, 2, "1"), ({"ASV_MEANWHILE": SLOW, "ASV_SECONDS": "1"}, 124, 0)],
)
def test_what_asv_has_found_is_kept_if_a_benchmark_fails_or_takes_too_long(place, asv, code, value):
    assert place.nightly(**asv).returncode == code
    assert place.kept() == {place.first: value}


@pytest.mark.slow
def test_a_race_loses_nothing(place):
    place.nightly()
    other = place.clone("other")
    place.git("checkout", "--quiet", BRANCH, at=other)
    second = place.commit("change")
    # Another runner pushes a result of its own while this one measures.
    pushes = (
        f"cd {other}; git config user.name y; git config user.email y@localhost; mkdir -p ci; "
        f'printf \'{{"value": "9"}}\' >ci/ffffffff-env.json; git add --all; '
        f"git commit --quiet --message other; git push --quiet origin HEAD:{BRANCH}"
    )
    done = place.nightly(ASV_VALUE="2", ASV_MEANWHILE=pushes)
    assert done.returncode == 0, done.stderr
    assert place.kept() == {place.first: "1", second: "2", "ffffffff": "9"}


@pytest.mark.slow
def test_results_that_could_not_be_pushed_are_pushed_by_the_next_job(place):
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
    assert place.kept() == {place.first: "1"}
    assert len(place.runs()) == 1


@pytest.mark.slow
def test_a_remote_that_does_not_answer_is_not_one_without_results(place):
    place.git("remote", "set-url", "origin", str(place.folder / "gone.git"))
    done = place.nightly()
    assert done.returncode == 2
    assert "origin does not answer" in done.stderr
    assert not place.calls.exists()


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_verdict_of_a_branch_is_shown_and_summarised_whatever_it_is(place, code):
    place.git("checkout", "--quiet", "-b", "branch")
    place.commit("change")
    place.git("checkout", "--quiet", "main")
    place.commit("later")
    done = place.script("regress.sh", "main", "branch", "--suite", "work", TOX_EXIT=str(code))
    assert done.returncode == code
    # From where the branch left main, not from what main has become.
    verdict = "from fork to change, --text --html regressions.html --suite work\n"
    assert done.stdout == verdict
    summary = place.summary.read_text("utf-8")
    assert verdict in summary
    assert f"exit code {code}" in summary


def test_what_gives_no_verdict_is_a_failure(place):
    assert place.script("regress.sh", "main", "main", TOX_SETUP="1").returncode == 2
    assert place.script("regress.sh", "main").returncode == 2
    done = place.script("regress.sh", "main", "absent")
    assert done.returncode == 2
    assert "main, absent: no common ancestor here" in done.stderr
