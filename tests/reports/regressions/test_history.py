"""Histories: order of commits, lanes, steps, blips and known changes of a real repository."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from marginbench.reports.regressions.history import histories, noise_before
from marginbench.reports.regressions.repository import Repository
from marginbench.reports.regressions.values import Benchmark, Cell, Key, Lane, Snapshot, Value

CELL = Cell("work.Work", "SMO rbf dense")
EVALUATIONS = Key(CELL, "evaluations")


@pytest.fixture
def over_time(snapshot: Callable[..., Snapshot]) -> Callable[..., list[Snapshot]]:
    """Snapshots of one cell with given evaluations, a day apart; "failed" is a failure."""

    def make(values: list[Any], commits: list[str] | None = None) -> list[Snapshot]:
        found = []
        for place, value in enumerate(values):
            number = None if value in (None, "failed") else value
            named: dict[tuple[str, str], float | None] = {
                (CELL.name, "failed"): float(value == "failed"),
                ("SBP rbf dense", "evaluations"): 7.0,
            }
            if number is not None:
                named[CELL.name, "evaluations"] = number
            commit = commits[place] if commits else f"{place + 1:x}" * 40
            benchmarks = [Benchmark("work.Work", name) for name in ("evaluations", "failed")]
            made = snapshot(named, commit, date=place * 86_400_000)
            found.append(replace(made, versions=dict.fromkeys(benchmarks, "1")))
        return found

    return make


def test_a_blip_is_no_regression_of_either_commit(over_time):
    (history,) = histories(over_time([100, 150, 100, 50]))
    kinds = [dict(pair.kinds) for pair in history.pairs]
    assert kinds == [
        {"blip": 1, "unchanged": 1},
        {"blip": 1, "unchanged": 1},
        {"improvement": 1, "unchanged": 1},
    ]
    assert history.pairs[0].left == history.pairs[1].back == {EVALUATIONS}
    assert history.series[EVALUATIONS].changes.blips == {1}
    # The comparison itself keeps the change: the gate would have refused it.
    assert history.pairs[0].comparison.exit_code == 1


def test_failures_are_no_blips_and_values_around_them_are_followed(over_time):
    (history,) = histories(over_time([100, "failed", 150]))
    assert [dict(pair.kinds) for pair in history.pairs] == [
        {"failed": 1, "unchanged": 1},
        {"mended": 1, "unchanged": 1},
    ]
    assert history.failures == {CELL: frozenset({1})}
    assert [tuple(step) for step in history.series[EVALUATIONS].steps] == [(2, 100, 150)]


def test_a_cell_absent_in_the_middle_is_a_gap(over_time):
    (history,) = histories(over_time([100, None, 100]))
    series = history.series[EVALUATIONS]
    assert series.numbers == (100, None, 100)
    assert series.changes == ((), frozenset())


def test_creeping_values_are_named_where_they_leave_their_level(over_time):
    (history,) = histories(over_time([1000, 1006, 1012, 1012]))
    assert [pair.crept for pair in history.pairs] == [(), (EVALUATIONS,), ()]
    assert all(pair.comparison.exit_code == 0 for pair in history.pairs)


def test_lanes_are_apart_and_the_one_with_most_commits_is_first(over_time):
    few, many = over_time([1, 2]), over_time([1, 2, 3])
    few = [replace(each, lane=Lane("a", "env")) for each in few]
    found = histories([*few, *many])
    assert [(each.lane.machine, len(each.commits)) for each in found] == [("vm", 3), ("a", 2)]


def test_without_a_repository_dates_order_commits_and_a_note_says_so(over_time):
    (history,) = histories(over_time([1, 2, 3])[::-1])
    assert [each.short for each in history.commits] == ["1" * 10, "2" * 10, "3" * 10]
    assert history.notes == (
        "There is no repository at hand: commits are in the order of their dates.",
    )


def test_the_repository_orders_commits_and_names_them(repo, over_time):
    commits = [repo.commit(f"change {i}") for i in range(3)]
    snapshots = over_time([1, 2, 3], commits[::-1])  # dates that mislead
    (history,) = histories(snapshots, Repository(repo.folder))
    assert [each.subject for each in history.commits] == ["change 0", "change 1", "change 2"]
    assert history.series[EVALUATIONS].numbers == (3, 2, 1)
    assert history.notes == ()
    assert all(pair.notes == () for pair in history.pairs)


def test_commits_that_were_not_measured_may_be_the_cause(repo, over_time):
    commits = [repo.commit(f"change {i}") for i in range(3)]
    (history,) = histories(over_time([1, 2], commits[::2]), Repository(repo.folder))
    assert history.pairs[0].notes == (
        "2 commits lead from one to the other, and any of them may be the cause",
    )


def test_commits_beside_the_line_and_of_elsewhere_are_named(repo, over_time):
    first = repo.commit("first")
    repo.git("switch", "--quiet", "--create", "side")
    side = repo.commit("on the side")
    repo.git("switch", "--quiet", "main")
    second = repo.commit("second")
    repo.git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    third = repo.git("rev-parse", "HEAD")
    strange = "e" * 40
    snapshots = over_time([1, 9, 1, 1, 1], [first, side, second, strange, third])
    (history,) = histories(snapshots, Repository(repo.folder))
    assert [each.hash for each in history.commits] == [first, second, strange, third]
    assert all(pair.kinds == {"unchanged": 2} for pair in history.pairs)
    assert history.notes == (
        f"The repository lacks 1 commit, placed by date: {strange[:10]}.",
        f"1 commit beside the line of first parents left out: {side[:10]}.",
    )


CHANGE = """
[[change]]
cells = "SMO *"
measures = "evaluations"
why = "{why}"
"""


def test_known_changes_come_with_their_commit_or_later(repo, over_time):
    first = repo.commit("first", {"a": "1"})
    same = {"benchmarks/annotations.toml": CHANGE.format(why="It comes with it.")}
    second = repo.commit("second", same)
    third = repo.commit("third", {"a": "3"})
    late = CHANGE.format(why="Named later.") + f'commit = "{third[:8]}"\n'
    repo.commit("fourth", {"benchmarks/annotations.toml": late})
    (history,) = histories(
        over_time([100, 150, 200], [first, second, third]), Repository(repo.folder)
    )
    assert [each.why for pair in history.pairs for each in pair.annotations] == [
        "It comes with it.",
        "Named later.",
    ]
    assert [dict(pair.kinds) for pair in history.pairs] == [{"accepted": 1, "unchanged": 1}] * 2
    assert len(history.series[EVALUATIONS].steps) == 2


def test_a_broken_file_of_known_changes_is_a_note(repo, over_time):
    first = repo.commit("first")
    second = repo.commit("second", {"benchmarks/annotations.toml": "[[change"})
    (history,) = histories(over_time([100, 150], [first, second]), Repository(repo.folder))
    assert history.pairs[0].kinds["regression"] == 1
    (note,) = history.notes
    assert note.startswith("Known changes are not read. benchmarks/annotations.toml of ")


def test_noise_comes_from_earlier_commits_and_never_widens_counts(snapshot):
    cell = Cell("solve.Fit", "SMO")
    time, count = Key(cell, "time_fit"), Key(cell, "evaluations")
    found = []
    for place in range(12):
        wobble = 1.0 + 0.04 * (place % 2)
        made = snapshot({}, f"{place:x}" * 40, date=place)
        values = {time: Value(wobble), count: Value(1000 * wobble)}
        found.append(replace(made, values=values))
    (history,) = histories(found)
    assert noise_before(history, 11) == {time: pytest.approx(0.04)}
    assert noise_before(history, 8) == {time: 0.0}  # seven pairs


def test_one_commit_has_a_history_without_pairs(over_time):
    (history,) = histories(over_time([100]))
    assert history.pairs == ()
    assert list(history.groups()) == ["SBP", "SMO"]
