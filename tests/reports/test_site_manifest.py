"""Which files of a site are replaced, and which stay, whatever stands there or was killed."""

import json
import os
import shutil

import pytest

from marginbench.harness.errors import StorageError
from marginbench.reports.errors import ReportError
from marginbench.reports.site.manifest import exchange, owned_entries, stage, staging


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
    return {
        path.relative_to(site).as_posix(): path.read_text()
        for path in site.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "SHA256SUMS")
    }


def test_what_was_published_is_replaced_and_what_stands_beside_it_stays(tmp_path):
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


def test_a_foreign_folder_is_refused_unless_forced(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "manifest.json").write_text('{"name": "a web application"}')
    with pytest.raises(ReportError, match="is not empty and no site of marginbench"):
        write(site, {"a.html": "a"})
    (site / "other.txt").write_text("mine")
    write(site, {"a.html": "a"}, force=True)
    assert texts(site) == {"a.html": "a", "other.txt": "mine"}


@pytest.mark.parametrize("what", ["link", "folder", "file"])
def test_what_stands_in_the_way_is_refused_and_only_a_file_is_replaced_by_force(tmp_path, what):
    site, outside = tmp_path / "site", tmp_path / "outside"
    write(site, {"a.html": "a"})
    outside.mkdir()
    if what == "link":
        (site / "b").symlink_to(outside)
    elif what == "folder":
        (site / "b").mkdir()
    else:
        (site / "b").write_text("mine")
    files = {"a.html": "new", "b/c.html": "c"}
    for force in (False, True) if what != "file" else (False,):
        with pytest.raises(ReportError, match="b: stands where a page belongs"):
            write(site, files, force=force)
        assert (site / "a.html").read_text() == "a"
    if what == "file":
        write(site, files, force=True)
        assert texts(site) == files
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["../outside.txt", "/outside.txt", "..", 3])
def test_a_manifest_from_elsewhere_leads_to_no_file_outside(tmp_path, name):
    site = tmp_path / "site"
    write(site, {"a.html": "a"})
    values = json.loads((site / "manifest.json").read_text())
    values["entries"].append(name)
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


def test_a_full_disk_is_one_line_and_leaves_the_site_as_it_was(tmp_path, monkeypatch):
    site = tmp_path / "site"
    write(site, {"a.html": "a"})

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes", full)
        with pytest.raises(StorageError, match=r"cannot be written \(No space left on device\)"):
            write(site, {"a.html": "new"})
    assert texts(site) == {"a.html": "a"}
