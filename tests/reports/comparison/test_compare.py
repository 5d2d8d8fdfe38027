"""Comparisons of results folders, from records to verdicts, text, JSON and page."""

import functools
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console, Group

from marginbench import compare
from marginbench.harness.errors import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    EXIT_RUNS,
    EXIT_USAGE,
)
from marginbench.harness.results.svm import packed
from marginbench.reports import formatting
from marginbench.reports.comparison import report as words
from marginbench.reports.comparison.report import in_words, render
from marginbench.reports.comparison.studies import bounds_of
from marginbench.reports.errors import ReportError

SEEDS = range(3)


@pytest.fixture(scope="module")
def folder(make, write_results):
    """Writes SMO (draws nothing) and others on two tasks; ``changed`` edits records."""

    def write(
        changed=lambda record: record, tasks=("a", "b"), seeds=SEEDS, drawing=("SBP",), **study
    ):
        rng = np.random.default_rng(0)
        records = []
        for task in tasks:
            records.append(run(make, task, "SMO", 0, 1000, rng))
            for solver in drawing:
                records += [run(make, task, solver, s, 3000 + 100 * s, rng) for s in range(5)]
        kept = [record for record in records if record.seed in seeds]
        records = [record for record in map(changed, kept) if record is not None]
        solvers = [make.solver("SMO", deterministic=True), *map(make.solver, drawing)]
        return write_results(records, [make.task(task) for task in tasks], solvers, **study)

    return write


@pytest.fixture(scope="module")
def plain(folder):
    """Records as they come, which no test changes."""
    return folder()


def run(make, task, solver, seed, cost, rng):
    mistakes = rng.random(200) < 0.05
    error = float(mistakes.mean())
    seconds = cost / 1e4 * (1 + 0.01 * seed)
    trace = make.trace([cost / 10, cost], [0.4, error], [150.0, 100.5], [seconds / 10, seconds])
    return make.finished(
        task, solver, seed, trace, mistakes=packed(mistakes), params='{"tol": 0.001}', gap=0.5,
        n_iter=cost // 10, peak_memory_mb=100.0 if seed else None, reference_test_error=0.06,
    )  # fmt: skip


def scaled(record, factor, solver="SBP"):
    """The record with so many times the counts of a solver."""

    def counted(item):
        return {name: int(count * factor) for name, count in item.counters.items()}

    if record.solver != solver:
        return record
    trace = [replace(item, counters=counted(item)) for item in record.trace]
    return replace(record, counters=counted(record), trace=trace)


def failing(record):
    if (record.solver, record.seed) == ("SBP", 2):
        return replace(record, status="crashed", reason="signal 11", trace=[])
    return record


def printed(found, width, *, all_rows=False):
    console = Console(width=width, file=io.StringIO())
    console.print(Group(*in_words(found, all_rows=all_rows)))
    return console.file.getvalue()


def value(found, measure, task="a", solver="SBP"):
    frame = found.frame
    chosen = (frame["task"] == task) & (frame["solver"] == solver) & (frame["measure"] == measure)
    (place,) = frame.index[chosen]
    return frame.loc[place]


def test_one_run_of_a_deterministic_side_is_in_every_pair_and_what_is_spent_ranks_none(
    folder, plain
):
    def worse(record):
        if record.solver == "SMO":
            return record
        return replace(record, test_error=0.45, mistakes=packed(np.arange(200) < 90))

    def failed(record):
        return replace(record, status="crashed", trace=[]) if record.solver == "SMO" else record

    results = folder(worse, seeds=range(5))
    both = [compare(results, solver=b, against=a) for a, b in (("SMO", "SBP"), ("SBP", "SMO"))]
    there, back = (value(each, "test_error", solver=each.after.solver) for each in both)
    assert not any(each.frame["exact"].any() for each in both)
    assert (there["verdict"], back["verdict"]) == ("worsening", "improvement")
    assert there["n"] == back["n"] == 5
    assert there["low"] == pytest.approx(-back["high"])
    # One run for each of two tasks fails, however many seeds have no counterpart for it.
    lacking = compare(folder(failed, seeds=range(5)), solver="SMO", against="SBP")
    assert lacking.n_newly_failed == 2
    found = compare(plain, solver="SBP", against="SMO")
    assert list(found.pairs["outcome"]) == ["compared"] * 6
    assert value(found, "evaluations")["verdict"] == "advice"
    assert value(found, "evaluations")["mean"] == pytest.approx(3.0991, abs=1e-3)
    assert value(found, "evals_to_error")["verdict"] == "worsening"
    # One time was measured of SMO.
    assert value(found, "seconds_to_error")["verdict"] == "no difference told"
    assert (found.before.words, found.after.words) == (f"SMO in {plain}", f"SBP in {plain}")


