"""Sites of several results folders: whole, linked, reproducible, and safe whatever names say."""

import json
import os
import re
import shutil
import subprocess

import pandas as pd
import pytest

import marginbench
from marginbench import publish
from marginbench.harness.errors import StorageError
from marginbench.harness.results.journal import Journal
from marginbench.reports.errors import ReportError
from marginbench.reports.site import build
from marginbench.reports.site.manifest import exchange, owned_entries, stage, staging

_HOSTILE = '<b onclick="x">"../../x"</b>'

_LONG = "An unbreakable" + "_name" * 22
_EMOJI = "\N{FIRE} \N{SNOWMAN}"


def small_folder(make, folder, name="example"):
    """Two solvers on one task, one run each; that of a user's own solver failed on the way."""
    trace = make.trace([1e3, 1e4, 1e5], [0.3, 0.1, 0.02], [300.0, 120.0, 101.0])
    failed = {"status": "timeout", "reason": "killed after 60.0 s of solving"}
    records = [
        make.finished("a", "SMO", 0, trace),
        make.finished("a", "Mine", 0, trace[:2], **failed),
    ]
    solvers = [
        make.solver("SMO", **{"class": "marginbench:SMO"}),
        make.solver("Mine", **{"class": "mine.py:Mine", "summary": "My own solver."}),
    ]
    named = {"name": name, "title": f"Study {name}"}
    return make.folder(folder, records, [make.task("a")], solvers, **named)


def small_methods(make, folder):
    """Two instances solved by one method, in a study of a hostile name."""
    records = [make.method_record("cell", "MPLFP", seed) for seed in (0, 1)]
    method = make.method("MPLFP")
    return make.folder(folder, records, [make.cell("cell")], [method], name="../../x", title="")


def content_of(site):
    """The files of a site by name."""
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in site.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def folders(make, tmp_path_factory):
    """Two studies of the same name, the second with hostile words, and one of another kind."""
    root, task = tmp_path_factory.mktemp("results"), "<i>a</i>"
    classes = {_HOSTILE: f"{_LONG}.py:SMO", _LONG: "Mine.py:mine", _EMOJI: _EMOJI, "smo": "smo"}
    costs = {_HOSTILE: [None, None], _LONG: [1e3, 1e5], _EMOJI: [1e3, 1e5]}
    later = {"started_at": "2025-01-01T00:00:00+00:00"}
    records = [
        make.finished(task, label, 0, make.trace(spent, [0.3, 0.02], [300.0, 101.0]), **later)
        for label, spent in costs.items()
    ]
    records.append(make.record(task, "smo", 0, status="skipped", reason=_HOSTILE, **later))
    solvers = [
        make.solver(label, instrumented=label != _HOSTILE, **{"class": name})
        for label, name in classes.items()
    ]
    words = f"{_LONG} {_EMOJI} \N{RIGHT-TO-LEFT OVERRIDE}"
    second = make.folder(
        root / "second", records, [make.task(task, reference=False)], solvers, title=_HOSTILE,
        description=words,
    )  # fmt: skip
    return [small_folder(make, root / "first"), second, small_methods(make, root / "third")]


@pytest.fixture(scope="module")
def site(folders, tmp_path_factory):
    further = tmp_path_factory.mktemp("further")
    (further / "index.html").write_text('<p id="a"><a href="sub/b.html">b</a></p>')
    (further / "sub").mkdir()
    (further / "sub/b.html").write_text("<p>b</p>")
    out = tmp_path_factory.mktemp("published") / "site"
    publish(folders, out, pages={"Regressions & more": further})
    return out


def test_the_files_are_those_that_are_promised_and_every_link_leads_to_one(make, site):
    assert make.broken_links(site) == []
    found = content_of(site)
    pages = {"index.html", "data/runs.parquet", "data/traces.parquet", "data/study.json"}
    assert set(found) == {
        *("index.html", "manifest.json", "SHA256SUMS"),
        *("regressions-more/index.html", "regressions-more/sub/b.html"),
        *(f"studies/{study}/{page}" for study in ("example", "example-2", "x") for page in pages),
    }
    subprocess.run(["sha256sum", "-c", "--quiet", "--strict", "SHA256SUMS"], cwd=site, check=True)
    listed = json.loads((site / "manifest.json").read_text())["files"]
    sums = dict(line.split("  ")[::-1] for line in (site / "SHA256SUMS").read_text().splitlines())
    assert {name: item["sha256"] for name, item in listed.items()} == sums
    assert set(listed) == set(found) - {"manifest.json", "SHA256SUMS"}
    assert all(item["bytes"] == len(found[name]) for name, item in listed.items())


