"""The five papers: their files, verdicts from records by hand, and the command."""

import hashlib
import json
import math
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from marginbench import publish
from marginbench.reports.papers.page import Judged, paper_pages, printed
from marginbench.reports.papers.published import (
    PAPERS,
    Paper,
    Row,
    Source,
    parsed_paper,
    read_paper,
)
from marginbench.reports.papers.quantities import MEASURES, Estimate, _estimate
from marginbench.reports.papers.verdicts import Verdict, answered, number, shown, verdict, verdicts
from marginbench.reports.results import load_results

ROOT = Path(__file__).resolve().parents[2]
THREE = [0.10, 0.11, 0.12]
PRINTED = {"below": None, "because": "x"}
STUDY = "sbp12-adult"  # its labels are those of the records below
TASK = "adult"
COSTS = [800**2, 2 * 800**2]


@pytest.mark.parametrize("name", PAPERS)
def test_every_row_has_a_place_a_known_measure_and_a_study(name):
    paper = read_paper(name)
    for source in paper.sources:
        tasks, solvers = paper._labels[source.study]  # loading it checks datasets and solvers
        assert set(source.tasks.values()) <= tasks, source
        assert set(source.solvers.values()) <= solvers, source
    names = {row.id for row in paper.rows}
    assert len(names) == len(paper.rows)
    for row in paper.rows:
        assert set(re.findall(r"{(.*?)}", row.says + row.explanation)) <= names, row.id
        if not row.measure:
            assert row.not_run, row.id
            continue
        held = row.tolerance is not None or row.factor is not None
        assert row.band != (-math.inf, math.inf) or row.is_time, row.id
        assert row.because or not held, row.id
        assert (row.against is not None) == (row.by in ("ratio", "difference")), row.id
        assert bool(row.tasks) == (row.by == "slope"), row.id
        assert row.by == "value" or not row.every, row.id
        assert row.measure in MEASURES, row.id
        assert row.against is None or row.against.measure in {"", *MEASURES}, row.id
        able = [source for source in paper.sources if paper.pairs(source, row) is not None]
        assert "full" in {source.scale for source in able}, f"{row.id}: no study has {row.sides}"


def test_every_measure_is_explained_and_the_tests_that_show_misprints_exist():
    page = (ROOT / "docs" / "reproducing.md").read_text("utf-8")
    assert set(MEASURES) - set(re.findall(r"`(\w+)`", page)) == set()
    named = re.findall(r"`(\w+/test_\w+\.py)`(?:, `(\w+)`)?", page)
    assert named
    for file, name in named:
        assert f"def {name}" in (ROOT / "tests" / "solvers" / file).read_text("utf-8"), name


CLAIM = {
    "id": "text/x", "place": "Section 1", "says": "x", "task": TASK, "solver": "SBP",
    "measure": "test_error", "below": 0.2,
}  # fmt: skip


def test_cells_of_a_table_take_what_table_row_and_column_say():
    table = {
        "id": "t", "place": "Table 9", "title": "", "unit": "s", "measure": "cpu_s", "task": TASK,
        "factor": 2.0, "because": "x", "ratio_to": "A",
        "texts": {"TO": {"measure": "n_iter", "below": 1}},
        "columns": [{"head": "A", "solver": "SMO"}, {"head": "B", "solver": "SBP"}],
        "rows": [
            {"head": "one", "cells": [2.0, 5.0]},
            {"head": "two", "cells": ["N/A", "TO"]},
            {"head": "three", "not_run": "no data", "cells": [1, 2]},
        ],
    }  # fmt: skip
    values = {"title": "", "citation": "", "note": "", "table": [table]}
    paper = parsed_paper("sbp12", values)
    rows = {row.id: row for row in paper.rows}
    assert set(rows) == {"t/one/a", "t/one/b", "t/two/b", "t/three/a", "t/three/b"}
    assert rows["t/one/a"].is_time
    assert (rows["t/one/b"].by, rows["t/one/b"].band) == ("ratio", (1.25, 5.0))
    assert rows["t/two/b"].band == (-math.inf, 1.0)
    assert rows["t/three/a"].not_run == "no data"


