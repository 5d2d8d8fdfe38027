"""Sites with the history of regressions: linked both ways, reproducible, and alone."""

import json
import os
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from marginbench import publish
from marginbench.reports.command import main
from marginbench.reports.errors import ReportError

CELLS = ["SMO rbf dense", "SBP rbf dense"]


@pytest.fixture
def results(write_asv_results):
    """Writes asv's results of one count, which the last commit doubles."""

    def write(folder, commits):
        values = {commit: {"work.Work.track_evaluations": [100.0, 50.0]} for commit in commits}
        values[commits[-1]] = {"work.Work.track_evaluations": [200.0, 50.0]}
        return write_asv_results(folder, values, CELLS)

    return write


@pytest.fixture
def history(results, tmp_path):
    return results(tmp_path / "asv", ["1" * 40, "2" * 40, "3" * 40])


@pytest.fixture
def study(make, tmp_path):
    trace = make.trace([1e3, 1e4, 1e5], [0.3, 0.1, 0.02], [300.0, 120.0, 101.0])
    solvers = [make.solver("My SMO", **{"class": "marginbench:SMO"})]
    records = [make.finished("a", "My SMO", 0, trace)]
    return make.folder(tmp_path / "study", records, [make.task("a")], solvers, name="example")


def targets(make, page):
    """The files that a page links to; each of them exists."""
    found = {
        Path(os.path.normpath(page.parent / unquote(urlsplit(address).path)))
        for address in make.page(page).values("href")
        if urlsplit(address).scheme != "data" and urlsplit(address).path
    }
    assert all(path.is_file() for path in found)
    return found


@pytest.mark.slow
def test_the_history_is_linked_from_studies_and_back(make, study, history, tmp_path):
    site = tmp_path / "site"
    publish([study], site, history=history)
    pages = site / "regressions"
    index = site / "index.html"
    assert pages / "index.html" in targets(make, index)
    text = make.page(index).text
    assert "The newest of 3 commits against the one before it: worsening: 1 worse" in text
    assert pages / "index.html" in targets(make, site / "studies" / "example" / "index.html")
    assert index in targets(make, pages / "index.html")


def test_the_history_stands_alone_and_the_same_results_give_the_same_files(history, tmp_path):
    site = tmp_path / "site"

    def files():
        found = publish([], site, history=history)
        assert found.studies == 0
        return {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}

    assert files() == files()
    assert "Studies" not in (site / "index.html").read_text(encoding="utf-8")


def test_commits_have_subjects_and_addresses_from_their_repository(results, repo, tmp_path):
    settings = '{\n  // where commits are\n  "show_commit_url": "https://example.org/c/"\n}\n'
    head = repo.commit("One <step>", {"asv.conf.json": settings})
    found = results(repo.folder / "asv", ["1" * 40, head])  # the repository around it is found
    publish([], tmp_path / "site", history=found)
    text = (tmp_path / "site" / "regressions" / "index.html").read_text(encoding="utf-8")
    assert "One &lt;step&gt;" in text
    assert f'href="https://example.org/c/{head}"' in text


@pytest.mark.parametrize("url", ["javascript:alert(1)//", 7])
def test_only_addresses_of_the_web_become_links(history, repo, tmp_path, url):
    (repo.folder / "asv.conf.json").write_text(json.dumps({"show_commit_url": url}))
    publish([], tmp_path / "site", history=history, repository=repo.folder)
    text = (tmp_path / "site" / "regressions" / "index.html").read_text(encoding="utf-8")
    assert ">web<" not in text


def test_what_cannot_be_published_is_one_line(history, tmp_path, capsys, monkeypatch):
    site = tmp_path / "site"
    with pytest.raises(ReportError, match="no folder of asv's results"):
        publish([], site, history=tmp_path / "none")
    other = tmp_path / "more"
    other.mkdir()
    (other / "index.html").write_text("x")
    with pytest.raises(ReportError, match="choose another title"):
        publish([], site, history=history, pages={"Regressions": other})
    with pytest.raises(ReportError, match="no results folder is given"):
        publish([], site)
    assert not site.exists() or not any(site.iterdir())
    words = ["marginbench", "publish", "--out", str(site), "--repository", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "--repository: is for the commits of --history" in capsys.readouterr().err
