"""Pages of histories, and sites with them: whole, linked, and safe whatever names say."""

import itertools
import json
import re
from dataclasses import replace

import pytest

from marginbench import publish
from marginbench.reports.errors import ReportError
from marginbench.reports.regressions.annotations import FILE
from marginbench.reports.regressions.asv_files import Lane
from marginbench.reports.regressions.gate import regressions
from marginbench.reports.regressions.history import histories, render_history

from .conftest import over_time, write_results


def make_history(n=6):
    """Commits of which the third doubles the evaluations of SMO, the fifth has a blip and fails."""
    commits = [{} for _ in range(n)]
    for solver, task in itertools.product(("SMO", "SBP"), ("rbf dense", "rbf sparse bias")):
        for place, values in enumerate(commits):
            later, blip = solver == "SMO" and place >= 2, solver == "SBP" and place == 4
            failed = blip and task == "rbf dense"
            values[f"{solver} {task}"] = {"failed": 1.0} if failed else {
                "failed": 0.0, "iterations": 40.0, "suboptimality": 0.001,
                "evaluations": 1000.0 * (2 if later else 3 if blip else 1),
                "test_error": 20.0 - later,
            }  # fmt: skip
    return over_time(commits)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    snapshots = make_history()
    other = [replace(each, lane=Lane("other", "env")) for each in make_history(2)]
    page = render_history(histories([*snapshots, *other]))
    (folder / "index.html").write_text(page, encoding="utf-8")
    regressions(*snapshots[1:3]).write_page(folder / "pair.html")
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
        "SMO rbf dense evaluations 3333333333 : 1,000 → 2,000 ( 2.00\N{MULTIPLICATION SIGN} ) 2,000"
    ) in found
    # An error is in points: "-5 %" would be read as a twentieth.
    assert any(
        "test error 3333333333 : 20.00 % → 19.00 % ( \N{MINUS SIGN}1.00 pt )" in row
        for row in found
    )
    # Values that left for one commit alone have no row; their cell failed there.
    assert not any(row.startswith("SBP") and "evaluations" in row for row in found)
    assert "SBP rbf dense 5555555555" in found
    assert "3333333333 2 worse , 2 better" in found
    again = "git switch --detach 3333333333 && python -m benchmarks.work 'SMO rbf dense'"
    assert again in make.page(folder / "pair.html").text


def test_one_commit_and_no_change_are_said_plainly():
    (one,) = histories(make_history(1))
    assert "nothing to compare it with" in render_history([one])
    (two,) = histories(make_history(2))
    assert "identical: 0 worse, 16 identical" in render_history([two])
    assert "No value left its level" in render_history([two])


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_pages_fit_and_load_nothing_in_a_browser(visit, folder, width, scheme):
    for name in ("index.html", "pair.html"):
        visit(folder / name, width=width, color_scheme=scheme)


CELLS = ["SMO rbf dense", "SBP rbf dense"]


def write_history(folder, commits, cells=CELLS):
    """asv's results of one count, which the last commit doubles."""
    counts = {commit: [100.0 + 100.0 * (commit == commits[-1]), 50.0] for commit in commits}
    values = {commit: {"work.Work.track_evaluations": each} for commit, each in counts.items()}
    return write_results(folder, values, cells)


@pytest.mark.slow
def test_the_history_is_linked_from_studies_and_back(make, tmp_path):
    history = write_history(tmp_path / "asv", ["1" * 40, "2" * 40, "3" * 40])
    trace = make.trace([1e3, 1e5], [0.3, 0.02], [300.0, 101.0])
    study = make.folder(tmp_path / "study", [make.finished("a", "SMO", 0, trace)])
    site = tmp_path / "site"
    publish([study], site, history=history)
    assert make.broken_links(site) == []
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    publish([study], site, history=history)
    assert {path: path.read_bytes() for path in before} == before
    index, there = site / "index.html", site / "regressions" / "index.html"
    text = make.page(index).text
    assert "The newest of 3 commits against the one before it: worsening: 1 worse" in text
    assert "regressions/index.html" in make.page(index).values("href")
    study_page = make.page(site / "studies" / "example" / "index.html")
    assert "../../regressions/index.html" in study_page.values("href")
    assert "../index.html" in make.page(there).values("href")


HOSTILE = '<b onclick="x">&"../../x"</b>\N{RIGHT-TO-LEFT OVERRIDE}'
KNOWN = f'[[change]]\ncells = "*"\nmeasures = "evaluations"\nwhy = {json.dumps(HOSTILE)}\n'


@pytest.mark.parametrize(
    "url", ["https://example.org/c/", 'https://example.org/"><script>/', "javascript:alert(1)//", 7]
)
def test_names_of_all_sorts_are_text_and_addresses_those_of_the_web(make, repo, tmp_path, url):
    settings = f'{{\n  // where commits are\n  "show_commit_url": {json.dumps(url)}\n}}\n'
    base = repo.commit("Base")
    head = repo.commit(f"One <step> {HOSTILE}", {"asv.conf.json": settings, FILE: KNOWN})
    # The repository around it is found.
    found = write_history(repo.folder / "asv", [base, head], [f"SMO {HOSTILE}", HOSTILE])
    site = tmp_path / "site"
    assert publish([], site, history=found).studies == 0
    assert "Studies" not in (site / "index.html").read_text(encoding="utf-8")
    page = make.page(site / "regressions" / "index.html")
    # The subject, the cell, and why its change is accepted.
    assert page.text.count(f"One <step> {HOSTILE[:-1]}") == 1
    assert page.text.count(HOSTILE[:-1] + r"\u202e") == page.text.count(HOSTILE[:-1]) == 3
    assert page.values("onclick") == []
    assert [tag for tag, _ in page.tags].count("script") == 1
    date = repo.git("show", "--no-patch", "--format=%cs", head)
    (row,) = (row for row in rows(site / "regressions/index.html") if row.startswith(head[:10]))
    assert f" {date} " in row
    assert (f"{url}{head}" in page.values("href")) == str(url).startswith("https")


def test_what_cannot_be_published_is_one_line(tmp_path, command):
    site, history = tmp_path / "site", write_history(tmp_path / "asv", ["1" * 40])
    for given, words in (
        ({"history": tmp_path / "none"}, "no folder of asv's results"),
        ({"history": history, "pages": {"More": tmp_path}}, "has no index.html"),
        ({}, "no results folder is given"),
    ):
        with pytest.raises(ReportError, match=words):
            publish([], site, **given)
    assert not site.exists() or not any(site.iterdir())
    code, _, err = command("publish", "--out", site, "--repository", tmp_path)
    assert code == 2
    assert "--repository: is for the commits of --history" in err