def paper(*rows, differs=""):
    """A paper of these rows with a study for them."""
    source = Source(study=STUDY, scale="full", differs=differs)
    return Paper("sbp12", "A paper", "Somebody", "", [source], [], rows)


@pytest.fixture
def folder(make, write_results):
    """Runs of SBP with test errors by seed, and one of SMO, which draws nothing."""

    def made(errors, **fields):
        records = [
            make.finished(TASK, "SBP", seed, make.trace(COSTS, [0.5, error], [150.0, 100.5]))
            for seed, error in enumerate(errors)
        ]
        records = [replace(record, **fields) for record in records]
        records.append(make.finished(TASK, "SMO-textbook", 0, make.trace([800**2], [0.1])))
        solvers = {"SMO-textbook": {"deterministic": True}}
        return write_results(records, solvers=solvers, name=STUDY)

    return made


TO_SMO = {"against": {"solver": "SMO-textbook"}}


def row(**fields):
    return Row(**CLAIM | fields)


@pytest.mark.parametrize(
    ("errors", "change", "expected"),
    [
        (THREE, {}, "reproduced"),  # 0.11 +- 0.025
        ([0.30, 0.31, 0.32], {}, "not reproduced"),
        ([0.10, 0.11, 0.30], {}, "undecided"),
        ([0.10, 0.11, 0.30], {"every": True}, "not reproduced"),  # one run is enough
        (THREE, {"every": True, "below": 0.125}, "reproduced"),  # its mean's interval is not below
        ([0.10], {}, "undecided"),  # it draws: one seed has no interval
        ([0.10], {"every": True}, "undecided"),
        ([0.10], {"solver": "SMO-textbook"}, "reproduced"),
        ([0.10], {"solver": "SMO-textbook", "below": 0.1}, "not reproduced"),
        ([0.10], {"solver": "SMO-textbook", "below": None, "above": 0.1}, "not reproduced"),
        # A ratio or difference to it is of one seed all the same; of several its interval is t's.
        ([0.10], TO_SMO | {"by": "ratio", "below": 2.0}, "undecided"),
        (THREE, TO_SMO | {"by": "ratio", "below": 1.3}, "undecided"),
        (THREE, PRINTED | {"printed": 0.1, "tolerance": 0.05}, "reproduced"),
        (THREE, PRINTED | {"printed": 0.1, "tolerance": 0.01}, "undecided"),
        (THREE, PRINTED | {"printed": 0.11, "tolerance": 0.0}, "undecided"),
        ([0.1], PRINTED | {"printed": 0.1, "factor": 1.0, "solver": "SMO-textbook"}, "reproduced"),
        (THREE, PRINTED | {"printed": 30.0, "unit": "%", "factor": 1.5}, "not reproduced"),
        # A word has no tolerance: what is at the bound fails, also of what is within it.
        (THREE, PRINTED | {"printed": "TO", "factor": 2.0, "below": 0.12}, "undecided"),
        ([0.12] * 3, PRINTED | {"printed": "TO", "factor": 2.0, "below": 0.12}, "not reproduced"),
        (THREE, PRINTED | {"printed": 9.0, "unit": "s", "measure": "cpu_s"}, "not comparable"),
        (THREE, {"measure": "least_erorr"}, "not run"),
        (THREE, {"solver": "Pegasos"}, "not run"),
    ],
)  # fmt: skip
def test_verdicts(folder, errors, change, expected):
    found = verdict(paper(), row(**change), {STUDY: folder(errors)})
    assert found.verdict == expected, found


