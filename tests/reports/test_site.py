"""Sites of several results folders: whole, linked, reproducible, and safe whatever names say."""

import json
import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest

import marginbench
from marginbench import publish
from marginbench.harness.errors import StorageError
from marginbench.harness.results.journal import Journal
from marginbench.reports.errors import ReportError
from marginbench.reports.exports.writing import MANIFEST, File, write_all
from marginbench.reports.site import build

_HOSTILE = '<b onclick="x">"../../x"</b>'

_LONG = "An unbreakable" + "_name" * 22
_EMOJI = "\N{FIRE} \N{SNOWMAN}"


def small_folder(make, folder, name="example"):
    """Two solvers on one task, one run each, of which one failed on the way."""
    trace = make.trace([1e3, 1e4, 1e5], [0.3, 0.1, 0.02], [300.0, 120.0, 101.0])
    failed = make.finished("a", "Mine", 0, trace[:2], status="timeout", reason="too slow")
    records = [make.finished("a", "SMO", 0, trace), failed]
    return make.folder(folder, records, name=name, title=f"Study {name}")


def small_methods(make, folder):
    """Two instances solved by one method, in a study of a hostile name."""
    records = [make.method_record("cell", "MPLFP", seed) for seed in (0, 1)]
    return make.folder(folder, records, name="../../x", title="")


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
    later = {"started_at": "2025-01-01T00:00:00+00:00"}
    costs = {_HOSTILE: [None, None], _LONG: [1e3, 1e5], _EMOJI: [1e3, 1e5]}
    records = [
        make.finished(task, label, 0, make.trace(spent, [0.3, 0.02], [300.0, 101.0]), **later)
        for label, spent in costs.items()
    ]
    records.append(make.record(task, "smo", 0, status="skipped", reason=_HOSTILE, **later))
    titles = {"title": _HOSTILE, "description": f"{_LONG} {_EMOJI} \N{RIGHT-TO-LEFT OVERRIDE}"}
    second = make.folder(root / "second", records, {task: {"reference": False}}, **titles)
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
    del found[MANIFEST]
    assert set(listed) == set(found)
    del listed["SHA256SUMS"]
    assert {name: item["sha256"] for name, item in listed.items()} == sums
    assert all(item["bytes"] == len(found[name]) for name, item in listed.items())