def test_a_folder_against_itself_or_its_store_is_identical(plain, tmp_path, monkeypatch):
    found = compare(plain, str(plain))
    assert (found.verdict, found.exit_code) == ("identical", EXIT_OK)
    for table in (found.frame, found.cells, found.solvers):
        assert set(table["verdict"]) == {"identical"}
    assert set(found.frame["mean"].dropna()) == {0.0, 1.0}
    assert found.environment == found.code == []
    assert repr(found).startswith("Comparison('identical': 0 worse")
    # What sessions and checkpoints do not tell; a count that is all of a sum is none of its own.
    bands = {name: item.band for name, item in found.measures.items() if item.band != 1.0}
    assert bands == pytest.approx(
        {"evals_to_error": 1.19, "evals_to_objective": 1.19, "seconds_to_error": 1.1 * 1.19}
        | {"seconds_to_objective": 1.1 * 1.19, "cpu_s": 1.1, "wall_s": 1.1, "peak_memory_mb": 1.1}
    )
    assert {"kernel_evals", "kernel_evals_computed"}.isdisjoint(found.measures)
    pytest.importorskip("obstore", reason="of the extra 'cloud' and the group 'dev'")
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path))
    url = plain.as_uri()
    found = compare(url, plain)
    assert json.loads(found.to_json())["a"]["folder"] == url
    assert [side.words for side in (found.before, found.after)] == [url, str(plain)]


@pytest.fixture(scope="module")
def changes(folder):
    """A comparison in which each solver has changed in a way of its own."""
    rounded = {"suboptimality": 0.0, "gap": 0.0, "reference_gap": -1e-14}
    of_both = {
        "Tiny": {"suboptimality": 1e-12, "peak_memory_mb": None},
        "Late": {"peak_memory_mb": None},
        "Coarse": {"suboptimality": 0.005},
        "Exact": rounded,
    }
    other = {"params": '{"tol": 0.1, "new": 1}', "budget": '{"timeout": 5}', "status": "budget"}
    of_b = {
        "Tiny": {"suboptimality": 1e-9},
        "Coarse": {"suboptimality": 5.0},
        "Exact": {"suboptimality": 1e-10, "gap": 1e-8},
        "Unmeasured": {"peak_memory_mb": None},
        "Simplified": {"other_problem": "without a bias"},
        "Other": other | {"version": "abc git:def"},
        "Certified": {"reference_primal": 100.00001, "reference_hash": "s" * 64},
    }
    drawing = ("SBP", "Late", "Never", *of_b)

    def before(record):
        return replace(record, **of_both.get(record.solver, {}))

    def after(record):
        factor = {"a": 2, "b": 8}[record.task]
        record = scaled(scaled(before(record), 1.01, "SMO"), factor, "Late")
        match record.solver:
            case "SMO" | "SBP":
                return replace(record, cpu_s=record.cpu_s * 5)
            case "Late" if record.seed:  # at the target at its first checkpoint
                return replace(record, trace=record.trace[-1:], peak_memory_mb=100.0)
            case "Never" if record.task == "a":
                return replace(record, trace=record.trace[:1])
        return replace(record, **of_b.get(record.solver, {}))

    return compare(folder(before, drawing=drawing), folder(after, drawing=drawing))


