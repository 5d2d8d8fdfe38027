"""Full, read-only and broken disks: one line, exit code 4, nothing half written, and it resumes."""

import errno
import json
import os
import random
from pathlib import Path

import pytest

from marginbench.harness.results.journal import Journal

from .conftest import LONG, numbers

pytestmark = pytest.mark.slow

INJECTED = Path(__file__).parent / "injected"
#: What is written, in this order, and how many bytes all of these files have at least.
WRITES = {
    "dataset": ("/cache/datasets/.checkers", 1000),
    "reference": ("/cache/references/.writing-", 600),
    "study": ("study.json", 1000),
    "record": ("/journal/", 10_000),
    "page": ("report.html", 20_000),
}
REASONS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT)


def complaint(ended):
    """The one line that a command says whose disk fails."""
    assert ended.code == 4, ended
    (line,) = ended.said
    assert ended.err.splitlines()[-1] == line
    assert "Traceback" not in ended.err
    return line


@pytest.mark.parametrize("seed", range(8) if LONG else [1])
def test_each_write_may_fail_and_the_command_resumes(place, undisturbed, seed):
    """Faults are injected into the processes (``injected/sitecustomize.py``), one at a time."""
    rng = random.Random(seed)
    results = place.folder / "results" / "small"
    for what, (path, size) in WRITES.items():
        step = rng.choice(["open", "write", "write", "sync", "replace"])
        fault = {"path": path, "step": step, "after": rng.randrange(size)}
        # Of the records, the first is written and the second is not.
        fault |= {"number": int(what == "record"), "errno": rng.choice(REASONS)}
        injected = {"PYTHONPATH": str(INJECTED), "MARGINBENCH_FAULT": json.dumps(fault)}
        said = complaint(place.command("run", "small.toml", env=injected))
        assert f"({os.strerror(fault['errno'])})" in said
        assert "cannot" in said
        assert place.leftovers() == []
        if what == "record":
            # All of them are, if that they are on the disk cannot be had, which shows at the end.
            assert len(numbers(results)) == (3 if step == "sync" else 1)
    # The page is all that is missing.
    assert said.endswith("write it with 'marginbench report'; the runs are recorded")
    assert numbers(results) == undisturbed
    assert not (results / "report.html").exists()
    (segment, *_) = Journal(results).segments()
    assert all(b"}\n" in line for line in segment.open("rb"))
    ended = place.command("run", "small.toml")
    assert ended.code == 0, ended.err
    assert "3 of 3 runs already recorded" in ended.err
    assert numbers(results) == undisturbed
    assert (results / "report.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_an_output_that_takes_nothing(place):
    with open("/dev/full", "w") as full:
        assert complaint(place.command("data", "list", stdout=full)) == (
            "marginbench: the output: cannot be read or written (No space left on device); make "
            "room there or allow writing, then run the same command again"
        )
