"""Programs that are started: what they cost, how they end, and that nothing of them stays."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from marginbench.harness.evaluation.outside.launching import CommandError, Finished, Launch

WORK = "import time\nwhile time.process_time() < 0.2: pass"


def launched(tmp_path: Path, *arguments: str) -> Finished:
    with Launch(arguments, tmp_path) as launch:
        return launch.run()


def shell(tmp_path: Path, script: str) -> Finished:
    return launched(tmp_path, "sh", "-c", script)


def test_time_is_that_of_the_program_and_its_children(tmp_path: Path) -> None:
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {WORK!r}])"
    found = launched(tmp_path, sys.executable, "-c", child)
    assert found.code == 0
    assert 0.2 <= found.cpu_s <= found.wall_s + 0.5
    with Launch(["true"], tmp_path) as launch:
        time.sleep(0.3)  # What comes before the start costs nothing.
        assert launch.run().wall_s < 0.25


def test_memory_is_not_hidden_behind_that_of_this_process(tmp_path: Path) -> None:
    assert psutil.Process().memory_info().rss > 60e6
    assert shell(tmp_path, ":").peak_memory_mb < 40
    much = launched(tmp_path, sys.executable, "-S", "-c", "b = b'x' * 150_000_000")
    assert 150 < much.peak_memory_mb < 250


def test_a_failure_is_told_with_the_last_lines_of_its_errors(tmp_path: Path) -> None:
    script = "echo printed; for i in $(seq 30); do echo line $i >&2; done; exit 3"
    found = shell(tmp_path, script)
    with pytest.raises(CommandError) as caught:
        found.check()
    words = str(caught.value)
    assert words.startswith("sh ended with exit code 3: line 21 | ")
    assert words.endswith("| line 30")
    with pytest.raises(CommandError, match=r"^sh was killed by SIGSEGV: printed$"):
        shell(tmp_path, "echo printed; kill -SEGV $$").check()


def test_what_it_leaves_running_is_killed_before_it_counts_as_ended(tmp_path: Path) -> None:
    script = "(sleep 97531.5; echo late > late) & (setsid sleep 97531.5 &) ; echo ready"
    started = time.monotonic()
    found = shell(tmp_path, script)
    assert (found.code, found.output) == (0, "ready\n")
    assert time.monotonic() - started < 30
    left = [p for p in psutil.process_iter(["cmdline"]) if "97531.5" in (p.info["cmdline"] or ())]
    assert left == []


def test_much_output_neither_blocks_nor_fills_anything(tmp_path: Path) -> None:
    found = shell(tmp_path, "yes | head -c 50000000; echo end; yes | head -c 50000000 >&2")
    assert found.code == 0
    assert found.output.endswith("y\nend\n")
    assert max(len(found.output), len(found.errors)) <= 4000
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^no-such cannot be started: No such file"):
        launched(tmp_path, "/no-such")
    with pytest.raises(CommandError, match=r"the process that waited for it was killed"):
        shell(tmp_path, "kill -9 $PPID; sleep 5")


def test_a_program_that_was_not_run_leaves_no_process(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    with Launch(["sleep", "97531.5"], tmp_path):
        pass
    assert set(psutil.Process().children(recursive=True)) <= before