def test_each_solver_is_judged_by_its_own_runs_and_what_differs_is_named(changes):
    # One run of a solver that draws nothing tells counts, but no time.
    row = value(changes, "evaluations", solver="SMO")
    assert (row["verdict"], row["beyond"], row["exact"]) == ("worsening", False, True)
    assert value(changes, "cpu_s", solver="SMO")["verdict"] == "no difference told"
    assert value(changes, "cpu_s")["verdict"] == "worsening"
    # The certificate resolves 1e-4 / 100.
    assert value(changes, "suboptimality", solver="Tiny")["verdict"] == "identical"
    assert value(changes, "suboptimality", solver="Coarse")["verdict"] == "worsening"
    # Below double precision no objective is told from another.
    for measure in ("suboptimality", "gap"):
        assert value(changes, measure, solver="Exact")["verdict"] == "identical"
    for solver in ("Unmeasured", "Late"):  # all and some of its runs
        row = value(changes, "peak_memory_mb", solver=solver)
        assert (row["verdict"], row["why"]) == ("not compared", "recorded on one side only")
    assert changes.frame.query("solver == 'Tiny' and measure == 'peak_memory_mb'").empty
    row = value(changes, "n_support", solver="Simplified")
    assert row["why"] == "they solve different problems"
    # The verdict beside a mean over tasks is that of the tasks in it.
    query = "solver == 'Never' and measure == 'evals_to_objective'"
    (row,) = changes.solvers.query(query).to_dict("records")
    assert (row["verdict"], row["n_tasks"], row["n_worse"]) == ("identical", 1, 1)
    assert value(changes, "evals_to_objective", solver="Never")["verdict"] == "worsening"
    late = changes.solvers.query("solver == 'Late' and measure == 'evaluations'")
    assert late["mean"].item() == pytest.approx(4.0)
    assert {(item.solver, item.field, item.before, item.after) for item in changes.code} == {
        ("Other", "version", "not recorded", "abc"),
        ("Other", "params.tol", "0.001", "0.1"),
        ("Other", "params.new", "not recorded", "1"),
        ("Other", "budget.timeout", "not recorded", "5"),
    }
    ended = "6 pairs ended with 'converged' in A and 'budget' in B: Other."
    assert ended in words.notes(changes)
    # An interval that is not wholly beyond a bound need not be within it.
    text = printed(changes, 200, all_rows=True)
    assert re.search("beyond [0-9]", text)
    assert not re.search("within (off|[0-9.]+\N{MULTIPLICATION SIGN})", text)
    # What is only known as a bound is shown and not judged.
    row = value(changes, "evals_to_objective", solver="Late")
    assert (row["verdict"], row["mean"]) == ("advice", pytest.approx(2.0))
    assert "only an upper bound" in row["why"]
    # Another certificate of the same optimum leaves out what rests on it.
    certified = changes.frame[changes.frame["solver"] == "Certified"].groupby("verdict")["measure"]
    assert set(certified.groups) == {"not compared", "identical"}
    assert set(certified.get_group("not compared")) == {
        *("suboptimality", "evals_to_error", "evals_to_objective"),
        *("seconds_to_error", "seconds_to_objective"),
    }
    assert "different certified optima of a, b" in json.loads(changes.to_json())["notes"][0]
    assert "the reference optima differ" in printed(changes, 200, all_rows=True)


@pytest.mark.slow
def test_nothing_in_common_and_records_that_b_lost_have_an_exit_code(folder, plain, make):
    found = compare(folder(tasks=("a",)), folder(tasks=("c",)))
    assert (found.verdict, found.exit_code) == ("not compared", EXIT_INCOMPLETE)
    assert set(found.pairs["outcome"]) == {"gone", "new"}
    assert json.loads(found.to_json())["values"] == []
    assert "no pair of runs could be compared" in printed(found, 80)
    assert "No pair of runs could be compared." in render(found)
    b = folder()
    make.rewrite(b, lambda r: None if (r.solver, r.seed) == ("SBP", 1) else r)
    found = compare(plain, b)
    assert (found.verdict, found.exit_code) == ("no record", EXIT_INCOMPLETE)
    assert (found.pairs["outcome"] == "no record in B").sum() == 2


@pytest.mark.slow
def test_times_of_another_or_a_busy_machine_are_advice_and_those_of_another_commit_are_not(
    plain, folder
):
    def elsewhere(**fields):
        def moved(record):
            environment = json.dumps(json.loads(record.environment) | fields)
            return replace(record, environment=environment, cpu_s=record.cpu_s * 3)

        return compare(plain, folder(moved))

    commit = elsewhere(commit="f" * 40)
    assert [item.field for item in commit.environment] == ["commit"]
    assert value(commit, "cpu_s")["verdict"] == "worsening"
    found = elsewhere(processor="Other CPU")
    assert value(found, "cpu_s")["verdict"] == "advice"
    assert value(found, "evaluations")["verdict"] == "identical"
    assert found.exit_code == EXIT_OK
    (setting,) = found.environment
    expected = ("processor", "Example CPU 3000", "Other CPU")
    assert (setting.field, setting.before, setting.after) == expected
    assert "the sides differ in processor" in printed(found, 200)
    busy = compare(plain, folder(lambda record: replace(record, wall_s=record.wall_s * 4)))
    noted = words.notes(busy)
    assert "Times and memory are advice only: the runs of B were disturbed" in noted[0]
    assert any(note.startswith("B: The solvers had the processor for 25") for note in noted)


