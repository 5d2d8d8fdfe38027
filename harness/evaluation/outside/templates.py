"""Names of solvers that are command lines, and the programs whose command lines are known."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

#: The name of a solver whose study gives its command lines.
COMMAND = "command"


@dataclass(frozen=True)
class Template:
    """The command lines of a known program.

    Attributes
    ----------
    summary : str
    install : str
        How to get the program.
    params : mapping
        As a study would give them; a study may give others in their place.
    """

    summary: str
    install: str
    params: Mapping[str, Any] = field(default_factory=dict)


TEMPLATES: Mapping[str, Template] = MappingProxyType(
    {
        "libsvm-tools": Template(
            summary="LIBSVM's programs svm-train and svm-predict",
            install="install LIBSVM's programs (on Debian: apt-get install libsvm-tools)",
            params={
                "train": "svm-train -s 0 {kernel} -c {C} -e {tol} -m {cache_size} -h {shrinking} "
                "{train} {model}",
                "predict": "svm-predict {test} {model} {output}",
                "kernels": {
                    "linear": "-t 0",
                    "poly": "-t 1 -d {degree} -g {gamma} -r {coef0}",
                    "rbf": "-t 2 -g {gamma}",
                },
                "model": "libsvm",
                "unfinished": "reaching max number of iterations",
                "tol": 1e-3,
                "cache_size": 200,
                "shrinking": 1,
            },
        )
    }
)


def command_names() -> list[str]:
    """What a study may call a solver that is a program."""
    return [COMMAND, *TEMPLATES]


def is_command(name: str) -> bool:
    """Whether a solver's name means a program: one of :func:`command_names`, or it in a folder."""
    folder, colon, last = name.rpartition(":")
    return last in command_names() and (not colon or os.path.isabs(folder))


def located_command(name: str, folder: str | Path | None = None) -> str:
    """The name with the folder from which its command lines name files: "/folder:command"."""
    place, _, last = name.rpartition(":")
    return f"{place or Path(folder or '.').absolute()}:{last}"


def taken_apart(name: str) -> tuple[str, Path]:
    """The name in :func:`command_names` and the folder of a program's name."""
    place, _, last = located_command(name).rpartition(":")
    return last, Path(place)
