"""Command lines of programs: read, checked, and filled in for a task."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....data_loaders import suggest
from ...errors import StudyError
from .templates import COMMAND, TEMPLATES

#: Keys of ``params`` that are no values for the command lines, with their types.
_KEYS: dict[str, type] = {
    "train": str, "predict": str, "kernels": dict, "model": str, "output": str, "unfinished": str,
}  # fmt: skip
#: Placeholders that the harness fills in, of the training and of the predicting command.
_OF_TASK = ("C", "gamma", "degree", "coef0", "kernel")
_OF_TRAINING = ("train", "model", "seed", *_OF_TASK)
_OF_PREDICTING = ("test", "model", "output")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Command:
    """A program as a solver.

    Attributes
    ----------
    train, predict : tuple of str
        Arguments with placeholders; the first one is the program. ``predict`` may be empty.
    kernels : mapping of str to tuple of str
        Name of a kernel -> the arguments for which "{kernel}" stands.
    model : {"", "libsvm"}
        The format of the model file, if the harness is to read it.
    output : {"labels", "scores"}
        What a line of the predictions holds.
    unfinished : str
        Words in what the program prints that say that it stopped early; empty for none.
    values : mapping
        Further values for placeholders.
    """

    train: tuple[str, ...]
    predict: tuple[str, ...] = ()
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    model: str = ""
    output: str = "labels"
    unfinished: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def lacks(self, kernel: Mapping[str, Any]) -> str:
        """Why the program cannot be run on a task with this kernel; empty if it can."""
        name = kernel["name"]
        if self.kernels and name not in self.kernels:
            return f"takes no kernel {name!r}"
        used = _placeholders([*self.train, *self.kernels.get(name, ())])
        missing = sorted(used.intersection(_OF_TASK).difference(kernel, ("C", "kernel")))
        return f"uses {', '.join(missing)}, which the kernel {name!r} has not" if missing else ""

    def training(self, kernel: Mapping[str, Any], **values: Any) -> list[str]:
        """The arguments of the training command on a task."""
        arguments: list[str] = []
        for argument in self.train:
            chosen = argument == "{kernel}" and self.kernels
            arguments += self.kernels[kernel["name"]] if chosen else [argument]
        return _filled(arguments, {**self.values, **kernel, "kernel": kernel["name"], **values})

    def predicting(self, **values: Any) -> list[str]:
        """The arguments of the predicting command."""
        return _filled(self.predict, {**self.values, **values})


def command_params(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a program: those of its template, and those that the study gives."""
    template = TEMPLATES.get(name)
    return {**(template.params if template else {}), **params}


def parsed_command(params: Mapping[str, Any], folder: Path, where: str) -> Command:
    """The command lines that parameters describe.

    Parameters
    ----------
    params : mapping
        Of :func:`command_params`.
    folder : Path
        Where files that they name are looked for.
    where : str
        How messages begin.

    Raises
    ------
    StudyError
        For a key that is missing or of another type, or an unknown placeholder.
    """
    for key, kind in _KEYS.items():
        if not isinstance(params.get(key, kind()), kind):
            raise StudyError(
                f"{where}: params.{key} = {params[key]!r}: must be a {_WORDS[kind.__name__]}"
            )
    if not params.get("train"):
        raise StudyError(f"{where}: give the training command in params.train")
    _check_choice(where, "model", params.get("model", ""), ("", "libsvm"))
    _check_choice(where, "output", params.get("output", "labels"), ("labels", "scores"))
    if not params.get("predict") and not params.get("model"):
        raise StudyError(
            f"{where}: give the predicting command in params.predict, or model = 'libsvm' if the "
            "training command writes a LIBSVM model"
        )
    command = Command(
        train=_split(where, "train", params["train"], folder),
        predict=_split(where, "predict", params.get("predict", ""), folder),
        kernels={
            name: _split(where, f"kernels.{name}", text, folder)
            for name, text in params.get("kernels", {}).items()
        },
        model=params.get("model", ""),
        output=params.get("output", "labels"),
        unfinished=params.get("unfinished", ""),
        values={name: value for name, value in params.items() if name not in _KEYS},
    )
    _check_placeholders(command, where)
    return command