@pytest.mark.slow
def test_methods_of_feasibility_are_compared_by_instance(make, write_results):
    def write(factor, found="separable"):
        records = [
            make.method_record("cell", "MPLFP", seed, int((100 + 10 * seed) * factor), found=found)
            for seed in range(3)
        ]
        return write_results(records)

    plain = write(1)
    found = compare(plain, write(2))
    assert value(found, "n_iter", "cell", "MPLFP")["mean"] == pytest.approx(2.0)
    assert found.verdict == "worsening"
    unsolved = compare(plain, write(1, "budget"))
    why = value(unsolved, "matvecs", "cell", "MPLFP")["why"]
    assert why == "only A reaches it in 3, only B in 0 of 3 pairs"


@pytest.fixture(scope="module")
def worse(folder):
    """Twice the work, and a failure with a hostile reason; and the folders, to compare again."""

    def changed(record):
        reason = "<script>alert(1)</script>\u202e"
        return replace(failing(scaled(record, 2.0)), reason=reason)

    given = {"tasks": ("a", "Name" * 30), "seeds": range(4)}
    folders = folder(title="<b>A</b>", **given), folder(changed, **given)
    return compare(*folders), folders


def test_json_is_stable_and_finite_and_text_fits_the_terminal_with_the_worst_first(worse):
    found, folders = worse
    text = found.to_json()
    assert text == compare(*folders).to_json()
    document = json.loads(text, parse_constant=pytest.fail)
    assert list(document)[:4] == ["schema_version", "verdict", "exit_code", "summary"]
    assert (document["exit_code"], document["times_judged"]) == (EXIT_INCOMPLETE, True)
    assert {row["outcome"] for row in document["not_compared"]} == {"failed in B"}
    assert document["cells"][1]["outcomes"] == {"compared": 3, "failed in B": 1}
    for width, all_rows in ((40, True), (40, False), (120, True)):
        lines = printed(found, width, all_rows=all_rows).splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].startswith("failed: 2 runs failed")


def test_a_mean_over_six_tasks_is_worse_where_single_runs_tell_nothing(folder):
    def worse(record):
        if record.solver == "SMO":
            return record
        mistakes = np.arange(200) < 200 * record.test_error + 10
        return replace(scaled(record, 1.3), test_error=mistakes.mean(), mistakes=packed(mistakes))

    six = {"tasks": tuple("abcdef"), "seeds": (0,)}
    found = compare(folder(**six), folder(worse, **six))
    assert (found.verdict, found.exit_code) == ("worsening", EXIT_RUNS)
    line = words.headline(found)
    assert line.startswith("0 worse (5 beyond bounds), 30 with no difference told, 126 identical")
    assert line.endswith("; means over tasks alone: 5 worse")


def test_twice_the_work_and_failures_are_worse_and_the_other_solver_stays_identical(worse):
    found, folders = worse
    row = value(found, "evaluations")
    assert (row["verdict"], row["beyond"], row["n"]) == ("worsening", True, 3)
    # A side lacks runs of both tasks.
    means = found.solvers.query("solver == 'SBP'")
    assert set(zip(means["n_tasks"], means["n_left_out"], strict=True)) == {(0, 2)}
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((2.0, 2.0, 2.0), rel=1e-3)
    assert value(found, "evals_to_objective")["mean"] == pytest.approx(2.0, rel=1e-3)
    assert set(found.frame.loc[found.frame["solver"] == "SMO", "verdict"]) == {"identical"}
    assert value(found, "test_error")["verdict"] == "identical"
    assert (found.verdict, found.exit_code, found.n_newly_failed) == ("failed", EXIT_INCOMPLETE, 2)
    mended = compare(*reversed(folders))
    assert mended.exit_code == EXIT_OK
    assert set(mended.pairs["outcome"]) == {"compared", "failed in A"}
    same = compare(folders[1], folders[1])
    assert (same.verdict, same.exit_code) == ("identical", EXIT_OK)


