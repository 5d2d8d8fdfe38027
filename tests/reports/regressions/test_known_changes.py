"""Commits, and the known changes between them, from real repositories."""

import pytest

from marginbench.reports.errors import ReportError
from marginbench.reports.regressions import annotations
from marginbench.reports.regressions.annotations import FILE, parsed
from marginbench.reports.regressions.repository import Repository

ENTRY = '[[change]]\ncells = "SMO *"\nmeasures = ["evaluations"]\nwhy = "{}"\n'


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
    (late,) = annotations.later(repository, second, third, fourth)
    assert late.why == "known later"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[change]", "annotations.toml"),
        ("[change]\ncells = 'a'", "[[change]]"),
        ("[[changes]]\ncells = 'a'", "'changes' is unknown"),
        (ENTRY.format(""), "say why"),
        ("[[change]]\ncells = 'a'\nwhy = 'b'", "measures"),
        (ENTRY.format("a") + "cell = 'b'", "'cell' is unknown"),
        (ENTRY.format("a") + "commit = 'HEAD'", "7 digits"),
        (ENTRY.format("a") + ENTRY.format("b") + "commit = 7", "entry 2"),
        (ENTRY.format("a") + "most = 1", "the largest ratio"),
        (ENTRY.format("a") + "most = nan", "the largest ratio"),
    ],
)
def test_entries_that_are_none(text, words):
    with pytest.raises(ReportError) as caught:
        parsed(text)
    assert words in str(caught.value)


def test_the_base_is_where_a_branch_began_or_the_parent(repo):
    first, second = repo.commit("first"), repo.commit("second")
    repository = Repository(repo.folder)
    assert repository.base(repository.commit("HEAD")).hash == first
    repo.git("switch", "--quiet", "--create", "work")
    repo.commit("third")
    repo.commit("fourth")
    assert repository.base(repository.commit("HEAD")).hash == second
    with pytest.raises(ReportError, match="no parent"):
        repository.base(repository.commit(first))


def test_the_base_is_taken_from_the_first_main_branch_that_exists(repo):
    first, second, third = (repo.commit(name) for name in ("first", "second", "third"))
    repo.git("update-ref", "refs/remotes/origin/main", third)
    # Old local branches, as nobody has pulled or removed them.
    repo.git("branch", "master", first)
    repo.git("switch", "--quiet", "--detach", third)
    repo.git("branch", "--force", "main", first)
    repository = Repository(repo.folder)
    assert repository.base(repository.commit("HEAD")).hash == second


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
        with pytest.raises(ReportError, match="the clone is shallow"):
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
