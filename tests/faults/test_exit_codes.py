"""Every exit code of docs/command-line.md, of the command as it is installed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from marginbench.harness import errors
from marginbench.harness.cli import app

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"


def test_the_document_lists_the_codes_that_there_are():
    listed = re.findall(r"^\| (\d+) \| ", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    known = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert {int(code) for code in listed} == known | {app.EXIT_PIPE}


@pytest.mark.parametrize("merged", [True, False])
def test_141_a_reader_that_has_enough(place, merged):
    errors = subprocess.STDOUT if merged else subprocess.PIPE
    process = place.start("data", "list", stderr=errors)
    process.stdout.close()
    said = "" if merged else process.stderr.read()
    process.stdout = None
    assert place.end(process).code == 141
    assert not any(word in said for word in ("marginbench: ", "Traceback", "Exception ignored"))


def test_streams_that_the_shell_has_closed(place):
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
