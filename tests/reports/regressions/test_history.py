"""Commits of real repositories: their order, known changes, and histories with steps."""

import math
from dataclasses import replace

import numpy as np
import pytest

from marginbench.reports.errors import ReportError
from marginbench.reports.regressions import annotations
from marginbench.reports.regressions.annotations import FILE, parsed
from marginbench.reports.regressions.asv_files import Lane
from marginbench.reports.regressions.gate import watched
from marginbench.reports.regressions.history import histories, steps_of
from marginbench.reports.regressions.repository import Repository

from .conftest import over_time

ENTRY = '[[change]]\ncells = "SMO *"\nmeasures = ["evaluations"]\nwhy = "{}"\n'


def counts(values, commits=()):
    """Snapshots of one cell with these evaluations, a day apart."""
    return over_time([{"SMO rbf dense": {"evaluations": each}} for each in values], commits)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([None, 100], []),
        ([100, 101, 100], []),  # within the bound
        ([100, 120], [(1, 100, 120, 0)]),  # the newest commit may be the first of its level
        ([100, 50, 50, 80], [(1, 100, 50, 0), (3, 50, 80, 0)]),
        ([100, 150, 100.5, 100], []),  # back within the bound
        ([100, 150, 120, 120], [(1, 100, 150, 0), (2, 150, 120, 0)]),  # not back
        ([100, 0, 100], []),
        ([0, 0, 3], [(2, 0, 3, 0)]),
        ([100, None, 150, None, 100], []),  # gaps hide no blip
        ([100, 100, None, None, 150, 150], [(4, 100, 150, 2)]),  # and any of theirs may be it
        ([100, 100.9, 101.8, 102.7, 103.6], [(2, 100, 101.8, 0), (4, 101.8, 103.6, 0)]),
    ],
)
def test_counts_have_a_step_at_every_lasting_change_beyond_the_bound(values, expected):
    steps = steps_of(values, watched("evaluations"))
    assert [(each.place, each.before, each.after, each.gap) for each in steps] == expected


@pytest.mark.parametrize("measure", ["evaluations", "time_fit"])
@pytest.mark.parametrize("factor", [1.009, 0.991])
def test_many_small_changes_are_reported_once_they_add_up(measure, factor):
    values = [1e6 * factor**commit for commit in range(100)]
    steps = steps_of(values, watched(measure))
    assert len(steps) >= 2
    whole = values[-1] / values[0]
    told = math.prod(each.ratio for each in steps)
    assert abs(math.log(told)) > abs(math.log(whole)) / 2


def wobbling(levels, seed):
    """Values within 3 % of levels, each for some commits."""
    rng = np.random.RandomState(seed)
    return [level * rng.uniform(0.97, 1.03) for level, n in levels for _ in range(n)]


def test_times_have_steps_where_levels_differ_and_outliers_make_and_hide_none():
    def places(values):
        return [(step.place, step.gap) for step in steps_of(values, watched("time_fit"))]

    for seed in range(5):
        assert places(wobbling([(1.0, 10), (1.05, 10)], seed)) == []  # within the bound
        there_and_back = wobbling([(1.0, 12), (2.0, 12), (1.0, 12)], seed)
        assert places(there_and_back) == [(12, 0), (24, 0)]
        values = wobbling([(1.0, 20), (2.0, 20)], seed)
        values[3], values[28] = 9.0, 0.1
        values[6:8] = [None, None]
        assert places(values) == [(20, 0)]
    rise = [1 + 0.05 * i if i not in (7, 8, 9) else None for i in range(16)]
    assert places(rise) == [(6, 0)]
    rise[6] = None
    assert places(rise) == [(10, 4)]


def test_lanes_are_apart_that_with_most_commits_first_in_the_order_of_dates():
    few = [replace(each, lane=Lane("a", "env")) for each in counts([0, 2])]
    many, fewer = histories([*few, *counts([1, 2, 3])[::-1]])
    assert (fewer.lane.machine, len(fewer.commits)) == ("a", 2)
    assert [each.short for each in many.commits] == ["1" * 10, "2" * 10, "3" * 10]
    assert many.notes == (
        "There is no repository at hand: commits are in the order of their dates.",
    )


