"""Writing a page: the same records give the same bytes, and these are written once."""

import os
import subprocess
import sys
import time

import pytest

from marginbench.reports import command, page
from marginbench.reports.results import load_results

SAME = "The report says the same already; its file stays as it is.\n"


@pytest.fixture
def folder(make, write_results):
    trace = make.trace([10, 100], [0.4, 0.2])
    records = [make.finished("a", solver, 0, trace) for solver in ("SMO", "SBP")]
    return write_results(records)


def aged(path):
    """Set the page's time of change back by an hour, and return it."""
    long_ago = time.time_ns() - 3600 * 10**9
    os.utime(path, ns=(long_ago, long_ago))
    return path.stat().st_mtime_ns


@pytest.mark.usefixtures("undrawn")
def test_a_page_that_would_be_the_same_is_not_written_again(folder, capsys):
    path = command.write_report(folder, "marginbench run example")
    assert SAME not in capsys.readouterr().out
    before, content = aged(path), path.read_bytes()
    assert command.write_report(folder, "marginbench run example") == path
    assert capsys.readouterr().out.endswith(SAME)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == (before, content)


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        pytest.param(b"<p>other\n", "<p>page!\n", id="as long"),
        pytest.param(b"<p>page\n", "<p>page!\n", id="shorter"),
        pytest.param(None, "<p>page!\n", id="none"),
    ],
)
def test_another_page_is_replaced(folder, monkeypatch, kept, says):
    monkeypatch.setattr(page, "render", lambda results, command: says)
    path = folder / "report.html"
    if kept is not None:
        path.write_bytes(kept)
    results = load_results(folder)
    assert page.write_page(results) == (path, True)
    assert path.read_text() == says
    assert page.write_page(results) == (path, False)


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes_in_any_process(realistic, realistic_page, tmp_path):
    """Sets of texts are in another order with every seed of their hashes."""
    for name in ("study.json", "journal"):
        (tmp_path / name).symlink_to(realistic / name)
    code = f"from marginbench import report; report({str(tmp_path)!r})"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # here it is a random one
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert (tmp_path / "report.html").read_bytes() == realistic_page.read_bytes()
