"""Every exit code of docs/command-line.md, of the command as it is installed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from marginbench.harness import errors
from marginbench.harness.cli import app

from .conftest import Ended, Place

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"


def test_the_document_lists_the_codes_that_there_are() -> None:
    listed = re.findall(r"^\| (\d+) \| ", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    known = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert {int(code) for code in listed} == known | {app.EXIT_PIPE}


def with_solver(place: Place, body: str, *arguments: str) -> Ended:
    source = "from marginbench import SMO\n\n\nclass Mine(SMO):\n"
    source += f"    def _solve(self, problem, monitor):\n        {body}\n"
    (place.folder / "mine.py").write_text(source, encoding="utf-8")
    return place.command("run", "small.toml", "--solver", "mine.py:Mine", *arguments)


def test_1_a_run_that_fails_with_five_million_characters(place: Place) -> None:
    """And none of them can hide, reorder or flood what is shown, nor what is stored."""
    body = r"raise ValueError('\x00\u202e' + 'y' * 5_000_000)"
    ended = with_solver(place, body, "--seeds", "1")
    assert ended.code == 1
    results = place.folder / "results" / "small"
    shown = ended.out + ended.err + (results / "report.html").read_text(encoding="utf-8")
    assert not re.search("[\x00\u202e]", shown)
    assert len(ended.out) + len(ended.err) < 5_000
    assert (results / "report.html").stat().st_size < 200_000
    assert r"ValueError: \x00\u202e" in ended.err
    assert "characters)" in ended.err


def test_3_data_that_cannot_be_loaded(place: Place) -> None:
    """Whether they are asked for by name or by a study."""
    place.environment["MARGINBENCH_MIRROR"] = str(place.folder / "empty")
    folder = place.folder / "empty" / "heart"
    folder.mkdir(parents=True)
    (folder / "heart_scale").write_bytes(b"+1 1:0.5 \x1b[31m\xe2\x80\xae:\n")
    for command in (("data", "fetch", "heart"), ("run", "small.toml", "--dataset", "heart")):
        ended = place.command(*command)
        assert ended.code == 3, ended
        assert len(ended.said) == 1
        assert "heart" in ended.said[0]
        assert "Traceback" not in ended.err
        assert not re.search("[\x1b\u202e]", ended.out + ended.err)


@pytest.mark.parametrize(
    ("command", "merged"),
    [("solvers", True), ("run small.toml", False)],
)
def test_141_a_reader_that_has_enough(place: Place, command: str, merged: bool) -> None:
    errors = subprocess.STDOUT if merged else subprocess.PIPE
    process = place.start(*command.split(), stderr=errors)
    assert process.stdout is not None
    process.stdout.close()
    said = "" if merged or process.stderr is None else process.stderr.read()
    process.stdout = None
    ended = place.end(process)
    assert ended.code == 141
    assert "marginbench: " not in said
    assert "Traceback" not in said
    assert "Exception ignored" not in said


def test_streams_that_the_shell_has_closed(place: Place) -> None:
    command = shlex.join([sys.executable, "-m", "marginbench", "run", "small.toml"])
    done = subprocess.run(
        ["bash", "-c", f"{command} <&- >&- 2>&-"],
        cwd=place.folder,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (place.folder / "results" / "small" / "report.html").is_file()