def test_the_repository_orders_commits_and_names_those_beside_its_line_and_between(repo):
    first = repo.commit("first")
    repo.commit("not measured")
    repo.git("switch", "--quiet", "--create", "side")
    side = repo.commit("on the side")
    repo.git("switch", "--quiet", "main")
    second = repo.commit("second")
    repo.git("merge", "--quiet", "--no-ff", "--no-edit", "side")
    third = repo.git("rev-parse", "HEAD")
    strange = "e" * 40
    # With dates that mislead.
    snapshots = counts([1, 9, 2, 1, 4], [third, side, second, strange, first])
    (history,) = histories(snapshots, Repository(repo.folder))
    assert [each.subject for each in history.commits] == ["first", "second", "Merge branch 'side'"]
    (moved,) = history.moved
    assert [each[:3] for each in moved.steps] == [(1, 4, 2), (2, 2, 1)]
    beside, between = history.notes
    words = "2 commits outside the repository's line of first parents left out"
    assert beside == f"{words}: {side[:10]}, {strange[:10]}."
    # One of them is that on the side, which the last one brought.
    assert between.startswith("2 commits between these were not measured")


def test_an_entry_is_about_the_commit_that_it_names_or_that_adds_it(repo):
    first = repo.commit("first")
    second = repo.commit("second", {FILE: ENTRY.format("steadier")})
    third = repo.commit("third", {"README": "words"})
    named = ENTRY.format("known later") + f'commit = "{third[:8]}"\n'
    fourth = repo.commit("fourth", {FILE: named})
    repository = Repository(repo.folder)

    def between(*commits):
        return [each.why for each in annotations.between(repository, *commits)]

    assert between(first, second) == between(first, third) == ["steadier"]
    assert between(second, third) == between(third, fourth) == []
    assert between(second, fourth) == ["known later"]
    # A history looks at earlier pairs with the entries of its newest commit.
    (late,) = annotations.between(repository, second, third, fourth)
    assert late.why == "known later"
    (history,) = histories(counts([100, 150, 200], [first, second, third]), repository)
    [moved] = history.moved
    assert [each.why for each in moved.steps] == ["steadier", "known later"]
    assert [each.kind for each in moved.steps] == ["known", "known"]
    assert not history.bad
    # Where the second has no value the change may be that of its entry, too.
    (history,) = histories(counts([100, None, 200], [first, second, fourth]), repository)
    assert [each.why for each in history.moved[0].steps] == ["steadier"]
    broken = repo.commit("broken", {FILE: "[[change"})
    (history,) = histories(counts([100, 150], [first, broken]), Repository(repo.folder))
    assert history.bad
    assert history.notes[0].startswith(
        "Known changes are not read. benchmarks/annotations.toml of "
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[change]", "annotations.toml"),
        ("[change]\ncells = 'a'", "[[change]]"),
        ("[[changes]]\ncells = 'a'", "changes"),
        (ENTRY.format(""), "entry 1, why"),
        ("[[change]]\ncells = 'a'\nwhy = 'b'", "measures"),
        (ENTRY.format("a") + "cell = 'b'", "entry 1, cell:"),
        (ENTRY.format("a") + "commit = 'HEAD'", "7 digits"),
        (ENTRY.format("a") + ENTRY.format("b") + "commit = 7", "entry 2, commit"),
        (ENTRY.format("a") + "most = 1", "entry 1, most: Input should be greater than 1"),
    ],
)
def test_entries_that_are_none(text, words):
    with pytest.raises(ReportError) as caught:
        parsed(text)
    assert words in str(caught.value)


def test_the_base_is_where_a_branch_began_from_the_first_main_branch_or_the_parent(repo, tmp_path):
    first, second = repo.commit("first"), repo.commit("second")
    repository = Repository(repo.folder)

    def base():
        return repository.base(repository.commit("HEAD")).hash

    assert base() == first
    repo.git("switch", "--quiet", "--create", "work")
    third = repo.commit("third")
    repo.commit("fourth")
    assert base() == second
    # A shallow clone does not guess.
    for depth in (1, 2):
        folder = tmp_path / f"depth-{depth}"
        words = ["--quiet", "--no-single-branch", f"--depth={depth}", "--branch=work"]
        repo.git("clone", *words, repo.folder.as_uri(), str(folder))
        shallow = Repository(folder)
        with pytest.raises(ReportError, match="in a shallow clone fetch its history"):
            shallow.base(shallow.commit("HEAD"))
    assert shallow.commit("HEAD~1").hash == third
    # Old local branches, as nobody has pulled or removed them.
    repo.git("update-ref", "refs/remotes/origin/main", third)
    repo.git("branch", "master", first)
    repo.git("branch", "--force", "main", first)
    assert base() == third
    with pytest.raises(ReportError, match="no parent"):
        repository.base(repository.commit(first))
