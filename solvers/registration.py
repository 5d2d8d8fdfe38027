"""Which solvers and kernels there are: each is registered by its own file, found without an import.

>>> from marginbench.solvers import registry
>>> "SMO" in registry()
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

ClassT = TypeVar("ClassT", bound=type)

_HERE = Path(__file__).resolve().parent
#: The order in which the families are listed; later ones follow by name.
_FAMILIES = (
    *("smo", "sbp", "stochastic", "budget", "linear", "bundle", "approximate", "squared"),
    *("cuts", "feasibility", "peers"),
)


class Entry(NamedTuple):
    """A registered solver: its module, and the kinds of studies that it is for."""

    module: str
    kinds: tuple[str, ...]


class KernelEntry(NamedTuple):
    """A registered kernel: its module and its class."""

    module: str
    class_name: str


def register(*kinds: str) -> Callable[[ClassT], ClassT]:
    """Register a class as a reference solver; the topmost decorator of its class.

    Parameters
    ----------
    *kinds : str
        The kinds of studies that can name it: "svm", "feasibility". Written as strings in one line:
        the file is read for them, not run.
    """
    return lambda cls: cls


@cache
def entries() -> dict[str, Entry]:
    """The registered solvers by name, family by family."""
    return {name: Entry(module, kinds) for module, kinds, name in _registered("register")}


def register_kernel(name: str) -> Callable[[ClassT], ClassT]:
    """Register a class as the kernel of this name; the topmost decorator of its class.

    Parameters
    ----------
    name : str
        What estimators and study files call it. Written as a string in the same line: the file is
        read for it, not run.
    """

    def registered(cls: ClassT) -> ClassT:
        cls.name = name  # type: ignore[attr-defined]
        return cls

    return registered


@cache
def kernel_entries() -> dict[str, KernelEntry]:
    """The registered kernels by name."""
    found = _registered("register_kernel", "kernels")
    return dict(sorted((name, KernelEntry(module, cls)) for module, (name,), cls in found))


def _registered(decorator: str, folder: str = ".") -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The module, the decorator's words and the name of each class that has it on top."""
    decorated = re.compile(rf"^@{decorator}\(([^)]*)\)\n(?:@.*\n)*class (\w+)", re.MULTILINE)
    for file in sorted((_HERE / folder).rglob("*.py"), key=_place):
        for words, name in decorated.findall(file.read_text(encoding="utf-8")):
            parts = file.relative_to(_HERE).with_suffix("").parts
            yield ".".join(("marginbench.solvers", *parts)), tuple(words.split('"')[1::2]), name


def _place(file: Path) -> tuple[int, str]:
    family = file.relative_to(_HERE).parts[0]
    place = _FAMILIES.index(family) if family in _FAMILIES else len(_FAMILIES)
    return place, file.as_posix()


def solver_names(kind: str = "svm") -> list[str]:
    """The names of the reference solvers for a kind of studies; nothing is imported."""
    return [name for name, entry in entries().items() if kind in entry.kinds]


def registry(kind: str = "svm", *, missing: bool = False) -> dict[str, type[Any]]:
    """The classes of the reference solvers for a kind of studies, by name.

    Parameters
    ----------
    kind : {"svm", "feasibility"}
        Solvers of the soft-margin SVM, or methods that look for a separator.
    missing : bool, default=False
        Whether to list those as well that need a package which is not installed.
    """
    classes = {
        name: getattr(import_module(entries()[name].module), name) for name in solver_names(kind)
    }
    return {name: cls for name, cls in classes.items() if missing or not missing_package(cls)}


def missing_package(cls: type[Any]) -> str:
    """The package that a solver needs and that is not installed; empty if nothing is missing."""
    package: str = getattr(cls, "requires", "")
    try:
        return "" if not package or metadata.version(package) else package
    except metadata.PackageNotFoundError:
        return package


def required_module(cls: type[Any], module: str) -> Any:
    """A module of the package that a solver needs, imported by its first fit."""
    try:
        return import_module(module)
    except Exception as error:  # LIBLINEAR raises Exception where its library cannot be loaded
        raise ImportError(
            f"{cls.__name__} needs the package {cls.requires}, which cannot be imported here "
            f"({str(error).partition(chr(10))[0]}): pip install 'marginbench[peers]'"
        ) from error
