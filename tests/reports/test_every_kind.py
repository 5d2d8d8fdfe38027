"""What holds for every kind of study: nothing is lost, and page and terminal say the same."""

import functools
import json
import re

import pytest

from marginbench import report
from marginbench.harness.results.journal import Journal
from marginbench.reports.command import write_report
from marginbench.reports.results import load_results
from marginbench.reports.templating import TEMPLATES


@pytest.fixture(scope="module", params=["svm", "feasibility"])
def record(request, make):
    """Makes records of a solver A on a task t in a study of each kind."""
    if request.param == "feasibility":
        return functools.partial(make.method_record, "t", "A")
    trace = make.trace([10, 100], [0.4, 0.2])
    return lambda seed, **fields: make.finished("t", "A", seed, trace, **fields)


@pytest.fixture(scope="module")
def plain(record, write_results):
    """The page of two runs that ended as planned."""
    return report(write_results([record(0), record(1)], command="marginbench run example --jobs 1"))


def test_all_that_went_wrong_is_told_everywhere(record, make, write_results, capsys):
    lost = record(5)
    records = [
        record(0, jobs=2),
        record(1, jobs=2, environment=json.dumps({"processor": "Other CPU"})),
        record(2, jobs=2, status="crashed", reason="signal 11"),
        record(3, jobs=2, status="skipped", reason="needs nu"),
        record(4, jobs=2),
        lost,
    ]
    folder = write_results(records)
    make.rewrite(folder, lambda record: None if record == lost else record)
    (journal,) = Journal(folder).segments()
    journal.write_bytes(journal.read_bytes()[:-100])
    runs = load_results(folder).runs
    assert runs["status"].tolist() == [
        *("converged", "converged", "crashed", "skipped", "damaged", "missing")
    ]
    assert runs[["wall_s", "test_error"]][4:].isna().all(axis=None)
    text = make.page(write_report(folder, "c")).text
    printed = " ".join(capsys.readouterr().out.split())
    for shown in (text, printed.replace("- ", "-")):
        assert re.search(rf"{journal.name}: line 5 \(byte [0-9]+\) is damaged", shown)
        assert "no record in the journal" in shown
        assert str(folder) not in shown
        assert "2 runs took place at a time and shared the machine" in shown
        assert "The records come from 2 different environments (2 and 1 runs)" in shown
        assert (shown.count("signal 11"), shown.count("needs nu")) == (1, 1)
    assert "Read with care" in text
    assert "crashed: t, A, 1 run" in printed
    assert "1 of 6" in text


def test_a_record_of_another_kind_is_damaged(record, make, write_results):
    folder = write_results([record(0)])
    # Both builders give the run the same key.
    other = make.method_record if record(0).kind == "svm" else make.record
    make.rewrite(folder, lambda record: other("t", "A", 0))
    assert load_results(folder).runs["status"].tolist() == ["damaged"]


@pytest.mark.usefixtures("undrawn")
def test_plain_runs_raise_no_caution_and_name_their_command_whatever_the_last_one_was(plain, make):
    text = make.page(plain).text
    assert "None: every run that was tried ended as planned." in text
    assert "Read with care" not in text
    assert text.count("marginbench run example --jobs 1") == 1
    again = make.page(report(plain.parent, "marginbench run example")).text
    assert "The runs were made with marginbench run example --jobs 1" in again


def test_the_page_is_self_contained_and_its_links_resolve(plain, make, tmp_path):
    # Vega names standards by their addresses; the page's policy keeps it from asking for them.
    vega = (TEMPLATES / "vega.min.js").read_text(encoding="ascii")
    text = plain.read_text(encoding="utf-8").replace(vega, "")
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    assert make.broken_links(tmp_path) == []
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    page = make.page(plain)
    assert not {"iframe", "img", "object", "embed"} & {tag for tag, _ in page.tags}
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [
        {"type": "application/json", "id": "explorer-data"},
        {"type": "application/json", "id": "explorer-spec"},
        {},
        {},
    ]
    assert "default-src 'none'" in " ".join(page.values("content"))


HOSTILE = "<script>alert('x')</script> & \"quoted\" {{ 7 * 7 }} [bold]\u202e"


def test_hostile_names_are_text(record, make, write_results, capsys):
    failed = record(1, status="failed", reason=HOSTILE)
    records = [record(0, environment=json.dumps({"processor": f"</style>{HOSTILE}"})), failed]
    for each in records:
        each.task = each.solver = HOSTILE
    svm = failed.kind == "svm"
    task = make.task(HOSTILE, dataset=HOSTILE, citation=HOSTILE) if svm else make.cell(HOSTILE)
    solver = (make.solver if svm else make.method)(HOSTILE, params={HOSTILE: HOSTILE})
    words = dict.fromkeys(("title", "description", "command"), HOSTILE)
    path = write_report(write_results(records, [task], [solver], **words), HOSTILE)
    text = path.read_text(encoding="utf-8")
    assert text.count("<script") == 4  # data, figure, Vega and script of the page
    assert "\u202e" not in text  # which would reorder what stands around it
    assert make.page(path).text.count(HOSTILE.replace("\u202e", r"\u202e")) > 8
    assert "[bold]" in capsys.readouterr().out
