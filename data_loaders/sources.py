"""The datasets that can be loaded: one entry of a table each.

A new dataset is one entry, and one reader if its format is new. A reader is a function
``read(files, params) -> Content`` that parses local files (or generates) and splits; what it
returns is the raw content, whose fingerprint is pinned here. A transform then makes the content
that solvers see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from data_loaders import checkers, embedded, libsvm
from data_loaders.content import Content, Part
from data_loaders.errors import DataError, suggest
from data_loaders.files import LocalFile, RemoteFile

Parameters: TypeAlias = Mapping[str, int | float]
Reader: TypeAlias = Callable[[Mapping[str, LocalFile], Parameters], Content]


def _unchanged(content: Content) -> Content:
    return content


def _no_check(params: Mapping[str, object]) -> dict[str, int | float]:
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
        ``Content -> Content``: from the raw content to the one that solvers see.
    transform_version : int
        To be raised with every change of `transform`, or of a generator: older cached files are
        then made anew.
    fingerprint : str, optional
        Of the raw content; None if it depends on parameters.
    parameters : mapping
        The parameters of a generator with their defaults; empty for anything else.
    check_parameters : callable
        ``params -> dict``: all parameters, checked and in plain int and float.
    default_gamma, default_C : float
        A task to start from: the RBF kernel exp(-gamma ||x - z||^2), C as in
        1/2 ||w||^2 + C sum hinge.
    """

    name: str
    summary: str
    format: str
    split: str
    read: Reader
    licence: str
    citation: str
    default_gamma: float
    default_C: float
    files: tuple[RemoteFile, ...] = ()
    transform: Callable[[Content], Content] = _unchanged
    transform_version: int = 1
    fingerprint: str | None = None
    parameters: Parameters = field(default_factory=dict)
    check_parameters: Callable[[Mapping[str, object]], dict[str, int | float]] = _no_check

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", self.name):
            raise DataError(
                f"dataset name {self.name!r}: use lower-case letters, digits, hyphens and "
                "underscores"
            )

    def resolve(self, params: Mapping[str, object] | None) -> dict[str, int | float]:
        """Every parameter of the dataset: the given values, checked, and defaults.

        Parameters
        ----------
        params : mapping or None
            Some of the parameters.

        Returns
        -------
        dict
            Empty if the dataset is not a generator.

        Raises
        ------
        DataError
            If a parameter is unknown or its value is not valid.
        """
        given = dict(params or {})
        for key in given:
            if not self.parameters:
                raise DataError(f"{self.name}: takes no parameters, got {key!r}")
            if key not in self.parameters:
                raise DataError(
                    f"{self.name}: unknown parameter {key!r}{suggest(key, self.parameters)}"
                )
        return self.check_parameters({**self.parameters, **given})


def _as_float32(content: Content) -> Content:
    """Values as float32, labels as int8: both exact for features that are 0 or 1."""
    train, test = (
        Part(part.X.astype(np.float32), part.y.astype(np.int8)) for _, part in content.parts()
    )
    return Content(train, test)


_LIBSVM_SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"

_TABLE = (
    Source(
        name="digits",
        summary="handwritten digits of 8x8 pixels, eight against the rest",
        format="scikit-learn",
        split="every third row is the test part",
        read=embedded.read_digits,
        transform=embedded.eight_against_rest,
        fingerprint="ea7295ec9e77303841c43cc81de1b72597e6c73f000d06753f6e689ff5b0c3bf",
        licence="CC BY 4.0",
        citation="""@misc{alpaydin1998digits,
  author = {Alpaydin, Ethem and Kaynak, Cenk},
  title = {Optical Recognition of Handwritten Digits},
  year = {1998},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C50P49}
}""",
        default_gamma=0.02,
        default_C=10.0,
    ),
    Source(
        name="breast-cancer",
        summary="cell nuclei of breast masses (Wisconsin, diagnostic), benign against malignant",
        format="scikit-learn",
        split="every third row is the test part",
        read=embedded.read_breast_cancer,
        transform=embedded.standardised,
        fingerprint="c191c4f2093673a3980553b41e973e864770c97f9b7a1844ae7bd80068a1e483",
        licence="CC BY 4.0",
        citation="""@misc{wolberg1993breast,
  author = {Wolberg, William H. and Mangasarian, Olvi L. and Street, W. Nick},
  title = {Breast Cancer Wisconsin (Diagnostic)},
  year = {1993},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C5DW2B}
}""",
        default_gamma=0.03,
        default_C=10.0,
    ),
    Source(
        name="checkers",
        summary="points of a 4x4 checkers board in the plane, colour against colour",
        format="generator",
        split="two independent samples of one seed",
        read=checkers.read,
        parameters=checkers.DEFAULTS,
        check_parameters=checkers.check_parameters,
        licence="BSD-3-Clause (generated)",
        citation="""@inproceedings{yu2008sampled,
  author = {Yu, Chun-Nam John and Joachims, Thorsten},
  title = {Training Structural {SVM}s with Kernels Using Sampled Cuts},
  booktitle = {Proceedings of the 14th ACM SIGKDD International Conference on Knowledge
    Discovery and Data Mining},
  year = {2008}
}""",
        # CUTS08 table 1 has sigma^2 = 0.05, read here as exp(-||x - z||^2 / sigma^2).
        default_gamma=20.0,
        default_C=1.0,
    ),
    Source(
        name="adult",
        summary="census records as 123 binary features, income over 50 000 dollars or not",
        format="LIBSVM text",
        split="as published: a9a and a9a.t",
        files=tuple(RemoteFile(name, (f"{_LIBSVM_SITE}/{name}",)) for name in ("a9a", "a9a.t")),
        # The test file stops at feature 122.
        read=partial(libsvm.read_pair, train="a9a", test="a9a.t", width=123, classes=(-1, 1)),
        transform=_as_float32,
        fingerprint="8bcc25a134f472406ab7b57eac8e51c533384849ad40cbd2a01994d2dd8551c3",
        licence="CC BY 4.0",
        citation="""@misc{becker1996adult,
  author = {Becker, Barry and Kohavi, Ronny},
  title = {Adult},
  year = {1996},
  howpublished = {UCI Machine Learning Repository; binary features of the {LIBSVM} data page},
  doi = {10.24432/C5XW20}
}""",
        # SBP12 table 2, without bias.
        default_gamma=0.05,
        default_C=1.0,
    ),
)
_BY_NAME: Mapping[str, Source] = MappingProxyType({source.name: source for source in _TABLE})


def sources() -> tuple[Source, ...]:
    """Every dataset that can be loaded by name.

    Returns
    -------
    tuple of Source
        In the order of the table.
    """
    return _TABLE


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
