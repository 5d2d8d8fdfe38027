"""Which files of a site are written, kept and removed, whatever stands there or was killed."""

import json
import os
import shutil

import pytest

from marginbench.harness.errors import StorageError
from marginbench.reports.errors import ReportError
from marginbench.reports.site import manifest
from marginbench.reports.site.manifest import clear_staging, read_manifest, replace_files, stage


def write(site, files, *, force=False):
    """Publish these files."""
    site.mkdir(exist_ok=True)
    before = read_manifest(site, force=force)
    clear_staging(site)
    for name, text in files.items():
        stage(site, name, text.encode())
    return replace_files(site, before, {"studies": []}, force=force)


def texts(site):
    """The files of a site but for the two lists of them."""
    return {
        path.relative_to(site).as_posix(): path.read_text()
        for path in site.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "SHA256SUMS")
    }


def test_only_what_changed_is_written(tmp_path):
    site = tmp_path / "site"
    write(site, {"a.html": "a", "b/c.html": "c"})
    times = {path: path.stat().st_mtime_ns for path in site.rglob("*") if path.is_file()}
    same = write(site, {"a.html": "a", "b/c.html": "c"})
    assert (same.written, same.unchanged, same.removed) == (0, 2, 0)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    other = write(site, {"a.html": "other", "b/c.html": "c"})
    assert (other.written, other.unchanged) == (1, 1)
    assert (site / "b/c.html").stat().st_mtime_ns == times[site / "b/c.html"]


def test_pages_that_are_gone_are_removed_with_their_empty_folders(tmp_path):
    site = tmp_path / "site"
    write(site, {"a.html": "a", "b/c/d.html": "d", "b/e.html": "e", "f/g.html": "g"})
    (site / "f/mine.txt").write_text("mine")
    found = write(site, {"a.html": "a"})
    assert (found.removed, found.kept) == (3, ())
    assert texts(site) == {"a.html": "a", "f/mine.txt": "mine"}
    assert sorted(path.name for path in site.iterdir()) == [
        *("SHA256SUMS", "a.html", "f", "manifest.json")
    ]


def test_a_page_that_somebody_has_changed_is_not_removed(tmp_path):
    site = tmp_path / "site"
    write(site, {"a.html": "a", "b.html": "b"})
    (site / "b.html").write_text("mine")
    assert write(site, {"a.html": "a"}).kept == ("b.html",)
    assert texts(site) == {"a.html": "a", "b.html": "mine"}


def test_a_foreign_folder_is_refused_unless_forced(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "manifest.json").write_text('{"name": "a web application"}')
    with pytest.raises(ReportError, match="is not empty and no site of marginbench"):
        write(site, {"a.html": "a"})
    (site / "other.txt").write_text("mine")
    write(site, {"a.html": "a"}, force=True)
    assert texts(site) == {"a.html": "a", "other.txt": "mine"}


def test_a_foreign_file_in_the_way_is_refused_unless_forced(tmp_path):
    site = tmp_path / "site"
    write(site, {"a.html": "a"})
    (site / "b.html").write_text("mine")
    with pytest.raises(ReportError, match=r"b\.html: stands where a page belongs"):
        write(site, {"a.html": "new", "b.html": "b"})
    assert (site / "a.html").read_text() == "a"
    write(site, {"a.html": "a", "b.html": "b"}, force=True)
    assert (site / "b.html").read_text() == "b"


@pytest.mark.parametrize("what", ["link", "folder", "file"])
def test_nothing_is_written_through_links_or_over_folders(tmp_path, what):
    site, outside = tmp_path / "site", tmp_path / "outside"
    write(site, {"a.html": "a"})
    outside.mkdir()
    if what == "link":
        (site / "b").symlink_to(outside)
    elif what == "folder":
        (site / "b/c.html").mkdir(parents=True)
    else:
        (site / "b").write_text("mine")
    with pytest.raises(ReportError, match="stands where a page belongs; move it"):
        write(site, {"a.html": "new", "b/c.html": "c"}, force=True)
    assert (site / "a.html").read_text() == "a"
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["../outside.txt", "/outside.txt", "b/../../outside.txt", ""])
def test_a_manifest_from_elsewhere_leads_to_no_file_outside(tmp_path, name):
    site = tmp_path / "site"
    write(site, {"a.html": "a"})
    values = json.loads((site / "manifest.json").read_text())
    values["files"][name] = values["files"]["a.html"]
    (site / "manifest.json").write_text(json.dumps(values))
    (tmp_path / "outside.txt").write_text("a")
    with pytest.raises(ReportError, match=r"manifest\.json is missing or damaged"):
        write(site, {"b.html": "b"})
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
            for name in ("replace", "unlink", "rmdir", "mkdir"):
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
        assert not (site / ".publishing").exists()
        listed = json.loads((site / "manifest.json").read_text())
        assert (sorted(listed["files"]), "earlier" in listed) == (sorted(third), False)
    assert steps > 8


def test_a_full_disk_is_one_line_and_leaves_the_site_as_it_was(tmp_path, monkeypatch):
    site = tmp_path / "site"
    write(site, {"a.html": "a"})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(manifest.os, "fsync", full)
    with pytest.raises(StorageError, match=r"cannot be written \(No space left on device\)"):
        write(site, {"a.html": "new"})
    monkeypatch.undo()
    assert texts(site) | {".publishing/a.html": "new"} == {
        "a.html": "a",
        ".publishing/a.html": "new",
    }
    write(site, {"a.html": "new"})
    assert texts(site) == {"a.html": "new"}