def test_the_overview_says_what_each_study_is_without_a_script(make, site):
    page = make.page(site / "index.html")
    for words in (
        *("Study example", "Two solvers on one task.", "2 runs, 1 failed", "2024-05-06"),
        *("Example CPU 3000, 8 cores", "0.1.0 (0123456789)", "3 studies", "8 runs"),
        *(_HOSTILE, _EMOJI, "Studies of SVM solvers", "Feasibility methods", "Regressions & more"),
        "MPLFP on 2 of 2 solved instances",
    ):
        assert words in page.text, words
    tags = [tag for tag, _ in page.tags]
    assert (tags.count("figure"), tags.count("script")) == (3, 0)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert any("default-src 'none'" in text for text in page.values("content"))
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page.text


def test_a_report_of_the_site_is_the_report_with_a_way_back_and_the_tables_are_the_records(
    site, folders
):
    navigation = re.compile(r'<nav aria-label="Site".*?</nav>', re.DOTALL)
    text = (site / "studies/example/index.html").read_text(encoding="utf-8")
    (found,) = navigation.findall(text)
    assert '<a href="../../index.html">All studies</a>' in found
    assert navigation.sub("", text) == marginbench.report(folders[0]).read_text(encoding="utf-8")
    loaded = marginbench.load_results(folders[0])
    for name, frame in (("runs", loaded.runs), ("traces", loaded.checkpoints)):
        stored = pd.read_parquet(site / f"studies/example/data/{name}.parquet")
        assert list(stored.columns) == list(frame.columns)
        assert len(stored) == len(frame)
    assert stored["test_error"].tolist() == loaded.checkpoints["test_error"].tolist()
    study = (folders[0] / "study.json").read_bytes()
    assert (site / "studies/example/data/study.json").read_bytes() == study


@pytest.mark.slow
def test_copies_in_another_order_give_the_same_files(make, folders, tmp_path):
    small = small_folder(make, tmp_path / "here/a")
    other = small_methods(make, tmp_path / "here/b")
    publish([small, other], tmp_path / "site")
    before = content_of(tmp_path / "site")
    (tmp_path / "here").rename(tmp_path / "there")
    publish([tmp_path / "there/b", tmp_path / "there/a"], tmp_path / "site")
    assert content_of(tmp_path / "site") == before

    shutil.copytree(tmp_path / "there/b", tmp_path / "there/c")
    publish([tmp_path / "there/c", tmp_path / "there/b"], tmp_path / "twice")
    text = make.page(tmp_path / "twice/index.html").text
    assert text.count("../../x (x)") == text.count("../../x (x-2)") > 0


@pytest.mark.slow
def test_a_damaged_folder_is_named_and_left_out_only_if_asked(make, tmp_path, command):
    good, out = small_folder(make, tmp_path / "good"), tmp_path / "site"
    bad = small_folder(make, tmp_path / "bad", name="bad")
    (path,) = Journal(bad).segments()
    *lines, end = path.read_bytes().splitlines(keepends=True)
    assert b'"end"' in end
    path.write_bytes(b"".join(lines)[:-20])
    with pytest.raises(ReportError, match=r"bad: 1 record cannot be read \(.*damaged.*; run"):
        publish([good, bad], out)
    assert not list(out.iterdir())
    (bad / "study.json").write_text("{")
    with pytest.raises(ReportError, match=r"bad/study.json: damaged"):
        publish([good, bad], out)

    (out / "mine.txt").write_text("mine")
    papers = tmp_path / "papers"  # as `reproduce` leaves it, beside the studies
    papers.mkdir()
    (papers / "journals.tar").write_bytes(b"")
    words = ["publish", good, bad, papers, "--out", out, "--force", "--keep-going"]
    code, printed, errors = command(*words)
    assert code == 1
    assert errors.startswith(f"marginbench: left out: {bad}")
    assert errors.count("\n") == 1
    assert printed.splitlines() == ["5 files written", f"site: {out / 'index.html'}"]
    assert (out / "mine.txt").read_text() == "mine"


def test_an_interrupt_or_a_manifest_nested_too_deep_leaves_the_site_as_it_was(
    make, tmp_path, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    folder, out = small_methods(make, tmp_path / "results"), tmp_path / "site"
    monkeypatch.setattr(build, "data_files", interrupted)
    with pytest.raises(KeyboardInterrupt):
        publish([folder], out)
    assert list(out.iterdir()) == []
    (out / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ReportError, match="missing or damaged"):
        publish([folder], out)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_overview_fits_any_width_and_loads_nothing(visit, site, width, scheme):
    visit(site / "index.html", width=width, color_scheme=scheme)


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ({"Regressions": "nowhere"}, "has no index.html"),
        ({"Studies": "pages"}, "folder studies/ is taken"),
        ({"A": "pages", "a!": "pages"}, "folder a/ is taken"),
        ({"A": "."}, "must be apart"),
        ({"A": "link.html"}, "is a link"),
        ({"A": "two\nlines.html"}, "no address can have this name"),
    ],
)
def test_further_pages_that_cannot_be_are_an_error(tmp_path, pages, problem):
    (tmp_path / "pages").mkdir()
    for folder in (tmp_path, tmp_path / "pages"):
        (folder / "index.html").write_text("<p>x</p>")
    (tmp_path / "pages" / ".hidden").symlink_to("/etc/hostname")
    (name,) = set(pages.values())
    if name == "link.html":
        (tmp_path / "pages" / name).symlink_to("/etc/hostname")
    elif name.endswith(".html"):
        (tmp_path / "pages" / name).write_text("<p>x</p>")
    named = "pages" if name.endswith(".html") else name
    given = dict.fromkeys(pages, tmp_path / named)
    with pytest.raises(ReportError, match=problem):
        publish([tmp_path / "results"], tmp_path / "site", pages=given)
    assert not (tmp_path / "site").exists()