def programs(command: Command) -> dict[str, str]:
    """The files that decide what the commands do: place and name -> SHA-256 of the content.

    These are the programs themselves, and scripts or other files among their arguments. A program
    that is not there has the hash "".
    """
    found: dict[str, str] = {}
    for line, arguments in (("train", command.train), ("predict", command.predict)):
        for place, argument in enumerate(arguments):
            path = Path(argument if place else executable(argument))
            if place == 0 or (path.is_absolute() and path.is_file()):
                # Their folder does not count.
                name = f"{line}[{place}] {Path(argument).name}"
                found[name] = _digest(path) if path.is_file() else ""
    return found


def missing_program(command: Command) -> str:
    """The first of its programs that cannot be started; empty if there is none."""
    lines = (command.train, command.predict)
    return next((line[0] for line in lines if line and not executable(line[0])), "")


def executable(program: str) -> str:
    """The path of a program by its name or path; empty if there is none."""
    return shutil.which(program) or ""


def install_words(name: str) -> str:
    """How to get the programs of a solver of this name."""
    template = TEMPLATES.get(name)
    return template.install if template else "install it, or write its path"


def summary_of(name: str, command: Command) -> str:
    """A line about it, for tables; what its time is made of is in it."""
    template = TEMPLATES.get(name)
    what = template.summary if template else f"The program {Path(command.train[0]).name}"
    return f"{what}; its time includes reading its input from a file"


def shown_name(name: str, command: Command) -> str:
    """What records call it."""
    return f"{COMMAND}:{Path(command.train[0]).name if name == COMMAND else name}"


_WORDS = {"str": "text", "dict": "table"}


def _check_choice(where: str, key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        names = [name for name in known if name]
        raise StudyError(
            f"{where}: params.{key} = {value!r} is not known{suggest(str(value), names)}"
        )


def _split(where: str, key: str, text: Any, folder: Path) -> tuple[str, ...]:
    """The arguments of a command line; files of the study's folder by their full paths."""
    if not isinstance(text, str):
        raise StudyError(f"{where}: params.{key} = {text!r}: must be a text")
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise StudyError(f"{where}: params.{key} = {text!r}: {error}") from None
    return tuple(_located(argument, folder) for argument in arguments)


def _located(argument: str, folder: Path) -> str:
    # A bare word is a program or a value, even if a file happens to have its name.
    is_path = os.sep in argument or "." in argument
    path = folder / os.path.expanduser(argument)
    return (
        str(path) if is_path and not _PLACEHOLDER.search(argument) and path.is_file() else argument
    )


def _check_placeholders(command: Command, where: str) -> None:
    own = set(command.values)
    for name, value in command.values.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise StudyError(f"{where}: params.{name} = {value!r}: must be a number or a text")
    lines = {
        "train": (command.train, _OF_TRAINING),
        "predict": (command.predict, _OF_PREDICTING),
        **{f"kernels.{name}": (line, _OF_TASK) for name, line in command.kernels.items()},
    }
    used: set[str] = set()
    for key, (line, known) in lines.items():
        names = _placeholders(line)
        for name in sorted(names - own - set(known)):
            raise StudyError(
                f"{where}: params.{key}: {{{name}}} is not known{suggest(name, [*known, *own])}"
            )
        used |= names
    for name in sorted(own - used - {"tol"}):
        raise StudyError(
            f"{where}: params.{name}: no command line has {{{name}}}{suggest(name, sorted(used))}"
        )


def _placeholders(arguments: Iterable[str]) -> set[str]:
    return {name for argument in arguments for name in _PLACEHOLDER.findall(argument)}


def _filled(arguments: Iterable[str], values: Mapping[str, Any]) -> list[str]:
    """Each argument with the values in the places of their names; one stays one."""
    return [
        _PLACEHOLDER.sub(lambda found: _text(values[found[1]]), argument) for argument in arguments
    ]


def _text(value: Any) -> str:
    return repr(float(value)) if isinstance(value, float) else str(value)


def _digest(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
