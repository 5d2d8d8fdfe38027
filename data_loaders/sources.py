"""Datasets by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from . import datasets
from .errors import DataError, suggest
from .source import Source

__all__ = ["Source", "find", "sources"]


@cache
def _by_name() -> Mapping[str, Source]:
    """Every module of :mod:`marginbench.data_loaders.datasets` adds what it has."""
    found: dict[str, Source] = {}
    for module in sorted(item.name for item in pkgutil.iter_modules(datasets.__path__)):
        loaded = importlib.import_module(f"{datasets.__name__}.{module}")
        found |= {source.name: source for source in loaded.SOURCES}
    return MappingProxyType(found)


def sources() -> tuple[Source, ...]:
    """Every dataset that can be loaded by name.

    Returns
    -------
    tuple of Source
        In the order of their modules.
    """
    return tuple(_by_name().values())


def find(name: str) -> Source:
    """The dataset of a name.

    Parameters
    ----------
    name : str

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If there is none; the message suggests the nearest name.
    """
    try:
        return _by_name()[name]
    except (KeyError, TypeError):
        raise DataError(f"unknown dataset {name!r}{suggest(name, _by_name())}") from None
