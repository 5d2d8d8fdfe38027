"""The page of a comparison in a real browser, without scripts."""

from dataclasses import replace

import pytest

from marginbench import compare

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(make, write_results, tmp_path_factory):
    """Names as long as there are, a change of each kind, and another machine."""
    name, folders = "Name" * 30, []
    for side, factor in (("a", 1), ("b", 3)):
        records = [
            make.finished(task, name, seed, make.trace([100 * factor, 1000 * factor], [0.4, 0.1]))
            for task in ("digits", name)
            for seed in range(3)
        ]
        environment = f'{{"processor": "{side * 60}"}}'
        records = [replace(record, environment=environment) for record in records]
        folders.append(write_results(records, title=name))
    return compare(*folders).write_page(tmp_path_factory.mktemp("page") / "page.html")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_page_fits_and_loads_nothing(visit, page, width, scheme):
    tab = visit(page, width=width, color_scheme=scheme)
    box = tab.locator("figure svg").first.bounding_box()
    assert box["width"] >= 250
    assert box["x"] + box["width"] <= width
    # What is drawn has the colours of the scheme: dots differ from the ground.
    ink = tab.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
    assert (ink == "rgb(228, 229, 226)") == (scheme == "dark")
