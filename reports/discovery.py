"""Find what the modules of a package define: adding a section or a panel is adding a file."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


def members(package: str, base: type[T]) -> list[T]:
    """One instance of each public subclass of a base that a module of the package defines.

    Parameters
    ----------
    package : str
        Full name of the package; all modules directly in it are imported.
    base : type
        Its subclasses take no arguments.

    Returns
    -------
    list
        In the order of the modules' names, then of definition.
    """
    found = []
    for item in pkgutil.iter_modules(import_module(package).__path__):
        module = import_module(f"{package}.{item.name}")
        found += [
            value()
            for name, value in vars(module).items()
            if isinstance(value, type)
            and not name.startswith("_")
            and issubclass(value, base)
            and value.__module__ == module.__name__
        ]
    return found
