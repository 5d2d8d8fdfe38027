"""Datasets by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from marginbench.data_loaders.errors import DataError, suggest
from marginbench.data_loaders.source import Source
from marginbench.data_loaders.table import TABLE

__all__ = ["Source", "find", "sources"]

_BY_NAME: Mapping[str, Source] = MappingProxyType({source.name: source for source in TABLE})


def sources() -> tuple[Source, ...]:
    """Every dataset that can be loaded by name.

    Returns
    -------
    tuple of Source
        In the order of the table.
    """
    return TABLE


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
        return _BY_NAME[name]
    except (KeyError, TypeError):
        raise DataError(f"unknown dataset {name!r}{suggest(name, _BY_NAME)}") from None
