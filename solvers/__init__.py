"""Reference solvers, kernels, the counting oracle, models and objectives.

A name is imported when it is first asked for: a registered solver or kernel from the file that
registers it (:mod:`marginbench.solvers.registration`), every other name as ``__init__.pyi`` says.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import lazy_loader

from .registration import entries, kernel_entries

_stub_getattr, _, _stub_names = lazy_loader.attach_stub(__name__, __file__)

_homes = {name: entry.module for name, entry in entries().items()}
_homes |= {entry.class_name: entry.module for entry in kernel_entries().values()}

__all__ = sorted({*_stub_names, *_homes})


def __getattr__(name: str) -> Any:
    if name in _homes:
        return getattr(import_module(_homes[name]), name)
    return _stub_getattr(name)


def __dir__() -> list[str]:
    return __all__
