"""Stores: every line reaches every machine once, whatever breaks off; studies and commands."""

import contextlib
import json
import os
import random
import re
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marginbench.harness.errors import InterruptedRunError, UserError
from marginbench.harness.execution import runner
from marginbench.harness.execution.runner import run_study
from marginbench.harness.jobs import Started
from marginbench.harness.planning.status import Monitor
from marginbench.harness.results import stores
from marginbench.harness.results.stores import (
    Item,
    Mirror,
    Store,
    StoreError,
    StoreUrl,
    is_url,
    local_folder,
    pushed_page,
    synced,
)

from ..faults.conftest import numbers
from .answers import InProcess
from .conftest import board_study

pytest.importorskip("obstore", reason="of the extra 'cloud' and the group 'dev'")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def url(store):
    return f"file://{store}"


@pytest.fixture
def mirror_of(tmp_path, url, monkeypatch):
    """Makes the mirror of the store on a machine, brought up to date."""

    def make(machine):
        monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / machine))
        mirror = Mirror(StoreUrl.parsed(url))
        mirror.pull()
        return mirror

    return make


@pytest.fixture
def mirror(mirror_of):
    return mirror_of("here")


def line(number):
    return b'%032d {"type":"record"}\t{"n":%d}\n' % (number, number)


def append(mirror, content, segment="20260101T000000.000000Z-aa"):
    path = mirror.folder / "journal" / f"{segment}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as sink:
        sink.write(content)


def journal(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("journal/*"))}


def test_lines_reach_every_machine_once_wherever_an_exchange_breaks_off(
    mirror_of, store, monkeypatch
):
    rng = random.Random(1)
    names = ["one", "two", "three"]
    mirrors = [mirror_of(name) for name in names]
    append_part = Mirror._append

    def breaks_off(often):
        if rng.random() < often:
            raise StoreError("broken off")

    def breaking(method, before, after):
        def call(*arguments):
            breaks_off(before)
            found = method(*arguments)
            breaks_off(after)
            return found

        return call

    def killed(self, part, content):
        kept = rng.randrange(len(content)) if rng.random() < 0.2 else len(content)
        append_part(self, part, content[:kept])
        breaks_off(kept < len(content))

    def exchange_all():
        for mirror in (*mirrors, *mirrors):
            mirror.exchange()
        return journal(store)

    written, half = dict.fromkeys(names, b""), dict.fromkeys(names, b"")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", breaking(Store.put, 0.3, 0.3))
        patch.setattr(Store, "get", breaking(Store.get, 0.2, 0.0))
        patch.setattr(Mirror, "_append", killed)
        for step in range(60):
            which = rng.randrange(3)
            # Whoever writes may be in the middle of a line.
            stop = len(line(step)) if rng.random() < 0.7 else rng.randrange(len(line(step)))
            append(mirrors[which], half[names[which]] + line(step)[:stop], names[which])
            half[names[which]] = line(step)[stop:]
            written[names[which]] += line(step)
            before = journal(store)
            with contextlib.suppress(StoreError):
                mirrors[which].exchange()
            # What is there stays as it is.
            assert journal(store).items() >= before.items()
    for mirror, name in zip(mirrors, names, strict=True):
        append(mirror, half[name], name)
    objects = exchange_all()
    assert exchange_all() == objects
    for name, content in objects.items():
        segment, offset, _ = name.split(".")
        assert written[segment][int(offset) :].startswith(content)
        assert content.endswith(b"\n")
    for mirror in (*mirrors, mirror_of("new")):
        assert journal(mirror.folder) == {f"{k}.jsonl": v for k, v in sorted(written.items())}


def test_the_last_description_of_the_study_reaches_all(mirror_of, store):
    here, there = mirror_of("here"), mirror_of("there")
    for number, (writer, reader) in enumerate([(here, there), (there, here), (here, there)]):
        (writer.folder / "study.json").write_text(str(number))
        writer.exchange()
        reader.exchange()
        for folder in (store, reader.folder, writer.folder):
            assert (folder / "study.json").read_text() == str(number)
    before = (store / "study.json").stat()
    here.exchange()
    assert (store / "study.json").stat() == before


def test_several_commands_of_a_machine_use_one_mirror(mirror_of):
    first, second, elsewhere = mirror_of("here"), mirror_of("here"), mirror_of("there")
    assert first.folder == second.folder
    append(elsewhere, b"".join(map(line, range(100))))
    elsewhere.exchange()
    with ThreadPoolExecutor(10) as pool:
        for ended in [pool.submit(mirror.exchange) for mirror in (first, second) * 5]:
            ended.result()
    assert journal(first.folder) == journal(elsewhere.folder)


