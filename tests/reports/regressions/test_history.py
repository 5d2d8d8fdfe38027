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

CELL = "SMO rbf dense"
EVALUATIONS = ("work.Work SMO rbf dense", "evaluations")
ENTRY = '[[change]]\ncells = "SMO *"\nmeasures = ["evaluations"]\nwhy = "{}"\n'


@pytest.fixture
def over_time(snapshot):
    """Snapshots of one cell with given evaluations, a day apart; "failed" is a failure."""

    def make(values, commits=None):
        found = []
        for place, value in enumerate(values):
            named = {(CELL, "failed"): float(value == "failed")}
            named["SBP rbf dense", "evaluations"] = 7.0
            if value != "failed":
                named[CELL, "evaluations"] = value
            commit = commits[place] if commits else f"{place + 1:x}" * 40
            versions = {f"work.Work.{name}": "1" for name in ("evaluations", "failed")}
            found.append(snapshot(named, commit, date=place * 86_400_000, versions=versions))
        return found

    return make


def steps(history, key=EVALUATIONS):
    return [
        tuple(step[:3])
        for each in history.moved
        if (each.cell, each.measure.name) == key
        for step in each.steps
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([None, 100], []),
        ([100, 101, 100], []),  # within the bound
        ([100, 120], [(1, 100, 120)]),  # the newest commit may be the first of its level
        ([100, 50, 50, 80], [(1, 100, 50), (3, 50, 80)]),
        ([100, 150, 100.5, 100], []),  # back within the bound
        ([100, 150, 120, 120], [(1, 100, 150), (2, 150, 120)]),  # not back
        ([100, 0, 100], []),
        ([0, 0, 3], [(2, 0, 3)]),
        ([100, None, 150, None, 100], []),  # gaps hide no blip
        ([100, 100.9, 101.8, 102.7, 103.6], [(2, 100, 101.8), (4, 101.8, 103.6)]),
    ],
)
def test_counts_have_a_step_at_every_lasting_change_beyond_the_bound(values, expected):
    steps = steps_of(values, watched("evaluations"))
    assert [(each.place, each.before, each.after) for each in steps] == expected


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
        return [step.place for step in steps_of(values, watched("time_fit"))]

    for seed in range(5):
        assert places(wobbling([(1.0, 10), (1.05, 10)], seed)) == []  # within the bound
        assert places(wobbling([(1.0, 12), (2.0, 12), (1.0, 12)], seed)) == [12, 24]
        values = wobbling([(1.0, 20), (2.0, 20)], seed)
        values[3], values[28] = 9.0, 0.1
        values[6:8] = [None, None]
        assert places(values) == [20]


def test_a_step_is_at_a_commit_with_a_value_and_says_how_many_had_none_before():
    steps = steps_of([100, 100, None, None, 150, 150], watched("evaluations"))
    assert [(each.place, each.gap) for each in steps] == [(4, 2)]
    rise = [1 + 0.05 * i if i not in (7, 8, 9) else None for i in range(16)]
    assert [(each.place, each.gap) for each in steps_of(rise, watched("time_fit"))] == [(6, 0)]
    rise[6] = None
    assert [(each.place, each.gap) for each in steps_of(rise, watched("time_fit"))] == [(10, 4)]


def test_a_blip_is_no_step_and_failures_are_none_while_the_gate_refuses_the_newest(over_time):
    (history,) = histories(over_time([100, 150, 100]))
    assert history.moved == ()
    (newest,) = histories(over_time([100, 150]))
    assert newest.bad
    assert newest.newest.exit_code == 1
    (history,) = histories(over_time([100, "failed", 150]))
    assert history.failures == {f"work.Work {CELL}": (1,)}
    assert steps(history) == [(2, 100, 150)]


def test_lanes_are_apart_that_with_most_commits_first_in_the_order_of_dates(over_time):
    few = [replace(each, lane=Lane("a", "env")) for each in over_time([1, 2])]
    many, fewer = histories([*few, *over_time([1, 2, 3])[::-1]])
    assert (fewer.lane.machine, len(fewer.commits)) == ("a", 2)
    assert [each.short for each in many.commits] == ["1" * 10, "2" * 10, "3" * 10]
    assert many.notes == (
        "There is no repository at hand: commits are in the order of their dates.",
    )


def test_the_repository_orders_commits_names_them_and_counts_those_between(repo, over_time):
    commits = [repo.commit(f"change {i}") for i in range(4)]
    measured = [commits[3], commits[1], commits[0]]  # with dates that mislead
    (history,) = histories(over_time([1, 2, 3], measured), Repository(repo.folder))
    assert [each.subject for each in history.commits] == ["change 0", "change 1", "change 3"]
    assert steps(history) == [(1, 3, 2), (2, 2, 1)]
    (note,) = history.notes
    assert note.startswith("1 commit between these were not measured")


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
    assert [each.hash for each in history.commits] == [first, second, third]
    assert history.moved == ()
    words = "2 commits outside the repository's line of first parents left out"
    assert history.notes[0] == f"{words}: {side[:10]}, {strange[:10]}."


def test_an_entry_is_about_the_commit_that_it_names_or_that_adds_it(repo, over_time):
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
    (history,) = histories(over_time([100, 150, 200], [first, second, third]), repository)
    [moved] = history.moved
    assert [each.why for each in moved.steps] == ["steadier", "known later"]
    assert [each.kind for each in moved.steps] == ["known", "known"]
    assert not history.bad
    broken = repo.commit("broken", {FILE: "[[change"})
    (history,) = histories(over_time([100, 150], [first, broken]), Repository(repo.folder))
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


def test_the_base_is_where_a_branch_began_from_the_first_main_branch_or_the_parent(repo):
    first, second = repo.commit("first"), repo.commit("second")
    repository = Repository(repo.folder)

    def base():
        return repository.base(repository.commit("HEAD")).hash

    assert base() == first
    repo.git("switch", "--quiet", "--create", "work")
    third = repo.commit("third")
    repo.commit("fourth")
    assert base() == second
    # Old local branches, as nobody has pulled or removed them.
    repo.git("update-ref", "refs/remotes/origin/main", third)
    repo.git("branch", "master", first)
    repo.git("branch", "--force", "main", first)
    assert base() == third
    with pytest.raises(ReportError, match="no parent"):
        repository.base(repository.commit(first))


def test_a_shallow_clone_does_not_guess_where_a_branch_began(repo, tmp_path):
    repo.commit("first")
    repo.git("switch", "--quiet", "--create", "work")
    for name in ("second", "third", "fourth"):
        repo.commit(name)
    for depth in (1, 2):
        folder = tmp_path / f"depth-{depth}"
        words = ["--quiet", "--no-single-branch", f"--depth={depth}", "--branch=work"]
        repo.git("clone", *words, repo.folder.as_uri(), str(folder))
        shallow = Repository(folder)
        with pytest.raises(ReportError, match="in a shallow clone fetch its history"):
            shallow.base(shallow.commit("HEAD"))
        if depth == 2:
            assert shallow.commit("HEAD~1").subject == "third"


def test_names_of_no_commit_and_folders_without_a_repository_are_refused(repo, tmp_path):
    repo.commit("first")
    for name in ("nope", "--output=x", ""):
        with pytest.raises(ReportError, match="no commit"):
            Repository(repo.folder).commit(name)
    with pytest.raises(ReportError, match="git"):
        Repository(tmp_path)
