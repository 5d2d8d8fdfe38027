"""The registered datasets: their names, where they come from, how they are read and made.

The registered datasets stand in `datasets.toml`. Their readers are imported when they read.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import DataError, suggest
from .files import MIB, LocalFile, RemoteFile
from .parameters import Checker, Parameters, Value, check

if TYPE_CHECKING:
    from .content import Content

#: Public sites that datasets are fetched from, by what `datasets.toml` calls them.
SITES = {
    "libsvm": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/",
    "tick": "https://raw.githubusercontent.com/X-DataInitiative/tick-datasets/master/binary/",
    "uci": "https://archive.ics.uci.edu/ml/machine-learning-databases/",
    "figshare": "https://ndownloader.figshare.com/files/",
    "ossci": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "cvdf": "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "fashion": "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
}

Reader: TypeAlias = "Callable[[Mapping[str, LocalFile], Parameters], Content]"
Transform: TypeAlias = "Callable[[Content, Parameters], Content]"


def unchanged(content: Content, params: Parameters) -> Content:
    """The raw content itself."""
    return content


def _no_parameters(params: Mapping[str, object]) -> Parameters:
    return {}


@dataclass(frozen=True, eq=False)
class Source:
    """Where a dataset comes from and how it is made.

    Parameters
    ----------
    name : str
        Lower-case letters, digits, hyphens and underscores.
    summary : str
        One line: what is to be told apart, from what.
    format : str
        What is read: "scikit-learn", "generator", "LIBSVM text", ...
    split : str
        How the training and the test part were chosen.
    read : callable
        ``(files, params) -> Content``: parse or generate the raw content, split.
    licence : str
    citation : str
        BibTeX.
    files : tuple of RemoteFile
        What to fetch; empty if nothing is.
    transform : callable
        ``(content, params) -> Content``: from the raw content to the one that solvers see.
    transform_version : int
        To be raised with every change of `transform`, or of a generator: older cached files are
        then made anew.
    fingerprint : str, optional
        Of the raw content; None if that depends on parameters or is not pinned yet.
    parameters : mapping
        The parameters with their defaults; empty if there are none.
    check_parameters : callable
        ``params -> dict``: all parameters, checked and in plain int, float and str.
    mirror_folder : str, optional
        The folder of the files in a mirror; by default `name`.
    default_gamma : float or None
        A task to start from: the RBF kernel exp(-gamma ||x - z||^2). None: 1 / (d var(X)) of the
        training part, once it is loaded.
    default_C : float
        C as in 1/2 ||w||^2 + C sum hinge.
    """

    name: str
    summary: str
    format: str
    split: str
    read: Reader
    licence: str
    citation: str
    default_gamma: float | None = None
    default_C: float = 1.0
    files: tuple[RemoteFile, ...] = ()
    transform: Transform = unchanged
    transform_version: int = 1
    fingerprint: str | None = None
    parameters: Parameters = field(default_factory=dict)
    check_parameters: Checker = _no_parameters
    mirror_folder: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", self.name):
            raise DataError(
                f"dataset name {self.name!r}: use lower-case letters, digits, hyphens and "
                "underscores"
            )

    def resolve(self, params: Mapping[str, object] | None) -> dict[str, Value]:
        """Every parameter of the dataset: the given values, checked, and defaults.

        Raises `DataError` if a parameter is unknown or its value is not valid.
        """
        values = dict(params or {})
        for key, value in values.items():
            if isinstance(value, int) and abs(value) >= 2**63:
                # Python does not even print some of them.
                raise DataError(f"{self.name}: {key} is a number of more than 64 bits")
            if not self.parameters:
                raise DataError(f"{self.name}: takes no parameters, got {key!r}")
            if key not in self.parameters:
                raise DataError(
                    f"{self.name}: unknown parameter {key!r}{suggest(key, self.parameters)}"
                )
        checked = self.check_parameters({**self.parameters, **values})
        return {key: checked[key] for key in self.parameters}


@cache
def _registered() -> Mapping[str, Source]:
    entries = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text("utf-8"))
    return MappingProxyType({name: _source(name, entries) for name in sorted(entries)})


def _source(name: str, entries: Mapping[str, dict[str, Any]]) -> Source:
    """The source that an entry of `datasets.toml` describes."""
    about = entries[name]
    about = {**entries.get(about.get("like", ""), {}), **about}
    about.pop("like", None)
    hashes, archive = about.pop("sha256", {}), about.pop("archive", None)
    folder, limit = about.pop("installed", ""), about.pop("mib", 0) * MIB
    about["files"] = tuple(
        RemoteFile(
            file,
            tuple(_url(address, file) for address in addresses),
            hashes.get(file),
            archive,
            f"{folder}/{file}" if folder else None,
            limit,
        )
        for file, addresses in about.get("files", {}).items()
    )
    for key in about.keys() & {"read", "transform"}:
        function, *arguments = about[key]
        about[key] = partial(_imported, function, **dict(*arguments))
    allowed, bounds = about.pop("allowed", {}), about.pop("bounds", {})
    about["check_parameters"] = partial(check, name, allowed, bounds)
    about["citation"] = about["citation"].strip()
    return Source(name, **about)


def _url(address: str, file: str) -> str:
    site, _, path = address.partition(":")
    url = SITES[site] + path if site in SITES else address
    return url + file if url.endswith("/") else url


def _imported(function: str, /, *arguments: Any, **options: Any) -> Any:
    """Call "module.function" of this package."""
    module, _, name = function.partition(".")
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)(*arguments, **options)


def sources() -> tuple[Source, ...]:
    """Every dataset that can be loaded by name, in the order of the names."""
    return tuple(_registered().values())


def find(name: str) -> Source:
    """The dataset of a name; `DataError` suggests the nearest name if there is none."""
    try:
        return _registered()[name]
    except (KeyError, TypeError):
        raise DataError(unknown(name, _registered())) from None


def unknown(name: object, names: Iterable[str]) -> str:
    """The message about a name that none of the datasets of these names has."""
    return f"unknown dataset {name!r}{suggest(str(name), names)}"
