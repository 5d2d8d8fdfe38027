"""Pages of histories: whole, linked, small, and safe whatever names say."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from marginbench.harness.errors import StorageError
from marginbench.reports.regressions.annotations import Annotation
from marginbench.reports.regressions.history import History, Neighbours, histories
from marginbench.reports.regressions.overview import Surroundings, history_pages
from marginbench.reports.regressions.pages import render_pair, write_pair_page
from marginbench.reports.regressions.repository import Commit
from marginbench.reports.regressions.sentences import ratio_words
from marginbench.reports.regressions.values import Benchmark, Cell, Key, Lane, Snapshot, Value
from marginbench.reports.regressions.verdicts import compared
from marginbench.reports.regressions.words import Pair

HOSTILE = '<b onclick="x">&"../../x"</b>\N{RIGHT-TO-LEFT OVERRIDE}'
MEASURES = ("evaluations", "iterations", "test_error", "suboptimality")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def make_history(
    snapshot: Callable[..., Snapshot], n: int = 6, solvers: tuple[str, ...] = ("SMO", "SBP")
) -> list[Snapshot]:
    """Commits of which the third doubles the evaluations of SMO, the fifth has a blip and fails."""
    found = []
    for place in range(n):
        values: dict[tuple[str, str], float | None] = {}
        for solver in solvers:
            for task in ("rbf dense", "rbf sparse bias"):
                cell = f"{solver} {task}"
                failed = solver == "SBP" and task == "rbf dense" and place == 4
                values[cell, "failed"] = float(failed)
                if failed:
                    continue
                doubled = 2 if solver == "SMO" and place >= 2 else 1
                blip = 3 if solver == "SBP" and place == 4 else 1
                values |= {
                    (cell, "evaluations"): 1000.0 * doubled * blip,
                    (cell, "iterations"): 40.0,
                    (cell, "test_error"): 20.0 - (solver == "SMO" and place >= 2),
                    (cell, "suboptimality"): 0.001,
                }
        made = snapshot(values, f"{place + 1:x}" * 40, date=place * 86_400_000)
        names = [Benchmark("work.Work", name) for name in ("failed", *MEASURES)]
        found.append(replace(made, versions=dict.fromkeys(names, "1")))
    return found


def named(history: History, subject: str) -> History:
    """The history with a subject for each commit, as a repository would give them."""
    commits = tuple(
        Commit(each.hash, f"{subject} {place}", "2026-11-22")
        for place, each in enumerate(history.commits)
    )
    pairs = tuple(
        replace(pair, base=commits[i], head=commits[i + 1]) for i, pair in enumerate(history.pairs)
    )
    return replace(history, commits=commits, pairs=pairs)


def written(pages: Any, folder: Path) -> Path:
    for name, text in pages:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def folder(snapshot, tmp_path_factory):
    (history,) = histories(make_history(snapshot))
    other = [replace(each, lane=Lane("other", "env")) for each in make_history(snapshot, 2)]
    lanes = [named(history, "Change"), *histories(other)]
    return written(history_pages(lanes), tmp_path_factory.mktemp("pages"))


def dead_links(make: SimpleNamespace, folder: Path) -> list[str]:
    """Links of pages that lead to no page or no anchor of the folder."""
    pages = {path: make.page(path) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        ids = page.values("id")
        assert len(ids) == len(set(ids)), path
        for address in page.values("href"):
            parts = urlsplit(address)
            target = Path(os.path.normpath(path.parent / unquote(parts.path)))
            target = target if parts.path else path
            if address != "data:," and (
                target not in pages
                or (parts.fragment and parts.fragment not in pages[target].values("id"))
            ):
                found.append(f"{path.name}: {address}")
    return found


def test_every_commit_solver_and_lane_has_a_page_and_links_resolve(make, folder):
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.html")}
    commits = {f"commits/{digit * 12}.html" for digit in "23456"}
    second = {"lane-2/index.html", "lane-2/smo.html", "lane-2/sbp.html"}
    second.add(f"lane-2/commits/{'2' * 12}.html")
    assert names == {"index.html", "smo.html", "sbp.html"} | commits | second
    assert dead_links(make, folder) == []


def test_the_overview_says_first_what_the_newest_commit_did(make, folder):
    text = make.page(folder / "index.html").text
    assert "The newest of 6 commits changed 2 cells: 1 mended, 1 blip (SBP)." in text
    assert "Before that, the last change came with 5555555555 Change 4" in text
    # The numbers of the doubling: two cells are mixed, as their test error is better.
    row = next(line for line in _rows(folder / "index.html") if "3333333333" in line)
    assert re.sub(r"\s+", " ", row).strip() == "3333333333 Change 2 2026-11-22 0 0 2 0 0 0 SMO"


def _rows(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [re.sub("<[^>]*>", " ", each) for each in re.findall(r"<tr.*?</tr>", text, re.DOTALL)]


def test_only_solvers_that_changed_are_drawn_in_the_overview(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    labels = re.findall(
        r'<svg class="spark" viewBox="[^"]*" role="group" aria-label="([^"]*)"', text
    )
    assert labels == [
        "Failures of SBP over commits",
        "evaluations asked of SMO: \N{MULTIPLICATION SIGN}2.00 after steps at 1 commit",
        "test error of SMO: \N{MINUS SIGN}1 points after steps at 1 commit",
    ]


def test_a_solver_page_shows_steps_blips_failures_and_gaps(make, folder):
    smo, sbp = (make.page(folder / name).text for name in ("smo.html", "sbp.html"))
    assert "2 cells over 6 commits: 4 steps." in smo
    assert "3333333333 Change 2: 1,000 → 2,000 (\N{MULTIPLICATION SIGN}2.00)" in smo
    assert "evaluations asked \N{MULTIPLICATION SIGN}2.00 in 2 cells" in smo
    assert "2 cells over 6 commits: no step and 1 blip." in sbp
    assert "5555555555 Change 4: blip, 3,000 here alone" in sbp
    assert "5555555555 Change 4: failed" in sbp
    drawn = (folder / "sbp.html").read_text(encoding="utf-8")
    label = 'aria-label="evaluations asked of SBP rbf dense: 1 failure"'
    gap = re.search(label + '><path class="line" d="([^"]*)"', drawn)
    assert gap
    assert gap[1].count("M") == 2  # the line breaks at the failure


def test_the_page_of_two_commits_tells_verdict_changes_and_commands(make, folder):
    page = make.page(folder / "commits" / f"{'3' * 12}.html")
    assert "Worse in 2 cells (SMO)" in page.text
    assert (
        "The gate refuses this: something is worse and no known change says why (exit code 1)."
        in page.text
    )
    assert (
        "git switch --detach 3333333333 && python -m benchmarks.work 'SMO rbf dense'" in page.text
    )
    assert "2 cells without a change beyond the bounds" in page.text
    later = make.page(folder / "commits" / f"{'6' * 12}.html").text
    assert "1 value came back from a blip." in later


def test_failures_stand_first_and_hide_nothing(snapshot, make, tmp_path):
    before, after = (make_history(snapshot)[i] for i in (0, 4))
    pair = Pair(Commit(before.commit), Commit(after.commit), compared(before, after))
    text = make.page(write_pair_page(tmp_path / "p.html", pair)).text
    assert "Failed in 1 cell (SBP); worse in 3 cells (SMO 2, SBP 1)" in text
    assert text.index("Failures") < text.index("Changes by solver") < text.index("Changed values")
    assert text.count("\N{MULTIPLICATION SIGN}3") >= 1
    assert "exit code 2" in text


def test_known_changes_stand_with_their_reason(snapshot):
    before, after = make_history(snapshot)[1:3]
    known = Annotation(("SMO *",), ("evaluations",), "The exact search costs a row more.")
    comparison = compared(before, after, annotations=[known])
    pair = Neighbours(Commit(before.commit), Commit(after.commit), comparison, annotations=(known,))
    text = render_pair(pair)
    assert "Only known changes, in 2 cells" in text
    assert "Accepts changes of 2 cells." in text
    assert "exit code 0" in text


def test_times_with_intervals_apart_are_advice(snapshot):
    key = Key(Cell("solve.Fit", "SMO"), "time_fit")
    sides = []
    for digit, scale in (("1", 1.0), ("2", 2.0)):
        samples = tuple(scale * (1 + i / 100) for i in range(8))
        made = snapshot({}, digit * 40)
        benchmark = Benchmark("solve.Fit", "time_fit")
        value = Value(samples[0], samples)
        made = replace(
            made, values={key: value}, versions={benchmark: "1"}, units={"time_fit": "seconds"}
        )
        sides.append(made)
    text = render_pair(Pair(Commit("1" * 40), Commit("2" * 40), compared(*sides)))
    assert "Times: advice only" in text
    assert "\N{MULTIPLICATION SIGN}2.00" in text
    assert "exit code 0" in text


def test_hostile_names_are_text(snapshot, make, tmp_path):
    (history,) = histories(make_history(snapshot, 3, (HOSTILE, "index", "Index")))
    known = Annotation(("*",), ("*",), HOSTILE)
    history = named(history, HOSTILE)
    pairs = tuple(replace(pair, annotations=(known,)) for pair in history.pairs)
    history = replace(history, pairs=pairs, notes=(HOSTILE,))
    around = Surroundings(commit_url='https://example.org/"><script>/')
    folder = written(history_pages([history], around), tmp_path)
    assert sorted(path.name for path in folder.glob("*.html"))[:3] == [
        "b.html",
        "index-2.html",
        "index-3.html",
    ]
    for path in folder.rglob("*.html"):
        page = make.page(path)
        assert "onclick" not in {name for _, attributes in page.tags for name in attributes}
        assert [tag for tag, _ in page.tags].count("script") == 1
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in path.read_text(encoding="utf-8")


def test_one_commit_and_no_change_are_said_plainly(snapshot):
    (one,) = histories(make_history(snapshot, 1))
    assert "nothing to compare it with" in dict(history_pages([one]))["index.html"]
    (two,) = histories(make_history(snapshot, 2))
    pages = dict(history_pages([two]))
    assert "The newest of 2 commits changed nothing." in pages["index.html"]
    assert "Nothing changed" in pages[f"commits/{'2' * 12}.html"]


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (None, ""),
        (1.0, "1.00"),
        (1.932, "1.93"),
        (1.0042, "1.004"),
        (0.99994, "0.9999"),
        (1 + 1e-9, "1.0000"),
        (0.0123456, "0.0123"),
        (1234.5, "1.23e+03"),
    ],
)
def test_ratios_are_told_from_one(ratio, words):
    assert ratio_words(ratio).removeprefix("\N{MULTIPLICATION SIGN}") == words


def test_a_page_needs_a_file(snapshot, tmp_path):
    before, after = make_history(snapshot, 2)
    pair = Pair(Commit(before.commit), Commit(after.commit), compared(before, after))
    with pytest.raises(StorageError, match="is a folder"):
        write_pair_page(tmp_path, pair)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_pages_fit_and_load_nothing_in_a_browser(folder):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    pages = [folder / "index.html", folder / "sbp.html", folder / "commits" / f"{'3' * 12}.html"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        for width, scheme in ((360, "light"), (1280, "dark")):
            size = {"width": width, "height": 800}
            tab = browser.new_page(viewport=size, color_scheme=scheme)
            complaints: list[str] = []
            requests: list[str] = []
            tab.on("console", lambda message, found=complaints: found.append(message.text))
            tab.on("pageerror", lambda error, found=complaints: found.append(str(error)))
            tab.on("request", lambda request, found=requests: found.append(request.url))
            for path in pages:
                tab.goto(path.as_uri())
                wide = tab.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, path
                for box in tab.evaluate(_BOXES):
                    assert box["width"] >= 60, path
                    assert box["left"] >= 0, path
                    assert box["right"] <= width, path
            assert complaints == []
            assert [url for url in requests if not url.startswith("data:")] == [
                path.as_uri() for path in pages
            ]
        browser.close()


_BOXES = """[...document.querySelectorAll("figure .spark, td .spark")].map(
    each => each.getBoundingClientRect().toJSON())"""
