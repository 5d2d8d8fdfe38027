"""A section, a panel and a column of the table are each one file."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

from marginbench.harness.results.measures import Format
from marginbench.reports.discovery import members
from marginbench.reports.formatting import FORMATS
from marginbench.reports.sections import Section

SECTION = """
from marginbench.reports.sections import Section


class Greeting(Section):
    anchor, title, place = "greeting", "Greeting", 35
    template = "outcomes.html"

    def data(self, analysis):
        return {"words": f"{len(analysis.runs)} runs say hello.", "table": None}

    def terminal(self, analysis):
        return ["hello, terminal"]
"""
PANEL = """
from marginbench.reports.panels import Panels, PanelView


class Nothing(Panels):
    kinds, place = ("svm",), 99

    def views(self, analysis, task):
        return [PanelView("nothing", f"Nothing of {task}", None)]
"""
COLUMN = """
from marginbench.harness.results.measures import Measure
from marginbench.reports.derived import Derived


class Checkpoints(Derived):
    name, kinds = "checkpoints", ("svm", "feasibility")
    measure = Measure("Checkpoints", "checkpoints", "integer", table=15, short="checkpoints")
    note = "Checkpoints are looks at a run."

    def values(self, runs, traces):
        n = traces.groupby(["task", "solver", "seed"]).size().rename("value").reset_index()
        return n.assign(first=n["value"], upper_bound=False)
"""


def test_one_file_adds_a_section_a_panel_or_a_column(make, write_results, tmp_path):
    records = [make.finished("a", "SMO", s, make.trace([10, 20, 30], [0.3] * 3)) for s in range(2)]
    folder = write_results(records, [make.task("a")], [make.solver("SMO")])
    (tmp_path / "other").mkdir()
    methods = [make.method_record("t", "MPLFP", 0)]
    other = make.folder(tmp_path / "other", methods, [make.cell("t")], [make.method("MPLFP")])
    lines = ["import sys", "from pathlib import Path"]
    for package, text in (("sections", SECTION), ("panels", PANEL), ("derived", COLUMN)):
        (tmp_path / package).mkdir()
        (tmp_path / package / "added.py").write_text(text)
        lines += [
            f"import marginbench.reports.{package} as {package}",
            f"{package}.__path__.append(str(Path(sys.argv[1]) / {package!r}))",
        ]
    lines += ["from marginbench.reports.command import write_report"]
    lines += ["for folder in sys.argv[1:]: write_report(Path(folder), '')"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), str(folder), str(other)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    page = make.page(folder / "report.html")
    assert page.text.count("Greeting") == 2  # the link and the heading
    for words in ("2 runs say hello.", "Nothing of a", "Checkpoints are looks at a run."):
        assert words in page.text
    assert page.text.index("Test error Checkpoints") < page.text.index("Train error")
    assert done.stdout.count("hello, terminal") == 2
    assert done.stdout.count("checkpoints") == 2
    page = make.page(other / "report.html")
    assert "Checkpoints" in page.text
    assert "Nothing of" not in page.text  # the panel is for another kind


def test_sections_have_places_and_anchors_of_their_own():
    sections = members("marginbench.reports.sections", Section)
    assert len(sections) > 10
    for kind in ("svm", "feasibility"):
        mine = [section for section in sections if not section.kinds or kind in section.kinds]
        assert len({section.place for section in mine}) == len(mine)
        assert len({section.anchor for section in mine}) == len(mine)


def test_every_format_of_a_measure_has_a_reading():
    assert set(FORMATS) == set(get_args(Format))
    assert all("1" in say(1.0) for say in FORMATS.values())
