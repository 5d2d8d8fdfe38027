"""What holds for every kind of study: nothing is lost, and page and terminal say the same."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from marginbench import report
from marginbench.harness.errors import StorageError
from marginbench.harness.results.journal import Journal
from marginbench.reports.command import write_report
from marginbench.reports.results import load_results
from marginbench.reports.templating import TEMPLATES


@dataclass
class Kind:
    """A kind of study with a solver A on a task t."""

    name: str
    make: SimpleNamespace
    write: Any

    def record(self, seed, **fields):
        if self.name == "feasibility":
            return self.make.method_record("t", "A", seed, **fields)
        trace = self.make.trace([10, 100], [0.4, 0.2])
        return self.make.finished("t", "A", seed, trace, **fields)

    def folder(self, records, **study):
        svm = self.name == "svm"
        task = self.make.task("t") if svm else self.make.cell("t")
        solver = self.make.solver("A") if svm else self.make.method("A")
        return self.write(records, [task], [solver], **study)


NAMES = ["svm", "feasibility"]


@pytest.fixture(params=NAMES)
def kind(request, make, write_results):
    return Kind(request.param, make, write_results)


@pytest.fixture(scope="module", params=NAMES)
def plain(request, make, write_results):
    """The page of two runs that ended as planned."""
    kind = Kind(request.param, make, write_results)
    records = [kind.record(0), kind.record(1)]
    return report(kind.folder(records, command="marginbench run example --jobs 1"))


@pytest.fixture(scope="module", params=NAMES)
def troubled(request, make, write_results):
    """Runs of all that can go wrong: their folder, what the page says, and what is printed."""
    kind = Kind(request.param, make, write_results)
    lost = kind.record(5)
    records = [
        kind.record(0, jobs=2),
        kind.record(1, jobs=2, environment=json.dumps({"processor": "Other CPU"})),
        kind.record(2, jobs=2, status="crashed", reason="signal 11"),
        kind.record(3, jobs=2, status="skipped", reason="needs nu"),
        kind.record(4, jobs=2),
        lost,
    ]
    folder = kind.folder(records)
    make.rewrite(folder, lambda record: None if record == lost else record)
    (path,) = Journal(folder).segments()
    path.write_bytes(path.read_bytes()[:-100])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        text = make.page(write_report(folder, "c")).text
    printed = " ".join(out.getvalue().split())
    return SimpleNamespace(folder=folder, text=text, printed=printed, journal=path)


def test_runs_without_a_readable_record_are_failures_with_their_reason(troubled):
    runs = load_results(troubled.folder).runs
    assert runs["status"].tolist() == [
        *("converged", "converged", "crashed", "skipped", "damaged", "missing")
    ]
    assert runs["wall_s"][4:].isna().all()
    assert runs["test_error"][4:].isna().all()
    for shown in (troubled.text, troubled.printed.replace("- ", "-")):
        assert re.search(rf"{troubled.journal.name}: line 6 \(byte [0-9]+\) is damaged", shown)
        assert "no record in the journal" in shown
        assert str(troubled.folder) not in shown


def test_what_readers_are_warned_of_is_told_once_everywhere(troubled):
    for shown in (troubled.text, troubled.printed):
        assert "2 runs took place at a time and shared the machine" in shown
        assert "The records come from 2 different environments (2 and 1 runs)" in shown
        assert shown.count("signal 11") == 1
        assert shown.count("needs nu") == 1
    assert "Read with care" in troubled.text
    assert "crashed: t, A, 1 run" in troubled.printed
    assert "1 of 6" in troubled.text


def test_a_record_of_another_kind_is_damaged(kind, make):
    record = kind.record(0)
    folder = kind.folder([record])
    # Both builders give the run the same key.
    other = make.method_record if kind.name == "svm" else make.record
    make.rewrite(folder, lambda record: other("t", "A", 0))
    assert load_results(folder).runs["status"].tolist() == ["damaged"]


def test_nothing_is_wrong_with_plain_runs_and_the_command_is_shown_once(plain, make):
    text = make.page(plain).text
    assert "None: every planned run ended as planned." in text
    assert "Read with care" not in text
    assert text.count("marginbench run example --jobs 1") == 1


def test_the_same_results_give_the_same_bytes_but_for_the_command(plain, make):
    before = plain.read_bytes()
    assert report(plain.parent).read_bytes() == before
    again = make.page(report(plain.parent, "marginbench run example")).text
    assert "The runs were made with marginbench run example --jobs 1" in again


def test_the_page_is_self_contained_and_its_links_resolve(plain, make):
    text, page = plain.read_text(encoding="utf-8"), make.page(plain)
    # Vega names standards by their addresses; the page's policy keeps it from asking for them.
    text = text.replace((TEMPLATES / "vega.min.js").read_text(encoding="ascii"), "")
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert not {"iframe", "img", "object", "embed"} & {tag for tag, _ in page.tags}
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [
        {"type": "application/json", "id": "explorer-data"},
        {},
        {},
    ]
    assert "default-src 'none'" in " ".join(page.values("content"))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    links = page.values("href") + page.values("src")
    assert {link for link in links if not link.startswith("data:")} <= {f"#{name}" for name in ids}
    labels = {name for value in page.values("aria-labelledby") for name in value.split()}
    assert labels <= set(ids)


HOSTILE = "<script>alert('x')</script> & \"quoted\" {{ 7 * 7 }} [bold]\u202e"


def test_hostile_names_are_text(kind, make, capsys):
    failed = kind.record(1, status="failed", reason=HOSTILE)
    environment = json.dumps({"processor": f"</style>{HOSTILE}"})
    records = [kind.record(0, environment=environment), failed]
    for record in records:
        record.task = record.solver = HOSTILE
    svm = kind.name == "svm"
    task = make.task(HOSTILE, dataset=HOSTILE, citation=HOSTILE) if svm else make.cell(HOSTILE)
    solver = (make.solver if svm else make.method)(HOSTILE, params={HOSTILE: HOSTILE})
    folder = kind.write(
        records, [task], [solver], title=HOSTILE, description=HOSTILE, command=HOSTILE
    )
    path = write_report(folder, HOSTILE)
    text = path.read_text(encoding="utf-8")
    assert text.count("<script") == 3  # data, Vega and script of the page
    assert "\u202e" not in text  # which would reorder what stands around it
    assert make.page(path).text.count(HOSTILE.replace("\u202e", r"\u202e")) > 8
    assert "[bold]" in capsys.readouterr().out


def test_a_failed_write_leaves_the_old_page(make, write_results, monkeypatch):
    kind = Kind("feasibility", make, write_results)
    folder = kind.folder([kind.record(0)])
    path = report(folder, "first")
    before = path.read_bytes()

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(StorageError, match="disk full"):
        report(folder, "second")
    assert path.read_bytes() == before
    assert sorted(item.name for item in folder.iterdir()) == [
        *("journal", "report.html", "runs.parquet", "study.json")
    ]