def test_other_conditions_are_named_and_explanations_have_our_values_of_other_rows(folder):
    there, folders = paper(differs="half of the data"), {STUDY: folder(THREE)}
    found = verdict(there, row(), folders)
    assert (found.verdict, found.words) == ("reproduced in other conditions", "half of the data")
    found = verdict(there, row(below=0.01, explanation="it is noisy"), folders)
    assert (found.verdict, found.words) == ("not reproduced", "half of the data; it is noisy")
    told = row(id="riddle/x", measure="passes", above=0)
    odd = row(below=0.01, explanation="it took {riddle/x} passes")
    unsaid = row(id="text/y", below=0.01)
    unknown = row(id="text/z", below=0.01, explanation="{riddle/x} passes of {riddle/none}")
    other = row(id="riddle/none", measure="passes", above=0, solver="Pegasos")
    found = verdicts(paper(odd, told, unsaid, unknown, other), folders)
    assert found[odd.id].words == "it took 2 passes"
    assert [name for name, each in found.items() if each.explained] == [odd.id]
    assert answered(found.values()) == (1, 3)


def test_changed_and_failed_records_change_the_verdict(folder, make):
    place = folder(THREE)

    def after(change, **fields):
        make.rewrite(place, change)
        return verdict(paper(), row(**fields), {STUDY: place})

    found = after(lambda record: record)
    half = 4.302653 * 0.01 / math.sqrt(3)  # the t quantile of 97.5 % with two degrees of freedom
    assert found.verdict == "reproduced"
    assert (found.estimate.low, found.estimate.high) == pytest.approx((0.11 - half, 0.11 + half))
    # What is known of the runs that did not fail decides nothing, and of a cost they are all.
    found = after(lambda record: replace(record, status="timeout") if record.seed == 2 else record)
    assert (found.verdict, found.estimate.failed) == ("undecided", 1)
    assert found.words.startswith("1 run failed, and have no value")
    cost = {"measure": "evals_to_error", "at": 0.2, "below": 9e9}
    found = after(lambda r: replace(r, status="crashed") if r.seed else r, **cost)
    assert (found.estimate.value, found.estimate.n) == (2 * 800**2, 1)
    assert found.verdict == "undecided"
    found = after(lambda r: replace(r, status="converged", test_error=0.4, trace=[]))
    assert found.verdict == "not reproduced"
    found = after(lambda record: replace(record, status="timeout", reason="too slow"))
    assert found.verdict == "not run"
    assert "timeout (too slow)" in found.words


@pytest.mark.parametrize(
    ("low", "high", "n", "words"),
    [
        (0.1, 0.3, 3, "0.2 [0.1, 0.3] (3 runs)"),
        (0.2, 0.2, 1, "0.2 (1 run)"),
        (-math.inf, math.inf, 1, "0.2 (no interval, 1 run)"),
        (-math.inf, 0.3, 2, "0.2 [−∞, 0.3] (2 runs)"),  # noqa: RUF001
    ],
)
def test_our_value_stands_with_its_interval_and_number_of_runs(low, high, n, words):
    found = Verdict(row(), "undecided", Estimate(0.2, low, high, n))
    assert shown(found, interval=True) == words


