"""Pages of histories: whole, linked, small, and safe whatever names say."""

import itertools
import re
from dataclasses import replace

import pytest

from marginbench.reports.regressions.annotations import Annotation
from marginbench.reports.regressions.asv_files import Benchmark, Lane
from marginbench.reports.regressions.gate import regressions
from marginbench.reports.regressions.history import (
    histories,
    render_history,
)
from marginbench.reports.regressions.repository import Commit

HOSTILE = '<b onclick="x">&"../../x"</b>\N{RIGHT-TO-LEFT OVERRIDE}'
MEASURES = ("evaluations", "iterations", "test_error", "suboptimality")


def make_history(snapshot, n=6, solvers=("SMO", "SBP")):
    """Commits of which the third doubles the evaluations of SMO, the fifth has a blip and fails."""
    found = []
    for place in range(n):
        values = {}
        for solver, task in itertools.product(solvers, ("rbf dense", "rbf sparse bias")):
            cell = f"{solver} {task}"
            later, blip = solver == "SMO" and place >= 2, solver == "SBP" and place == 4
            failed = blip and task == "rbf dense"
            values[cell, "failed"] = float(failed)
            if not failed:
                values[cell, "evaluations"] = 1000.0 * (2 if later else 3 if blip else 1)
                values[cell, "test_error"] = 20.0 - later
                values |= {(cell, "iterations"): 40.0, (cell, "suboptimality"): 0.001}
        versions = {Benchmark("work.Work", name): "1" for name in ("failed", *MEASURES)}
        commit = f"{place + 1:x}" * 40
        found.append(snapshot(values, commit, date=place * 86_400_000, versions=versions))
    return found


def named(history, subject):
    """The history with a subject for each commit, as a repository would give them."""
    commits = tuple(
        Commit(each.hash, f"{subject} {place}", "2026-11-22")
        for place, each in enumerate(history.commits)
    )
    return replace(history, commits=commits)


@pytest.fixture(scope="module")
def folder(snapshot, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    snapshots = make_history(snapshot)
    (history,) = histories(snapshots)
    other = [replace(each, lane=Lane("other", "env")) for each in make_history(snapshot, 2)]
    lanes = [named(history, "Change"), *histories(other)]
    (folder / "index.html").write_text(render_history(lanes), encoding="utf-8")
    before, after = snapshots[1:3]
    sides = Commit(before.commit, "Change 1"), Commit(after.commit, "Change 2")
    regressions(before, after, sides).write_page(folder / "pair.html")
    return folder


def rows(path):
    text = path.read_text(encoding="utf-8")
    found = (re.sub("<[^>]*>", " ", each) for each in re.findall(r"<tr.*?</tr>", text, re.DOTALL))
    return [re.sub(r"\s+", " ", each).strip() for each in found]


def test_the_page_has_the_newest_verdict_what_moved_and_every_commit(make, folder):
    assert make.broken_links(folder) == []
    page = make.page(folder / "index.html")
    assert page.values("id").count("c1-3333333333") == 1
    assert (
        "The newest of 6 commits against the one before it: improvement: 0 worse, 1 better, 11 "
        "identical of 12 values from 3 pairs of runs."
    ) in page.text
    assert (
        page.text.index("The newest") < page.text.index("What moved") < page.text.index("Subject")
    )
    found = rows(folder / "index.html")
    assert (
        "SMO rbf dense evaluations requested 3333333333 : 1,000 → 2,000 "
        "( 2.00\N{MULTIPLICATION SIGN} ) 2,000"
    ) in found
    assert any("test error 3333333333 : 20.00 % → 19.00 %" in row for row in found)
    # Values that left for one commit alone have no row; their cell failed there.
    assert not any(row.startswith("SBP") and "evaluations" in row for row in found)
    assert "SBP rbf dense 5555555555" in found
    assert "3333333333 Change 2 2026-11-22 2 worse , 2 better" in found
    again = "git switch --detach 3333333333 && python -m benchmarks.work 'SMO rbf dense'"
    assert again in make.page(folder / "pair.html").text


def test_failures_stand_first_and_hide_nothing(snapshot, make, tmp_path):
    before, after = (make_history(snapshot)[i] for i in (0, 4))
    path = regressions(before, after).write_page(tmp_path / "p.html")
    page = make.page(path)
    assert "1 run failed in B that did not in A, " in page.text
    assert any(row.startswith("failed in B work.Work rbf dense") for row in rows(path))
    assert "3.00\N{MULTIPLICATION SIGN}" in page.text


def test_hostile_names_are_text(snapshot, make, tmp_path):
    (history,) = histories(make_history(snapshot, 3, ("SMO", HOSTILE)))
    known = Annotation(("*",), ("*",), HOSTILE)
    moved = tuple(replace(each, known=(known,) * len(each.steps)) for each in history.moved)
    history = replace(named(history, HOSTILE), moved=moved, notes=(HOSTILE,))
    url, path = 'https://example.org/"><script>/', tmp_path / "index.html"
    path.write_text(render_history([history], commit_url=url), encoding="utf-8")
    page = make.page(path)
    assert page.values("onclick") == []
    assert [tag for tag, _ in page.tags].count("script") == 1


def test_one_commit_and_no_change_are_said_plainly(snapshot):
    (one,) = histories(make_history(snapshot, 1))
    assert "nothing to compare it with" in render_history([one])
    (two,) = histories(make_history(snapshot, 2))
    assert "identical: 0 worse, 16 identical" in render_history([two])
    assert "No value left its level" in render_history([two])


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_pages_fit_and_load_nothing_in_a_browser(visit, folder, width, scheme):
    for name in ("index.html", "pair.html"):
        visit(folder / name, width=width, color_scheme=scheme)
