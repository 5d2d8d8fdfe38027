"""Import scikit-learn in half the time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

# scikit-learn imports them at once and hardly ever uses them.
_LATER = ("pandas", "scipy.stats")


@contextlib.contextmanager
def scientific_imports() -> Iterator[None]:
    """In this block some large packages are imported only when they are first used."""
    later = {name: _Later(name) for name in _LATER if name not in sys.modules}
    sys.modules |= later
    try:
        yield
    finally:
        for name, module in later.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


class _Later(ModuleType):
    """A module that is imported when it is first used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)