@pytest.mark.parametrize("kept", [0, 20])
def test_what_a_store_has_lost_comes_back_from_who_wrote_it(mirror, mirror_of, store, kept):
    for number in range(3):
        append(mirror, line(number))
        mirror.exchange()
    middle = store / "journal" / sorted(journal(store))[1]
    if kept:
        os.truncate(middle, kept)
    else:
        middle.unlink()
    there = mirror_of("there")
    assert [*journal(there.folder).values()] == [line(0) + line(1)[:kept]]
    there.exchange()
    assert len(journal(store)) == (3 if kept else 2)
    mirror.exchange()
    there.exchange()
    assert journal(there.folder) == journal(mirror.folder)


def test_names_in_a_store_that_are_not_of_a_results_folder_are_left(
    mirror_of, tmp_path, monkeypatch
):
    outside = ("journal/../../a.jsonl", "/a/journal/b.jsonl", "journal/../a")
    others = ("logs/a.txt", "journal/a.txt", "journal/.a.jsonl", "notes.txt")
    names = outside + others
    monkeypatch.setattr(Store, "list", lambda self: dict.fromkeys(names, Item(1, "")))
    monkeypatch.setattr(Store, "get", lambda self, name: b"x")
    mirror_of("here")
    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == [".lock", "url"]


def test_a_store_that_fails_does_not_end_a_study(url, store, mirror, monkeypatch):
    said = []

    def fail(self):
        raise StoreError(f"{url}: out of order")

    def study():
        with synced(url, said.append) as (folder, exchange):
            assert folder == mirror.folder
            append(mirror, line(0))
            exchange()
            patch.setattr(Store, "list", fail)
            append(mirror, line(1) + line(2))
            exchange()
            exchange()
            assert said == [f"{url}: out of order; the study goes on and tries again"]

    with monkeypatch.context() as patch, pytest.raises(StoreError) as caught:
        study()
    assert str(caught.value) == (
        f"{url}: out of order; what was recorded stays in {mirror.folder}; run the same command "
        "again to push it"
    )
    assert caught.value.exit_code == 4
    with synced(url, said.append):
        pass
    assert b"".join(journal(store).values()) == line(0) + line(1) + line(2)


def test_a_store_that_may_only_be_read_ends_a_study_at_its_first_push(url, store, mirror):
    store.write_text("a file, which no object can be in")

    def study():
        with synced(url, print) as (_, exchange):
            exchange()
            append(mirror, line(1))
            exchange()

    with pytest.raises(StoreError, match=f"^{url}: cannot be read or written"):
        study()


def test_a_store_that_is_slow_does_not_keep_a_study_waiting(url, store, mirror, monkeypatch):
    monkeypatch.setattr(stores, "PATIENCE_S", 0.01)
    free, put = threading.Event(), Store.put

    def slow(self, name, content):
        assert free.wait(60)
        return put(self, name, content)

    monkeypatch.setattr(Store, "put", slow)
    with synced(url, print) as (_, exchange):
        append(mirror, line(1))
        for _ in range(3):
            exchange()
        append(mirror, line(2))
        free.set()
    assert b"".join(journal(store).values()) == line(1) + line(2)


def test_the_page_goes_to_the_store_unless_it_is_there(mirror, store, url, monkeypatch):
    page = mirror.folder / "report.html"
    page.write_text("page")
    assert pushed_page(page) == f"{store}/report.html"
    assert (store / "report.html").read_text() == "page"

    def refuse(self, name, content):
        raise StoreError(f"{url}: access was denied")

    monkeypatch.setattr(Store, "put", refuse)
    assert pushed_page(page) == f"{store}/report.html"
    page.write_text("another page")
    with pytest.raises(StoreError, match=f"access was denied; the page is here: {page}$"):
        pushed_page(page)
    assert pushed_page(store / "report.html") == str(store / "report.html")


def test_a_url_is_told_from_a_path_and_one_that_is_none_is_named():
    for path in ("results/a", "C:/results", "C:\\results", "a:b", "/srv/a"):
        assert not is_url(path)
        assert local_folder(path) == Path(path)
    for text, url in (
        ("s3://bucket/a//b/", "s3://bucket/a/b"),
        ("S3://bucket", "s3://bucket"),
        ("az://container/a", "az://container/a"),
        ("file:///srv/a/", "file:///srv/a"),
        # What a Path makes of it.
        (Path("s3://bucket/a"), "s3://bucket/a"),
        (Path("file:///srv/a"), "file:///srv/a"),
    ):
        assert is_url(text)
        assert str(StoreUrl.parsed(text)) == url
    for text, shown in (
        *((text, text) for text in ("ftp://host/a", "s3:///a", "file://host/a")),
        ("s3://KEY:secret@bucket/a", "s3://...@bucket/a"),
        ("s3:/KEY:secret@bucket/a", "s3:/...@bucket/a"),
        ("az://c/a?sv=1&sig=secret", "az://c/a?..."),
        ("https://me:secret@host/a", "https://...@host/a"),
    ):
        assert is_url(text)
        with pytest.raises(UserError) as told:
            local_folder(text)
        words = f"{shown}: no URL of a results folder; write s3://BUCKET/"
        assert str(told.value).startswith(words)
        assert "secret" not in str(told.value)


_ONE_RUN = threading.Lock()