EPOCHS = [
    {"epoch": epoch, "iterations": 100, "maintenance": 50, "seconds": 5.0,
     "maintenance_seconds": 2.0, "objectives": {"primal": primal, "dual_mixed": dual}}
    for epoch, primal, dual in [(1, 9.0, 1.0), (2, 4.0, 5.0), (3, 5.0, 4.0)]
]  # fmt: skip
#: gamma_t falls by e^-1 in each iteration until the fifth, then by e^-3.
GAPS = [
    {"n_iter": t, "gamma": math.exp(-t - 2 * max(t - 5, 0)), "epsilon": 0.0, "lower_bound": 0.0}
    for t in range(21)
]


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"measure": "error_at_epoch", "at": 1 / 800}, 0.5),
        ({"measure": "error_at_epoch", "at": 1.6 / 800}, 0.11),  # nearer to the second iteration
        ({"measure": "error_at_pass", "at": 1}, 0.5),
        ({"measure": "error_at_pass", "at": 2}, 0.11),
        ({"measure": "passes"}, 2.0),
        ({"measure": "accuracy", "unit": "%"}, 89.0),
        ({"measure": "whole_error"}, (0.8 * 0.055 + 0.2 * 0.11)),
        ({"measure": "error_drop", "at": 1}, 0.39),
        ({"by": "difference", "unit": "points"} | TO_SMO, 1.0),
        ({"by": "difference", "solver": "SMO-textbook", "against": {"solver": "SBP"}}, -0.01),
        ({"by": "ratio"} | TO_SMO, (1.0 * 1.1 * 1.2) ** (1 / 3)),
        ({"by": "ratio", "against": {"measure": "train_error"}}, 2.0),
        ({"measure": "error_at_pass", "at": 1, "by": "difference", "against": {"at": 2}}, 0.39),
        ({"measure": "evals_to_error", "at": 0.2}, 2 * 800**2),
        ({"measure": "evals_to_error", "at": 0.0}, math.inf),
        ({"measure": "epochs_to_error", "at": 0.2}, 2 / 800),
        ({"measure": "iterations_to_risk", "at": 1e-4}, 2.0),
        ({"measure": "late_primal_spread"}, 150.0 / 100.5 - 1),
        ({"measure": "seconds_per_iteration"}, 0.64),
        ({"measure": "merge_s"}, 6.0),
        ({"measure": "merge_time_share"}, 0.4),
        ({"measure": "merge_fraction"}, 0.5),
        ({"measure": "primal_rise"}, 0.25),
        ({"measure": "dual_fall"}, 0.25),
        ({"measure": "early_acceleration"}, 2.0),
        # Straight over t; over log t R^2 is this, of iterations 10 to 20.
        ({"measure": "gap_straightness"}, 1 - 0.9907320328),
    ],
)
def test_quantities(folder, fields, value):
    of_gaps = fields.get("measure") in ("early_acceleration", "gap_straightness")
    noted = GAPS if of_gaps else EPOCHS
    places = {STUDY: folder(THREE, C=10.0, epochs=json.dumps(noted))}
    found = verdict(paper(), row(**fields), places)
    assert found.estimate is not None, found.words
    assert found.estimate.value == pytest.approx(value)
    assert found.estimate.n == (1 if of_gaps else 3)


def test_what_is_never_reached_has_an_interval():
    for numbers, draws, expected in (
        ([math.inf], True, (math.inf, -math.inf, math.inf)),
        ([math.inf], False, (math.inf, math.inf, math.inf)),
        ([1.0, math.nan, 3.0], True, (2.0, -math.inf, math.inf)),
        ([-math.inf, math.nan, math.inf], True, (-math.inf, -math.inf, math.inf)),
        ([1.0, math.inf, 3.0], True, (3.0, 1.0, math.inf)),
    ):
        found = _estimate(pd.Series(numbers), draws)
        assert (found.value, found.low, found.high) == expected


def test_the_growth_with_the_number_of_points(make, write_results):
    sizes = (100, 1000, 10000)
    records = [
        make.finished(f"n{n}", "SBP", 0, make.trace([n], [0.1], seconds=[n**1.5]), n_train=n)
        for n in sizes
    ]
    there, tasks = paper(), tuple(f"n{n}" for n in sizes)
    there.__dict__["_labels"] = {STUDY: (set(tasks), {"SBP"})}
    growth = row(measure="cpu_s", by="slope", tasks=tasks, below=1.6)
    found = verdict(there, growth, {STUDY: write_results(records, name=STUDY)})
    assert found.verdict == "reproduced"
    assert found.estimate.value == pytest.approx(1.5)


def test_what_is_infeasible_costs_infinitely_much(make, write_results):
    label, name = "LDFP (100, 5 000)", "mpfp14-table2"
    ended = {"status": "budget", "found": "budget"}
    records = [make.method_record(label, "MPLFP", seed) for seed in (0, 1)]
    records += [make.method_record(label, "SPCT", seed, **ended) for seed in (0, 1)]
    found = verdicts(read_paper("mpfp14"), {name: write_results(records, name=name)})
    first = found["text/mplfp-first/ldfp-100-5-000"]
    assert (first.verdict, first.estimate.value) == ("reproduced", math.inf)
    fails = found["text/ispvn-fails/ldfp-100-5-000"]
    assert fails.verdict == "not run"
    assert fails.command.endswith("fails/ldfp-100-5-000")
    assert found["text/ispvn-fails/ldfp-100-50-000"].command.endswith("-000 --scale full")