def test_the_overview_says_what_each_study_is_without_a_script(make, site):
    page = make.page(site / "index.html")
    for words in (
        *("Study example", "Two solvers on one task.", "2 runs, 1 failed", "2024-05-06"),
        *("Example CPU 3000, 8 cores", "0.1.0 (0123456789)", "3 studies", "8 runs"),
        *(_HOSTILE, _EMOJI, "Studies of SVM solvers", "Feasibility methods", "Regressions & more"),
        "Benchmark results",
        "of the optimum, in kernel evaluations: several solvers may be first on 1 of 1 task.",
        "cell: Fewest iterations: MPLFP on 2 of 2 solved instances.",
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
    navigation = re.compile(r'<nav aria-label="Site".*?</nav>\n', re.DOTALL)
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
def test_copies_in_another_order_give_the_same_files(make, tmp_path):
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
    assert not out.exists()
    (bad / "study.json").write_text("{")
    with pytest.raises(ReportError, match=r"bad/study.json: damaged"):
        publish([good, bad], out)

    out.mkdir()
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
    text = make.page(out / "index.html").text
    assert "1 study · 2 runs" in text
    assert "Studies of SVM solvers" not in text  # of one kind


def test_an_interrupt_leaves_the_site_as_it_was(make, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "data_files", interrupted)
    with pytest.raises(KeyboardInterrupt):
        publish([small_methods(make, tmp_path / "results")], tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_overview_fits_any_width_and_loads_nothing(visit, site, width, scheme):
    visit(site / "index.html", width=width, color_scheme=scheme)


def test_further_pages_have_a_folder_of_their_own_and_need_an_index(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    site = tmp_path / "site"
    with pytest.raises(ReportError, match=r"has no index\.html"):
        build._further({"Docs": pages}, site, set())
    (pages / "index.html").write_text("<p>x</p>")
    (pages / ".hidden").symlink_to("/etc/hostname")
    for inside in (pages, pages / "site", tmp_path):
        with pytest.raises(ReportError, match="must be apart"):
            build._further({"Docs": pages}, inside, set())
    folders = build._further({"Studies": pages, "A": pages, "a!": pages}, site, {"studies"})
    assert list(folders.values()) == ["studies-2", "a", "a-2"]
    (only,) = build._files_of(pages, "a")
    assert (only.path, only.content) == ("a/index.html", b"<p>x</p>")
    (pages / "link.html").symlink_to("/etc/hostname")
    with pytest.raises(ReportError, match="is a link"):
        [*build._files_of(pages, "a")]
    (pages / "link.html").unlink()
    for name in (b"a\nb.html", b"a\\b.html", *([b"\xe9.html"] if sys.platform == "linux" else [])):
        path = pages / os.fsdecode(name)
        path.write_text("<p>x</p>")
        with pytest.raises(ReportError, match=r"\A.*no address can have this name; rename it\Z"):
            [*build._files_of(pages, "a")]
        path.unlink()


def write(site, files, **options):
    """Publish these files."""
    given = [File(name, text.encode()) for name, text in files.items()]
    write_all(site, given, "marginbench site", **{"whole": {"studies": []}} | options)


def texts(site):
    """The files of a site but for the list of them."""
    return {name: text.decode() for name, text in content_of(site).items() if name != MANIFEST}


def test_what_was_published_is_replaced_and_what_stands_beside_it_stays(tmp_path):
    site = tmp_path / "site"
    write(site, {"a.html": "a", "b/c/d.html": "d", "f/g.html": "g"})
    (site / "a.txt").write_text("mine")
    (site / "b/mine.txt").write_text("mine")
    outside = tmp_path / "outside.txt"
    outside.write_text("a")
    # A manifest may come from elsewhere.
    values = json.loads((site / MANIFEST).read_text())
    values["files"] |= dict.fromkeys(["../outside.txt", str(outside), "..", "."])
    (site / MANIFEST).write_text(json.dumps(values))
    write(site, {"a.html": "other", "e/f.html": "f"})
    mine = {"a.txt": "mine", "b/mine.txt": "mine"}
    assert texts(site) == {"a.html": "other", "e/f.html": "f", **mine}
    assert not (site / "f").exists()
    assert not (site / "b/c").exists()
    assert outside.read_text() == "a"
    for force in (False, True):
        (site / "g.html").mkdir(exist_ok=True)
        with pytest.raises(ReportError, match="marginbench did not write it"):
            write(site, {"g.html": "g"}, force=force)


@pytest.mark.parametrize("manifest", ['{"name": "a web application"}', "[" * 100_000])
def test_a_foreign_folder_is_refused_unless_forced(tmp_path, manifest):
    (tmp_path / MANIFEST).write_text(manifest)
    (tmp_path / "other.txt").write_text("mine")
    with pytest.raises(ReportError, match="is not empty and nothing that marginbench wrote"):
        write(tmp_path, {"a.html": "a"})
    write(tmp_path, {"a.html": "a"}, force=True)
    assert texts(tmp_path) == {"a.html": "a", "other.txt": "mine"}


@pytest.mark.parametrize(
    ("before", "done"),
    [
        *(({"a.html": "a", "b.html": "b", "c/d.html": "d"}, done) for done in range(4)),
        *((None, done) for done in range(3)),
    ],
)
def test_after_a_full_disk_at_any_step_the_next_command_completes_the_site(
    tmp_path, monkeypatch, before, done
):
    left = iter(range(done))

    def until_full(source, target, replace=os.replace):
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        replace(source, target)

    if before:
        write(tmp_path, before)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", until_full)
        with pytest.raises(StorageError, match=r"cannot be written \(No space left on device\)"):
            write(tmp_path, {"a.html": "other", "e/f.html": "f"})
    write(tmp_path, {"a.html": "a", "e/f.html": "new"})
    assert texts(tmp_path) == {"a.html": "a", "e/f.html": "new"}
