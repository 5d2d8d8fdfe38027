"""Timings of pytest-benchmark: read with suspicion, shown side by side, never across machines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marginbench import publish
from marginbench.reports import formatting
from marginbench.reports.command import main
from marginbench.reports.errors import ReportError
from marginbench.reports.site.timings import LARGEST_BYTES, read_timings
from marginbench.reports.site.timings_page import timings_page

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
HOSTILE = '<script>alert("x")</script> $\\frac{$ \N{RIGHT-TO-LEFT OVERRIDE}'


def timing(group: str | None, row: str, median: float, **extra: Any) -> dict[str, Any]:
    """A benchmark whose rounds lie within a tenth of their median."""
    return {
        "group": group,
        "name": f"test_fit[{group}-{row}]",
        "fullname": f"tests/test_x.py::test_fit[{group}-{row}]",
        "params": {"task": group, "solver": row},
        "param": f"{group}-{row}",
        "extra_info": extra,
        "stats": {
            "min": 0.9 * median, "q1": 0.95 * median, "median": median, "q3": 1.05 * median,
            "max": 1.1 * median, "rounds": 7, "data": [median] * 7,
        },
    }  # fmt: skip


def content(*benchmarks: dict[str, Any], node: str = "secret-host", **info: Any) -> dict[str, Any]:
    return {
        "machine_info": {
            "node": node, "system": "Linux", "machine": "x86_64", "release": "6.1",
            "python_implementation": "CPython", "python_version": "3.11.7",
            "cpu": {"brand_raw": "Example CPU 3000", "count": 8}, **info,
        },
        "commit_info": {"id": "0123456789abcdef", "dirty": True},
        "benchmarks": list(benchmarks),
        "datetime": "2026-05-06T07:08:09.123+00:00",
        "version": "5.3.1",
    }  # fmt: skip


def saved(path: Path, values: dict[str, Any]) -> Path:
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


def text_of(page: bytes) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.decode()))


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of ``marginbench publish``."""
    monkeypatch.setattr(sys, "argv", ["marginbench", "publish", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.fixture
def simple(tmp_path):
    return saved(tmp_path / "a.json", content(timing("digits", "SMO", 0.02, iterations=3721)))


def test_a_file_is_read(simple):
    found = read_timings(simple, "A")
    assert found.machine.words == "Example CPU 3000, 8 cores, Linux x86_64"
    assert found.setting == {"CPython": "3.11.7", "Linux": "6.1"}
    assert (found.commit, found.date) == ("0123456789, with changes", "2026-05-06 07:08")
    [item] = found.timings
    assert (item.group, item.label, item.rounds) == ("digits", "SMO", 7)
    assert (item.q1, item.median, item.q3) == pytest.approx((0.019, 0.02, 0.021))
    assert item.extra == {"iterations": 3721}


def test_rows_have_the_shortest_name_that_tells_them_apart(tmp_path):
    same = [timing("g", "SMO", 1.0), timing("g", "SMO", 1.0) | {"fullname": "y", "param": "y"}]
    other = timing(None, "a", 1.0) | {"params": None}
    found = read_timings(saved(tmp_path / "a.json", content(*same, other)), "A")
    assert [item.label for item in found.timings] == ["g-SMO", "y", "None-a"]


def without(name: str) -> dict[str, Any]:
    values = content(timing("g", "a", 1.0))
    del values[name]
    return values


def stats(**changed: Any) -> dict[str, Any]:
    item = timing("g", "a", 1.0)
    item["stats"].update(changed)
    return content(item)


DAMAGED: dict[str, tuple[Any, str]] = {
    "not JSON": ("{", "Invalid JSON"),
    "nothing": ("", "Invalid JSON"),
    "no text": (b"\xff\xfe\x00", "Invalid JSON"),
    "another document": ([1, 2], "should be an object"),
    "too deep": ('{"machine_info":' + "[" * 100_000, "recursion limit"),
    "no machine": (without("machine_info"), "machine_info"),
    "no benchmarks": (content(), "at least 1"),
    "no times": (content({"name": "a", "fullname": "b"}), r"benchmarks\.0\.stats"),
    "a word for a time": (stats(median="fast"), r"benchmarks\.0\.stats\.median: .*not 'fast'"),
    "NaN": (stats(median=float("nan")), "finite"),
    "infinity": (stats(max=float("inf")), "finite"),
    "overflow": (json.dumps(stats()).replace('"max": 1.1', '"max": 1e999'), "finite"),
    "negative": (stats(min=-1.0), "greater than or equal to 0"),
    "out of order": (stats(median=3.0), "not in ascending order"),
    "no rounds": (stats(rounds=0), "rounds"),
    "twice": (content(*[timing("g", "a", 1.0)] * 2), "2 times"),
    "extra NaN": (content(timing("g", "a", 1.0, x=float("nan"))), "'x' is not a finite number"),
    "extra huge": (content(timing("g", "a", 1.0, x=10**400)), "'x' is not a finite number"),
    "long digits": (
        json.dumps(content(timing("g", "a", 1.0, x=7))).replace('"x": 7', '"x": ' + "7" * 9999),
        "number",
    ),
    "hidden characters": (stats(median="\N{RIGHT-TO-LEFT OVERRIDE}\n"), r"\\u202e"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_or_foreign_file_is_named_in_one_line(tmp_path, name):
    values, problem = DAMAGED[name]
    path = tmp_path / "x.json"
    if isinstance(values, bytes):
        path.write_bytes(values)
    else:
        path.write_text(values if isinstance(values, str) else json.dumps(values))
    with pytest.raises(ReportError, match=problem) as caught:
        read_timings(path, "X")
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    assert len(message) < 500


def test_a_file_that_cannot_be_read_or_is_too_large_is_an_error(tmp_path):
    with pytest.raises(ReportError, match="cannot be read"):
        read_timings(tmp_path / "nowhere.json", "X")
    with pytest.raises(ReportError, match="cannot be read"):
        read_timings(tmp_path, "X")
    large = tmp_path / "large.json"
    with large.open("wb") as sink:
        sink.truncate(LARGEST_BYTES + 1)
    with pytest.raises(ReportError, match="larger than 64 MiB"):
        read_timings(large, "X")


def test_files_of_one_machine_stand_side_by_side(tmp_path):
    before = content(timing("g", "SMO", 0.010, evaluations=5), timing("g", "SDCA", 0.020))
    after = content(
        timing("g", "SMO", 0.015, evaluations=6),
        timing("g", "SDCA", 0.0205),
        timing("g", "SBP", 2.0),
        python_version="3.12.1",
    )
    files = [
        read_timings(saved(tmp_path / f"{name}.json", values), name)
        for name, values in (("Before", before), ("After", after))
    ]
    page = timings_page(files)
    text = text_of(page).replace(formatting.DASH, "-")
    # The ratio and its word, then the counts that differ; the quartiles of SDCA overlap.
    assert "SMO 10.0 1.00 7 15.0 1.50 7 1.50 slower 5 After: 6" in text
    assert "SDCA 20.0 2.00 7 20.5 2.05 7 1.02 -" in text
    assert "SBP - - - 2,000 200 7 - -" in text
    assert "CPython" in text
    assert "3.12.1" in text
    # Of the two in both files the median ratio, and how many are slower and faster.
    assert "1.26 of 2 1, 0" in text
    assert "machines" not in text
    assert timings_page(files) == page


def test_machines_and_clocks_are_never_compared(tmp_path):
    values = {
        "a": content(timing("g", "SMO", 0.010)),
        "b": content(timing("g", "SMO", 0.020), node="another-host"),
        "c": content(timing("g", "SMO", 0.030) | {"options": {"timer": "process_time"}}),
    }
    files = [read_timings(saved(tmp_path / name, each), name) for name, each in values.items()]
    page = timings_page(files)
    text = text_of(page)
    assert "The files are of 3 machines or clocks" in text
    assert [text.count(f"SMO {median}.0") for median in (10, 20, 30)] == [1, 1, 1]
    assert text.count("CPU time on Example CPU 3000") == 2  # in the contents and as a heading
    assert "Ratio" not in text
    assert "slower" not in text
    assert b"-host" not in page


@pytest.mark.parametrize(
    "rows",
    [
        [timing("g", "a", 0.0)],  # a logarithmic axis has no zero
        [timing("g", "a", 5e-324), timing("g", "b", 1e5)],
        [timing("g", f"row {place}", 0.001 * (place + 1)) for place in range(61)],
    ],
    ids=["no time", "next to no time", "many rows"],
)
def test_what_no_figure_can_show_has_a_table(make, tmp_path, rows):
    page = timings_page([read_timings(saved(tmp_path / "a.json", content(*rows)), "A")])
    assert b"<svg" not in page
    assert page.count(b'<th scope="row"') == 1 + len(rows)


@pytest.mark.parametrize(
    ("median", "unit", "shown", "longer"),
    [
        (2e-6, "\N{MICRO SIGN}s", "2.00", "2,000"),
        (0.0123, "ms", "12.3", "12,300"),
        (1.234, "s", "1.23", "1,234"),
    ],
)
def test_a_group_has_one_unit(tmp_path, median, unit, shown, longer):
    rows = [timing("g", "a", median), timing("g", "b", 1000 * median)]
    text = text_of(timings_page([read_timings(saved(tmp_path / "a.json", content(*rows)), "A")]))
    assert f"Median, {unit} IQR, {unit}" in text
    assert f"a {shown} " in text
    assert f"b {longer} " in text


def test_texts_from_elsewhere_stay_texts(make, tmp_path):
    hostile = timing(HOSTILE, HOSTILE, 1.0, **{HOSTILE: HOSTILE, "list": [1], "flag": True})
    values = content(hostile, timing("$x$", "", 1e-9), release=HOSTILE)
    values["commit_info"]["id"] = HOSTILE
    values["machine_info"]["cpu"] = [HOSTILE]
    out = tmp_path / "site"
    publish([], out, timings={HOSTILE: saved(tmp_path / "a.json", values)})
    page = make.page(out / "timings" / "index.html")
    assert [tag for tag, _ in page.tags if tag in ("script", "iframe", "object", "form")] == []
    assert "<script>alert" in page.text
    assert "$\\frac{$" in page.text
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page.text
    ids = page.values("id")
    assert len(ids) == len(set(ids))


def test_a_site_of_timings_alone(tmp_path, simple, monkeypatch, capsys):
    out = tmp_path / "site"
    words = ["--timings", str(simple), "--timings", f"{simple}:Again", "--out", str(out)]
    assert command(monkeypatch, *words) == 0
    assert "2 files written" in capsys.readouterr().out
    index = text_of((out / "index.html").read_bytes())
    assert "Timings" in index
    assert "Solvers" not in index
    assert 'href="timings/index.html"' in (out / "index.html").read_text()
    text = text_of((out / "timings" / "index.html").read_bytes())
    assert "a 0123456789, with changes" in text
    assert "Again" in text
    assert command(monkeypatch, *words) == 0
    assert "0 files written, 2 unchanged" in capsys.readouterr().out


def test_a_title_may_be_longer_than_a_file_name(tmp_path, simple, monkeypatch, capsys):
    words = ["--timings", f"{simple}:{'long ' * 100}", "--out", str(tmp_path / "site")]
    assert command(monkeypatch, *words) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "no results folder is given"),
        (["--timings", "nowhere.json"], "nowhere.json: cannot be read"),
        (["--timings", "nowhere.json:"], "write FILE:TITLE"),
        (["--timings", "a.json", "--timings", "b/a.json"], "another file has this title"),
    ],
)
def test_what_cannot_be_published_is_one_line(tmp_path, monkeypatch, capsys, words, problem):
    assert command(monkeypatch, *words, "--out", str(tmp_path / "site")) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert problem in line
    assert not (tmp_path / "site").exists()


SLOWED = """
from marginbench.solvers import SMO
fit = SMO.fit
def slowed(self, X, y):
    for _ in range(3):
        fit(self, X, y)
    return fit(self, X, y)
SMO.fit = slowed
"""


def _timed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "--benchmark-only", "--benchmark-max-time=0.1"]
    options = ["-k", "two_hundred and rbf-SMO", f"--benchmark-storage={folder / 'saved'}"]
    return subprocess.run(
        [*command, *options, *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_slower_solver_fails_the_comparison(tmp_path):
    (tmp_path / "slowed.py").write_text(SLOWED)
    done = _timed(tmp_path, "--benchmark-autosave")
    assert done.returncode == 0, done.stdout + done.stderr
    # Only the folder of benchmarks is collected, and what is left out is not listed.
    assert re.search(r"collected \d{2,3} items / \d+ deselected / 1 selected", done.stdout)
    assert "SKIPPED" not in done.stdout
    table = done.stdout[done.stdout.index("benchmark 'fit 200 points, rbf'") :]
    assert re.search(r"^SMO +[\d.]+", table, re.MULTILINE)
    assert max(map(len, table.splitlines()[:6])) <= 120
    [path] = (tmp_path / "saved").glob("*/0001_*.json")
    [item] = read_timings(path, "A").timings
    assert item.extra["evaluations"] >= item.extra["evaluations_computed"] > 0
    assert {"iterations", "support_vectors", "test_error", "suboptimality"} <= set(item.extra)

    slower = _timed(
        tmp_path,
        *("tests/bench/test_bench_fits.py", "-p", "slowed"),
        *("--benchmark-compare", "--benchmark-compare-fail=median:50%"),
    )
    assert slower.returncode != 0
    assert "Performance has regressed" in slower.stderr
    assert "machine_info is different" not in slower.stdout


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_fits_any_width_in_both_schemes(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    rows = [timing("g", f"{HOSTILE}{place}", 10.0**-place, evaluations=place) for place in range(5)]
    names = ("Before", "An unbreakable" + "_name" * 20)
    timings = {name: saved(tmp_path / f"{len(name)}.json", content(*rows)) for name in names}
    page = publish([], tmp_path / "site", timings=timings).index.parent / "timings" / "index.html"
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width, scheme in ((360, "dark"), (1280, "light")):
            tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            requests: list[str] = []
            tab.on("request", lambda request, seen=requests: seen.append(request.url))
            tab.goto(page.as_uri())
            assert [url for url in requests if not url.startswith("data:")] == [page.as_uri()]
            widths = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert widths[0] <= widths[1]
            box = tab.locator("figure svg[role=img]").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert axe.run(tab).response["violations"] == []
            tab.close()
        browser.close()