def test_the_page_has_every_row(make, tmp_path):
    paper = read_paper("sbp12")
    pages = paper_pages([Judged(paper, verdicts(paper, {}))], {})
    (tmp_path / "p.html").write_text(pages["sbp12.html"], encoding="utf-8")
    page = make.page(tmp_path / "p.html")
    for each in paper.rows:
        assert each.says in page.text or "table" in each.id
    n = sum(not each.is_ours for each in paper.rows)
    assert f'<td class="number">{n}</td>' in pages["index.html"]
    assert len(page.values("id")) == len(set(page.values("id")))
    # Numbers are shown as printed, and ours to four digits.
    for value, text, ours in (
        (45395.729, "45,395.729 s", "45,396"),
        (53.951, "53.951 s", "53.95"),
        (6.34e-4, "6.34e-4 s", "6.34e-4"),
    ):
        assert printed(row(printed=value, unit="s", measure="cpu_s")) == text
        assert number(value) == ours


@pytest.mark.usefixtures("undrawn")
def test_a_site_has_the_papers_of_its_studies(folder, make, write_results, tmp_path):
    records = [make.method_record("LDFP (100, 5 000)", "MPLFP", seed) for seed in (0, 1)]
    other = write_results(records, name="mpfp14-table2")
    index = publish([folder([0.1, 0.2]), other], tmp_path / "site").index
    assert 'href="papers/index.html"' in index.read_text("utf-8")
    page = (index.parent / "papers" / "mpfp14.html").read_text("utf-8")
    assert 'href="../studies/mpfp14-table2/index.html"' in page


@pytest.mark.usefixtures("undrawn")
def test_the_command_runs_a_row_and_writes_the_pages(
    command, in_this_process, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = ("reproduce", "mpfp14", "--only", "text/theorem3/ldfp-100-5-000")
    code, out, err = command(*words, "--dry-run")
    assert code == 0, err
    assert "10 runs: 10 to do" in out
    assert not (tmp_path / "results").exists()

    code, out, err = command(*words, "--json")
    assert code == 0, err
    (found,) = json.loads(out)
    assert (found["row"], found["verdict"]) == (words[-1], "reproduced")
    assert (tmp_path / "results" / "mpfp14-table2" / "report.html").is_file()
    assert "✓" in (tmp_path / "results" / "papers" / "mpfp14.html").read_text("utf-8")

    archive = tmp_path / "results" / "papers" / "journals.tar"
    front = archive.with_name("index.html").read_text("utf-8")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() in front
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    assert len(load_results(tmp_path / "unpacked" / "mpfp14-table2").runs) == 10

    _, out, err = command(*words)
    assert "10 of 10 runs already recorded" in out + err
    assert "page: results" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("mpfp15", "no paper 'mpfp15' (did you mean 'mpfp14'?)"),
        ("mpfp14 --only figure1 --only tabel2", "--only tabel2: mpfp14 has no such row"),
        ("mpfp14 --scale medium", "small or full"),
    ],
)
def test_mistakes_are_one_line(command, words, message):
    code, _, err = command("reproduce", *words.split())
    assert (code, err.count("\n")) == (2, 1)
    assert message in err


def test_the_whole_name_of_a_row_chooses_no_other_and_several_those_of_each():
    for paper in map(read_paper, PAPERS):
        assert all(paper.chosen((row.id,)) == [row] for row in paper.rows)
    paper = read_paper("mpfp14")
    both = paper.chosen(("table2", "figure1/falls"))
    assert both == [*paper.chosen(("table2",)), *paper.chosen(("figure1/falls",))]
