"""What a large report costs: bounds that only a cause in the code exceeds."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def pace():
    """CPU seconds of a fixed piece of work: how fast this machine is at the moment."""
    rows = [{"place": place, "half": place / 2, "text": str(place)} for place in range(1000)]
    start = time.process_time()
    for _ in range(100):
        json.loads(json.dumps(rows))
    return time.process_time() - start


@pytest.mark.slow
def test_the_report_of_a_large_study_is_quick_and_small(tmp_path):
    """400 runs of a study, each with all of its checkpoints."""
    code = f"""if True:
        import json
        from pathlib import Path
        from benchmarks.compare.scale import command, recorded
        folder = Path({str(tmp_path)!r})
        recorded(400, folder)
        cost = command("report", str(folder / "results"))
        page = (folder / "results" / "report.html").stat()
        print(json.dumps(cost._asdict() | {{"page_mb": page.st_size / 1e6}}))
    """
    before = pace()
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    spent = json.loads(ended.stdout)
    assert spent["cpu_s"] < 120 * max(before, pace())
    assert spent["peak_mb"] < 600
    assert spent["page_mb"] < 3
