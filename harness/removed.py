"""Removed names, and what to use instead: each is answered with one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Commands such as "compact", and options such as "run --share" -> what to do instead.
COMMANDS: Mapping[str, str] = {
    "compact": "a results folder holds few files as it is",
    "publish --timings": "compare such files with pytest --benchmark-compare",
    "run --share": "several commands may run a study in one folder without it",
}
_AS_ESTIMATOR = "wrap a program in a classifier, as docs/outside-solvers.md shows"
#: Names of solvers -> what to do instead.
SOLVERS: Mapping[str, str] = {"command": _AS_ESTIMATOR, "libsvm-tools": _AS_ESTIMATOR}
#: Names of the package ``marginbench`` -> what to use instead.
NAMES: Mapping[str, str] = {
    "read_record": "use load_results(folder), or parse_record(line) for a line of a journal",
}


def replacement(arguments: Sequence[str]) -> str:
    """What to use instead of a removed name on a command line; empty if there is none."""
    words = [word.partition("=")[0] for word in arguments]
    for number, word in enumerate(words):
        for name in (word, f"{words[0]} {word}" if number else word):
            if name in COMMANDS:
                return f"{name} was removed; {COMMANDS[name]}"
    return ""