def write(site, files, *, force=False):
    """Publish these files."""
    site.mkdir(exist_ok=True)
    owned = owned_entries(site, force=force)
    with staging(site) as staged:
        for name, text in files.items():
            stage(staged, name, text.encode())
        return exchange(site, staged, owned, {"studies": []}, force=force)


def texts(site):
    """The files of a site but for the two lists of them."""
    lists = ("manifest.json", "SHA256SUMS")
    return {name: text.decode() for name, text in content_of(site).items() if name not in lists}


def test_what_was_published_is_replaced_and_what_stands_beside_it_stays(tmp_path, monkeypatch):
    site = tmp_path / "site"
    assert write(site, {"a.html": "a", "b/c/d.html": "d", "f/g.html": "g"}) == 3
    (site / ".nojekyll").write_text("")
    (site / "mine").mkdir()
    (site / "mine/a.txt").write_text("mine")
    write(site, {"a.html": "other", "b/e.html": "e"})
    mine = {".nojekyll": "", "mine/a.txt": "mine"}
    assert texts(site) == {"a.html": "other", "b/e.html": "e", **mine}
    assert not (site / "f").exists()
    assert not (site / ".publishing").exists()

    def full(*_):
        raise OSError(28, "No space left on device")

    before = content_of(site)
    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(StorageError, match=r"cannot be written \(No space left on device\)"):
        write(site, {"a.html": "new"})
    assert content_of(site) == before


def test_a_foreign_folder_is_refused_unless_forced(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "manifest.json").write_text('{"name": "a web application"}')
    with pytest.raises(ReportError, match="is not empty and no site of marginbench"):
        write(site, {"a.html": "a"})
    (site / "other.txt").write_text("mine")
    write(site, {"a.html": "a"}, force=True)
    assert texts(site) == {"a.html": "a", "other.txt": "mine"}


def test_what_stands_in_the_way_is_refused_and_only_a_file_is_replaced_by_force(tmp_path):
    site, outside = tmp_path / "site", tmp_path / "outside"
    write(site, {"a.html": "a"})
    outside.mkdir()
    (site / "link").symlink_to(outside)
    (site / "folder").mkdir()
    (site / "file").write_text("mine")
    for name, force in (("link", True), ("folder", True), ("link", False), ("file", False)):
        with pytest.raises(ReportError, match=f"{name}: stands where a page belongs"):
            write(site, {"a.html": "new", f"{name}/c.html": "c"}, force=force)
        assert (site / "a.html").read_text() == "a"
    write(site, {"a.html": "new", "file/c.html": "c"}, force=True)
    assert texts(site) == {"a.html": "new", "file/c.html": "c"}
    assert list(outside.iterdir()) == []


def test_a_manifest_from_elsewhere_leads_to_no_file_outside(tmp_path):
    site = tmp_path / "site"
    write(site, {"a.html": "a"})
    values = json.loads((site / "manifest.json").read_text())
    values["entries"] += ["../outside.txt", str(tmp_path / "outside.txt"), "..", 3]
    (site / "manifest.json").write_text(json.dumps(values))
    (tmp_path / "outside.txt").write_text("a")
    write(site, {"b.html": "b"}, force=True)
    assert (tmp_path / "outside.txt").read_text() == "a"


class _Killed(BaseException):
    """Ends a command where no clean-up runs, as SIGKILL does."""


def test_after_a_kill_at_any_step_the_next_command_completes_the_site(tmp_path, monkeypatch):
    first = {"a.html": "a", "b.html": "b", "c/d.html": "d"}
    second = {"a.html": "other", "c/d.html": "d", "e/f.html": "f"}
    third = {"a.html": "a", "e/f.html": "new"}
    steps = 0
    for step in range(100):
        site = tmp_path / f"site-{step}"
        write(site, first)
        left = step

        def count(real):
            def counted(*arguments, **options):
                nonlocal left
                left -= 1
                if left < 0:
                    raise _Killed
                return real(*arguments, **options)

            return counted

        with monkeypatch.context() as patch:
            for name in ("replace", "mkdir"):
                patch.setattr(os, name, count(getattr(os, name)))
            patch.setattr(shutil, "rmtree", count(shutil.rmtree))
            try:
                write(site, second)
            except _Killed:
                steps += 1
            else:
                break
        write(site, third)
        assert texts(site) == third, step
        listed = json.loads((site / "manifest.json").read_text())
        assert sorted(listed["files"]) == sorted(third)
    assert steps > 8
