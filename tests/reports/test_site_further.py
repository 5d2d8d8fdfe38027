"""Folders of further pages are checked before a site is touched."""

from __future__ import annotations

import pytest

from marginbench import publish
from marginbench.reports.errors import ReportError


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ({"Regressions": "nowhere"}, "has no index.html"),
        ({"Studies": "pages"}, "folder studies/ is taken"),
        ({"A": "pages", "a!": "pages"}, "folder a/ is taken"),
        ({"A": "."}, "must be apart"),
    ],
)
def test_further_pages_that_cannot_be_are_an_error(tmp_path, pages, problem):
    (tmp_path / "pages").mkdir()
    for folder in (tmp_path, tmp_path / "pages"):
        (folder / "index.html").write_text("<p>x</p>")
    given = {title: tmp_path / folder for title, folder in pages.items()}
    with pytest.raises(ReportError, match=problem):
        publish([tmp_path / "results"], tmp_path / "site", pages=given)


@pytest.mark.parametrize("name", ["link.html", "two\nlines.html", "back\\slash.html"])
def test_names_that_no_address_can_have_and_links_are_refused(tmp_path, name):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.html").write_text("<p>x</p>")
    (pages / ".hidden").symlink_to("/etc/hostname")
    if name == "link.html":
        (pages / name).symlink_to("/etc/hostname")
    else:
        (pages / name).write_text("<p>x</p>")
    with pytest.raises(ReportError, match=r"is a link|no address can have this name"):
        publish([tmp_path / "results"], tmp_path / "site", pages={"Pages": pages})
    assert not (tmp_path / "site").exists()
