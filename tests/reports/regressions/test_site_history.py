"""Sites with the history of regressions: linked both ways, reproducible, and alone."""

import json

import pytest

from marginbench import publish
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


@pytest.mark.slow
def test_the_history_is_linked_from_studies_and_back(make, history, tmp_path):
    trace = make.trace([1e3, 1e5], [0.3, 0.02], [300.0, 101.0])
    study = make.folder(tmp_path / "study", [make.finished("a", "SMO", 0, trace)])
    site = tmp_path / "site"
    publish([study], site, history=history)
    assert make.broken_links(site) == []
    index, there = site / "index.html", site / "regressions" / "index.html"
    text = make.page(index).text
    assert "The newest of 3 commits against the one before it: worsening: 1 worse" in text
    assert "regressions/index.html" in make.page(index).values("href")
    study_page = make.page(site / "studies" / "example" / "index.html")
    assert "../../regressions/index.html" in study_page.values("href")
    assert "../index.html" in make.page(there).values("href")


def test_the_history_stands_alone_and_the_same_results_give_the_same_files(history, tmp_path):
    site = tmp_path / "site"

    def files():
        assert publish([], site, history=history).studies == 0
        return {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}

    assert files() == files()
    assert "Studies" not in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("url", ["https://example.org/c/", "javascript:alert(1)//", 7])
def test_commits_have_subjects_and_addresses_of_the_web_from_their_repository(
    results, repo, tmp_path, url
):
    settings = f'{{\n  // where commits are\n  "show_commit_url": {json.dumps(url)}\n}}\n'
    head = repo.commit("One <step>", {"asv.conf.json": settings})
    found = results(repo.folder / "asv", ["1" * 40, head])  # the repository around it is found
    publish([], tmp_path / "site", history=found)
    text = (tmp_path / "site" / "regressions" / "index.html").read_text(encoding="utf-8")
    assert "One &lt;step&gt;" in text
    assert (f'href="{url}{head}"' in text) == str(url).startswith("https")


def test_what_cannot_be_published_is_one_line(history, tmp_path, command):
    site, other = tmp_path / "site", tmp_path / "more"
    other.mkdir()
    (other / "index.html").write_text("x")
    for given, words in (
        ({"history": tmp_path / "none"}, "no folder of asv's results"),
        ({"history": history, "pages": {"Regressions": other}}, "choose another title"),
        ({}, "no results folder is given"),
    ):
        with pytest.raises(ReportError, match=words):
            publish([], site, **given)
    assert not site.exists() or not any(site.iterdir())
    code, _, err = command("publish", "--out", site, "--repository", tmp_path)
    assert code == 2
    assert "--repository: is for the commits of --history" in err