class Counting(InProcess):
    """Counts the runs; may wait before one, or end there; each may take a while."""

    def __init__(self, seen, before=lambda number: None, longest=0.0):
        self.seen, self.before, self.longest = seen, before, longest

    def execute(self, jobs):
        events = super().execute(jobs)
        while True:
            # The harness takes a process to do one run at a time.
            with _ONE_RUN:
                event = next(events, None)
            if event is None:
                return
            is_run = isinstance(event, Started) and len(event.job.tag) == 64
            if is_run:
                self.seen[event.job.tag] += 1
                self.before(self.seen.total())
            yield event
            time.sleep(is_run * random.uniform(0.1, 1.0) * self.longest)


@pytest.fixture(scope="module")
def board():
    """Two solvers on one task with three seeds."""
    solvers = [{"name": "Perceptron"}, {"name": "Pegasos", "params": {"max_epochs": 1}}]
    return board_study(seeds=3, solver=solvers)


@pytest.fixture(scope="module")
def alone(board, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone") / "results"
    run_study(board, folder, executor=InProcess())
    return folder


@pytest.fixture
def begun(url, tmp_path, monkeypatch):
    """Begins a command on a machine with a mirror of its own: what runs a study there."""

    def begin(machine):
        monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / machine))
        command = contextlib.ExitStack()
        folder, exchange = command.enter_context(synced(url, print))

        def run(study, executor):
            with command:
                options = {"executor": executor, "exchange": exchange}
                return run_study(study, folder, command="the command", **options)

        return run, folder

    return begin


def test_two_machines_share_a_study(board, store, alone, begun, monkeypatch):
    monkeypatch.setattr(runner, "LOOK_S", 0.0)
    seen = Counter()
    together = threading.Barrier(2, timeout=60)

    def before(number):
        if number <= 2:
            together.wait()  # both are in the middle of it

    commands = [begun("here"), begun("there")]
    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(run, board, Counting(seen, before, 0.1)) for run, _ in commands]
    for summary in (each.result() for each in ended):
        assert sum(summary.statuses.values()) == summary.planned == 6
    assert len(seen) == 6
    assert seen.total() <= 8  # what both begin at the same moment
    for folder in (store, *(folder for _, folder in commands)):
        assert numbers(folder) == numbers(alone)


def test_an_interrupted_command_pushes_what_it_has(board, store, alone, begun):
    def before(number):
        if number == 4:
            raise KeyboardInterrupt

    seen = Counter()
    run, _ = begun("here")
    with pytest.raises(InterruptedRunError) as caught:
        run(board, Counting(seen, before))
    words = r"interrupted; 3 of 6 runs are recorded in .*; run the same .* resume: the command"
    assert re.fullmatch(words, str(caught.value))
    assert sum(caught.value.summary.statuses.values()) == 3
    assert len(numbers(store)) == 3
    # Nothing is done again, also by who has no mirror yet.
    run, _ = begun("there")
    assert run(board, Counting(seen)).already_recorded == 3
    # A store is a results folder.
    assert numbers(store) == numbers(alone)
    assert {path.name for path in store.iterdir()} == {"study.json", "journal"}


def test_a_look_shows_what_runs(board, tmp_path):
    looks, folder = [], tmp_path / "results"
    monitor = Monitor(folder)
    executor = Counting(Counter(), lambda number: looks.append(monitor.look()))
    run_study(board, folder, executor=executor)
    found = [(look.done, look.left, len(look.running), look.commands) for look in looks]
    assert found == [(number, 6 - number, 1, 1) for number in range(6)]
    look = monitor.look()
    assert (look.done, look.running, look.left_words) == (6, (), "")
    assert [*look.in_words()][:2] == ["board: 6 of 6 runs recorded", "3 converged, 3 budget"]


def test_the_commands_about_results_take_stores(alone, store, run, tmp_path):
    shutil.copytree(alone, store, ignore=shutil.ignore_patterns("runs.parquet", ".*"))
    code, out, _ = run("report", f"file://{store}")
    assert (code, out) == (0, f"tables\nreport: {store}/report.html\n")
    assert (store / "report.html").is_file()
    page = tmp_path / "page.html"
    for place in (str(store), f"file://{store}"):
        code, out, _ = run("watch", place, "--once", "--json", "--html", str(page))
        found = json.loads(out)
        assert (code, found["planned"], found["done"], found["left"]) == (0, 6, 6, 0)
    assert "<dt>recorded</dt><dd>6</dd>" in page.read_text()
    both, second = tmp_path / "both", shutil.copytree(store, tmp_path / "second")
    sides = (f"file://{store}", str(second))
    code, out, _ = run("merge", *sides, "--out", f"file://{both}", "--json")
    done = json.loads(out)
    assert (code, done["out"], done["records"]) == (0, f"file://{both}", 6)
    assert numbers(both) == numbers(store)
    # Into one of them.
    code, out, _ = run("merge", f"file://{both}", str(second), "--out", f"file://{both}")
    assert (code, out.partition(":")[0]) == (0, "6 records in file")
