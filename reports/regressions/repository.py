"""A git repository: its commits, their order and subjects, and the files in them."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ...harness.words import visible
from ..errors import ReportError

#: Branches that others come from, the first that exists.
_MAIN = ("origin/main", "origin/master", "main", "master")
_SHORT = 10


@dataclass(frozen=True)
class Commit:
    """A commit; without the repository at hand it has a hash alone."""

    hash: str
    subject: str = ""
    date: str = ""  # the day, year first

    @property
    def short(self) -> str:
        """The first letters of the hash."""
        return self.hash[:_SHORT]


class Repository:
    """The git repository around a folder, read only; a ReportError if there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.root = Path(self._git("rev-parse", "--show-toplevel"))

    def commit(self, name: str) -> Commit:
        """The commit of a name."""
        # A name that begins with a dash would be an option.
        digest = (
            "" if name.startswith("-") else self._try("rev-parse", "--verify", f"{name}^{{commit}}")
        )
        if not digest:
            shallow = self._try("rev-parse", "--is-shallow-repository") == "true"
            hint = "; the clone is shallow: fetch its history" if shallow else ""
            raise ReportError(f"{visible(name)}: no commit of {self.root}{hint}")
        return self._described(digest)

    def _described(self, commit: str) -> Commit:
        text = self._git("show", "--no-patch", "--format=%H%x00%s%x00%cs", commit)
        return Commit(*(visible(part) for part in text.split("\0")))

    def described(self, commits: list[str]) -> dict[str, Commit]:
        """Commits by hash; of those that the repository lacks only the hash is known."""
        by_hash = {each: Commit(each) for each in commits}
        for each in self.ordered(commits):
            by_hash[each] = self._described(each)
        return by_hash

    def base(self, head: Commit) -> Commit:
        """Where the branch of a commit began; its parent, if it is on the main branch."""
        shallow = self._try("rev-parse", "--is-shallow-repository") == "true"
        hint = "; the clone is shallow: fetch its history, or give BASE" if shallow else ""
        hashes = (self._try("rev-parse", "--verify", f"{name}^{{commit}}") for name in _MAIN)
        main = next(filter(None, hashes), None)
        base = self._try("merge-base", main, head.hash) if main else None
        if base and base != head.hash:
            return self._described(base)
        if main and not base and shallow:
            raise ReportError(f"{head.short}: has no common ancestor with the main branch{hint}")
        parent = self._try("rev-parse", "--verify", f"{head.hash}^")
        if not parent:
            hint = hint or "; give BASE"
            raise ReportError(f"{head.short}: has no parent to compare with{hint}")
        return self._described(parent)

    def ordered(self, commits: list[str]) -> list[str]:
        """The commits that the repository has, each after those that it is built on."""
        present = [each for each in commits if self._try("cat-file", "-t", each) == "commit"]
        if not present:
            return []
        text = self._git("rev-list", "--topo-order", "--reverse", *present)
        wanted = set(present)
        return [each for each in text.split() if each in wanted]

    def line(self, commit: str) -> list[str]:
        """A commit and its first parents, the newest first."""
        return self._git("rev-list", "--first-parent", commit).split()

    def between(self, base: str, head: str) -> frozenset[str]:
        """The commits that are in the history of the second one and not of the first."""
        return frozenset(self._git("rev-list", f"{base}..{head}").split())

    def file(self, commit: str, path: str) -> str | None:
        """A file of a commit, as text; None if it has none."""
        return self._try("show", f"{commit}:{path}", strip=False)

    def tree(self, commit: str, path: str) -> str:
        """The hash of a file or folder of a commit; empty if it has none."""
        return self._try("rev-parse", "--verify", "--quiet", f"{commit}:{path}") or ""

    def export(self, commit: str, folder: Path) -> None:
        """Write the files of a commit into a folder that exists."""
        done = subprocess.run(
            ["git", "-C", str(self._folder), "archive", "--format=tar", commit],
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            unpacked = subprocess.run(
                ["tar", "-x", "-C", str(folder)],
                input=done.stdout,
                capture_output=True,
                check=False,
            )
            if unpacked.returncode == 0:
                return
            done = unpacked
        raise ReportError(f"{commit[:_SHORT]}: cannot be written out ({_words(done.stderr)})")

    @property
    def changed(self) -> bool:
        """Whether tracked files differ from the current commit."""
        return bool(self._git("status", "--porcelain", "--untracked-files=no"))

    def _git(self, *words: str, strip: bool = True) -> str:
        try:
            done = subprocess.run(
                ["git", "-C", str(self._folder), *words],
                capture_output=True,
                check=False,
                env={**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
            )
        except OSError as error:
            raise ReportError(f"git: cannot be started ({error}); install it") from error
        if done.returncode:
            raise ReportError(f"{self._folder}: git {words[0]}: {_words(done.stderr)}")
        text = done.stdout.decode("utf-8", "replace")
        return text.strip() if strip else text

    def _try(self, *words: str, strip: bool = True) -> str | None:
        """What git prints; None if it fails."""
        try:
            return self._git(*words, strip=strip)
        except ReportError:
            return None


def _words(stderr: bytes) -> str:
    text = re.sub(r"^(fatal|error): ", "", stderr.decode("utf-8", "replace").strip())
    return visible(text.partition("\n")[0]) or "failed"
