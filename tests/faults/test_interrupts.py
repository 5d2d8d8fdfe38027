"""Ctrl-C at any moment: one line and exit code 130, no traceback, nothing left behind."""

import random
import signal
import time

import pytest

from marginbench.harness.results.journal import Journal

from .conftest import LONG, wait_for

pytestmark = pytest.mark.slow

#: Seconds after the start: while Python starts, imports, starts workers, runs and reports.
_RNG = random.Random(0)
MOMENTS = sorted(_RNG.uniform(0.0, 3.0) for _ in range(30))


# In the short form while it starts workers.
@pytest.mark.parametrize("moment", MOMENTS if LONG else MOMENTS[10:11])
def test_an_interrupt_at_any_moment(place, moment):
    place.write_study(epochs=6000)
    process = place.start("run", "small.toml")
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    ended = place.end(process)
    assert place.leftovers() == []
    if ended.code != 130 or not ended.said:
        # Python itself was still starting, or reading the first lines of the command; a busy
        # machine takes long to come to that.
        assert not any(word in ended.err for word in ("marginbench: ", "reports", "cli/app")), ended
        return
    assert ended.err.splitlines()[-1:] == ended.said
    assert ended.said[0].startswith("marginbench: interrupted")
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_an_interrupted_study_has_a_page_and_resumes(place):
    place.write_study(epochs=3000)
    results = place.folder / "results" / "small"
    process = place.start("run", "small.toml")
    wait_for(lambda: Journal(results).entries)
    process.send_signal(signal.SIGINT)
    ended = place.end(process)
    assert ended.code == 130
    (line,) = ended.said
    assert line.endswith("run the same command again to resume: marginbench run small.toml")
    assert "\nreport: results/small/report.html\n" in ended.err
    assert (results / "report.html").is_file()
    kept = set(Journal(results).current.values())
    assert 1 <= len(kept) < 3
    ended = place.command("run", "small.toml")
    assert ended.code == 0, ended.err
    assert f"{len(kept)} of 3 runs already recorded in results/small" in ended.err
    assert len(Journal(results).entries) == 3
    assert kept <= set(Journal(results).current.values())


def test_a_second_interrupt_ends_the_report_at_once(place):
    place.write_study(epochs=1500, seeds=9)
    # The command, with a page that is never written.
    (place.folder / "command.py").write_text(
        "import time\n"
        "from marginbench.harness.cli.app import build_app, run_app\n"
        "run_app(build_app(lambda *results, **options: time.sleep(600)))\n"
    )
    process = place.start("run", "small.toml", program=["command.py"])
    wait_for(lambda: Journal(place.folder / "results" / "small").entries)
    process.send_signal(signal.SIGINT)
    while "writing the report" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    ended = place.end(process)
    assert (ended.code, ended.err) == (130, "marginbench: interrupted\n")


def test_where_interrupts_are_ignored_they_remain_so(place):
    """As under ``nohup``, or in the background of a script."""
    process = place.start("solvers", interrupts=signal.SIG_IGN)
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    ended = place.end(process)
    assert (ended.code, ended.err) == (0, "")
