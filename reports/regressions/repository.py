"""A git repository: its commits, their order and subjects, and the files in them."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
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
        digest = self._hash(name)
        if not digest:
            raise ReportError(f"{visible(name)}: no commit of {self.root}")
        return self.described([digest])[digest]

    def described(self, commits: list[str]) -> dict[str, Commit]:
        """Commits by hash; of those that the repository lacks only the hash is known."""
        by_hash = {each: Commit(each) for each in commits}
        if present := self.ordered(commits):
            text = self._git("show", "--no-patch", "--format=%H%x00%s%x00%cs", *present)
            for line in text.split("\n"):
                commit = Commit(*map(visible, line.split("\0")))
                by_hash[commit.hash] = commit
        return by_hash

    def base(self, head: Commit) -> Commit:
        """Where the branch of a commit began; its parent, if it is on the main branch."""
        main = next(filter(None, map(self._hash, _MAIN)), None)
        base = self._try("merge-base", main, head.hash) if main else None
        # Without a common ancestor, as in a shallow clone, the parent would be a guess.
        if base == head.hash or not main:
            base = self._hash(f"{head.hash}^")
        if not base:
            raise ReportError(
                f"{head.short}: has no parent here, or no common ancestor with the main branch; "
                "give BASE, or in a shallow clone fetch its history"
            )
        return self.commit(base)

    def _hash(self, name: str) -> str | None:
        # A name that begins with a dash would be an option.
        words = ("rev-parse", "--verify", f"{name}^{{commit}}")
        return None if name.startswith("-") else self._try(*words)

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
        archive = folder.with_suffix(".tar")
        self._git("archive", f"--output={archive}", commit)
        with tarfile.open(archive) as files:
            # git is trusted; a Python without filters does without.
            files.extraction_filter = lambda member, path: member
            files.extractall(folder)
        archive.unlink()

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
        text, said = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
        if done.returncode:
            reason = re.sub(r"^(fatal|error): ", "", said.strip()).partition("\n")[0] or "failed"
            raise ReportError(f"{self._folder}: git {words[0]}: {visible(reason)}")
        return text.strip() if strip else text

    def _try(self, *words: str, strip: bool = True) -> str | None:
        """What git prints; None if it fails."""
        try:
            return self._git(*words, strip=strip)
        except ReportError:
            return None
