"""The report of a study of feasibility methods: statistics by hand, pages, hostile labels."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from marginbench.harness.feasibility.records import FeasibilityRecord, FeasibilityStore, Stage
from marginbench.reports import ReportError
from marginbench.reports.command import _summary
from marginbench.reports.feasibility import (
    fewest_iterations,
    gap_ratio,
    is_feasibility,
    load_feasibility,
    results_table,
)
from marginbench.reports.site import write_report

HOSTILE = "<b>PCT</b> & {{ 1 }}"
METHODS = ["MPLFP", "SPCT", HOSTILE]
ITERATIONS = {"MPLFP": [200, 220, 240], "SPCT": [300, 210, 320], HOSTILE: [9000, None, None]}


def cell(label, kappa, **fields):
    problem = {"generator": "ldfp", "m": 100, "n": 5000, "kappa": kappa, "tol": 0.0}
    return {"type": "cell", "label": label, "instances": 3, "published": {}} | problem | fields


def record(part, method, seed, iterations, **fields):
    stages = [Stage(t, 0.01 * t, 4 * t, -0.5 / t, 1.5 / t) for t in (1, 10)]
    values = {
        "key": f"{part}-{method}-{seed}", "study": "s", "part": part, "problem": "{}",
        "method": method, "method_class": "marginbench.solvers.feasibility.methods:X",
        "params": "{}",
        "seed": seed, "budget": '{"timeout": 60.0}', "started_at": "2026-01-01T00:00:00+00:00",
        "status": "converged", "found": "separable", "n_iter": iterations,
        "matvecs": None if iterations is None else 2 * iterations,
        "solve_s": None if iterations is None else iterations / 1000,
        "cpu_s": None if iterations is None else iterations / 2000,
        "environment": json.dumps({"processor": "Example CPU", "commit": "abc"}),
        "trace": stages,
    }  # fmt: skip
    return FeasibilityRecord(**(values | fields))


@pytest.fixture
def folder(tmp_path):
    parts = [cell(f"kappa = {kappa}", kappa) for kappa in (1.0, 2.0, 3.0)]
    parts[0]["published"] = {"MPLFP": 1.3, HOSTILE: "TO"}
    store = FeasibilityStore(tmp_path / "runs")
    planned = []
    for part in parts:
        for method in METHODS:
            for seed, iterations in enumerate(ITERATIONS[method]):
                limit = {"status": "budget", "found": "budget", "n_iter": 10**6, "solve_s": 60.0}
                made = record(
                    part["label"], method, seed, iterations, **({} if iterations else limit)
                )
                planned.append(
                    {"key": made.key, "part": part["label"], "method": method, "seed": seed}
                )
                if part["kappa"] != 3.0 or seed != 2:
                    store.write(made)
    study = {
        "schema_version": 1, "kind": "feasibility", "marginbench": "0.1.0", "name": "example",
        "title": "Example <i>study</i>", "description": "Words.", "source": "A paper",
        "budget": {"timeout": 60.0}, "jobs": 1, "threads": 1, "command": "marginbench run example",
        "parts": parts,
        "methods": [{"name": name.strip("</b> &{1}"), "label": name, "params": {"tol": 0.1}}
                    for name in METHODS],
        "planned": planned,
    }  # fmt: skip
    (tmp_path / "study.json").write_text(json.dumps(study))
    return tmp_path


class Nesting(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.words = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_the_table_is_that_of_the_solved_runs(folder):
    table = results_table(load_feasibility(folder), "kappa = 1.0").set_index("method")
    ours, theirs = table.loc["MPLFP"], table.loc[HOSTILE]
    assert (ours["n"], ours["n_ended"], ours["n_solved"]) == (3, 3, 3)
    assert (ours["n_iter"], ours["n_iter_low"], ours["n_iter_high"]) == (220, 200, 240)
    assert ours["matvecs"] == 440
    assert ours["mean_s"] == pytest.approx(0.22)
    assert ours["cpu_s"] == pytest.approx(0.11)
    assert ours["best_n_iter"]
    assert not table.loc["SPCT", "best_n_iter"]
    assert (theirs["n_solved"], theirs["n_iter"], theirs["most_iter"]) == (1, 9000, 10**6)
    # An epsilon-certificate does not solve a separable problem.
    path = next((folder / "runs").glob("*1.0_SPCT_s0-*"))
    made = FeasibilityStore(folder / "runs").read(path)
    made.found = "inseparable"
    FeasibilityStore(folder / "runs").write(made)
    again = results_table(load_feasibility(folder), "kappa = 1.0").set_index("method")
    assert again.loc["SPCT", "n_solved"] == 2
    # Fast on the one instance that it solved: not the best of those that solved all.
    assert not theirs["best_n_iter"]
    assert theirs["mean_s"] == pytest.approx(9.0)


def test_a_run_without_a_record_is_no_success(folder):
    results = load_feasibility(folder)
    table = results_table(results, "kappa = 3.0").set_index("method")
    assert table.loc["MPLFP", "n_ended"] == 2
    assert not table["best_n_iter"].any()
    missing = results.runs[results.runs["status"] == "missing"]
    assert len(missing) == 3


def test_who_needs_fewer_iterations_is_decided_on_every_instance(folder):
    results = load_feasibility(folder)
    ours, ahead = fewest_iterations(results, "kappa = 1.0")
    # On the second instance SPCT needed 210 against 220; an unsolved instance is no lead.
    assert (ours, ahead) == ("MPLFP", ["SPCT"])


def test_the_gap_is_measured_at_every_stage_of_mirror_prox(folder):
    ratio, n = gap_ratio(load_feasibility(folder))
    assert ratio == pytest.approx(2 / math.sqrt(2 * math.log(5000)))
    assert n == 2 * (3 + 3 + 2)


def test_the_page_shows_every_part_escaped_and_nests(folder):
    page = write_report(folder, "marginbench run example").read_text(encoding="utf-8")
    parser = Nesting()
    parser.feed(page)
    assert parser.open == []
    text = re.sub(r"\s+", " ", " ".join(parser.words))
    assert HOSTILE in text
    assert "<b>PCT</b>" not in page
    assert "Example <i>study</i>" in text
    for words in (
        "kappa = 2.0",
        "220",
        "TO",
        "Published mean",
        "A paper",
        "missing",
        "Example CPU",
    ):
        assert words in text
    assert "On some instance as few iterations as MPLFP or fewer: SPCT." in text
    # Three cells that differ in kappa: seconds, iterations and products against it.
    assert page.count("<figure><figcaption>") == 3
    assert all(
        link.startswith(("#", "data:")) for link in re.findall(r'(?:src|href)="([^"]*)"', page)
    )
    assert write_report(folder, "marginbench run example").read_text(encoding="utf-8") == page


def test_the_limit_is_that_of_the_records(folder):
    assert "or after 60 seconds of iterations" in write_report(folder, "c").read_text()
    store = FeasibilityStore(folder / "runs")
    longer = next(item for item in store.scan() if item.method == "MPLFP")
    longer.budget = '{"timeout": 400.0}'
    store.write(longer)
    assert "or after 60 to 400 seconds of iterations" in write_report(folder, "c").read_text()


def test_the_terminal_shows_the_same_numbers(folder):
    console = Console(width=150)
    with console.capture() as text:
        console.print(_summary(folder))
    for words in ("220", HOSTILE, "1 / 3", "missing", "TO"):
        assert words in text.get()


def test_images_are_shown_stage_by_stage(tmp_path):
    part = {
        "type": "images", "label": "digits", "dataset": "mnist", "n_train": 1000, "instances": 1,
        "gammas": [0.5, 2.0], "stages": [10, 100],
    }  # fmt: skip
    trace = [
        Stage(10, 0.5, 200, -0.1, 0.2, test_error=0.25),
        Stage(100, 5.0, 2000, 0.0, 0.1, test_error=0.125),
    ]
    made = record(
        "digits", "MPKFP", 0, 100, trace=trace, gamma=2.0, train_error=0.0, test_error=0.125,
        reason="10 of 10 classes separated",
    )  # fmt: skip
    FeasibilityStore(tmp_path / "runs").write(made)
    study = {
        "schema_version": 1, "kind": "feasibility", "marginbench": "0.1.0", "name": "example",
        "title": "Digits", "description": "", "source": "", "budget": {"timeout": 60.0}, "jobs": 1,
        "threads": 1, "command": "", "parts": [part],
        "methods": [{"name": "MPKFP", "label": "MPKFP", "params": {}}],
        "planned": [{"key": made.key, "part": "digits", "method": "MPKFP", "seed": 0}],
    }  # fmt: skip
    (tmp_path / "study.json").write_text(json.dumps(study))
    page = write_report(tmp_path, "c").read_text(encoding="utf-8")
    for words in ("25.00", "12.50", "10 of 10 classes separated", "Error, 100"):
        assert words in page
    # Errors against iterations and against seconds.
    assert page.count("<figure><figcaption>") == 2
    assert np.isnan(gap_ratio(load_feasibility(tmp_path))[0])


def test_other_folders_are_told_apart(tmp_path, folder):
    assert is_feasibility(folder)
    other = tmp_path / "other"
    other.mkdir()
    assert not is_feasibility(other)
    (other / "study.json").write_text('{"kind": "feasibility"}')
    with pytest.raises(ReportError, match="not a study of feasibility methods") as failure:
        write_report(other, "")
    assert "\n" not in str(failure.value)