def test_the_page_is_whole_without_scripts_and_escapes_all(worse, make, tmp_path):
    found, _ = worse
    path = found.write_page(tmp_path / "page.html")
    page = make.page(path)
    raw = path.read_text(encoding="utf-8")
    assert not [words for words in ("<script", "\u202e", "<b>") if words in raw]
    (policy,) = (text for text in page.values("content") if "default-src" in text)
    assert "script-src" not in policy
    assert len(set(page.values("id"))) == len(page.values("id"))
    assert "2 runs failed in B that did not in A" in page.text
    assert f"2.00{formatting.TIMES}" in page.text
    assert raw == render(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give another folder"),
        ({"solver": "SMO", "against": "SMO"}, "or two of its solvers"),
        ({"solver": "SMOO", "against": "SBP"}, "did you mean 'SMO'?"),
        ({"b": "itself", "against": "SMO"}, "--solver"),
        ({"bounds": "cpu"}, "--bound 'cpu': '' is no bound; give a ratio from 1 on"),
        (
            {"bounds": ["evals=2", "cpuu=1.2"]},
            "'cpuu=1.2': no measure 'cpuu' (did you mean 'cpu'?)",
        ),
        ({"bounds": "cpu=0.9"}, "--bound 'cpu=0.9': '0.9' is no bound; give a ratio from 1 on"),
        ({"bounds": "cpu=nan"}, "'nan' is no bound; give a ratio from 1 on"),
        ({"bounds": "error=1.1"}, "'1.1' is no bound; give points of test error"),
        ({"bounds": "error=-1pt"}, "'-1pt' is no bound; give points of test error"),
    ],
)
def test_mistakes_are_one_line_that_says_what_to_give(plain, given, said):
    given = {name: plain if each == "itself" else each for name, each in given.items()}
    with pytest.raises(ReportError, match=re.escape(said)) as caught:
        compare(plain, **given)
    assert "\n" not in str(caught.value)


def test_bounds_are_ratios_or_points_by_the_names_of_the_command():
    bounds = {"evaluations": 1.0, "cpu_s": math.inf, "test_error": 0.005}
    assert bounds_of(["evals=1, cpu=off", "error=0.5pt"]) == bounds
    assert [bounds_of(f"error={ends}")["test_error"] for ends in ("0pt", "100pt")] == [0.0, 1.0]


@pytest.mark.slow
def test_the_command_prints_writes_and_has_exit_codes(plain, folder, command, tmp_path):
    compare = functools.partial(command, "compare")
    b = folder(lambda record: scaled(record, 2.0))
    code, out, _ = compare(plain, plain)
    assert code == EXIT_OK
    assert out.startswith("identical: 0 worse")
    code, out, _ = compare(plain, b, "--json", "--html", tmp_path / "page.html")
    assert code == EXIT_RUNS
    assert json.loads(out)["verdict"] == "worsening"
    assert (tmp_path / "page.html").is_file()
    accepted = "evals=3,computed=3,evals_to_error=3,evals_to_objective=3"
    assert compare(plain, b, "--bound", accepted)[0] == EXIT_OK
    assert compare(plain, folder(failing))[0] == EXIT_INCOMPLETE
    code, _, err = compare(plain, tmp_path / "nowhere")
    assert code == EXIT_USAGE
    assert "not a results folder" in err
    for options in (("--text", "--json"), ("--html", tmp_path), ("--html", "")):
        assert compare(plain, b, *options)[0] == EXIT_USAGE


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_page_fits_a_browser_without_scripts(visit, worse, tmp_path, width, scheme):
    page = worse[0].write_page(tmp_path / "page.html")
    tab = visit(page, width=width, color_scheme=scheme)
    box = tab.locator("figure svg").first.bounding_box()
    assert box["width"] >= 250
    assert box["x"] + box["width"] <= width
    # What is drawn has the colours of the scheme: dots differ from the ground.
    ink = tab.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
    assert (ink == "rgb(228, 229, 226)") == (scheme == "dark")
