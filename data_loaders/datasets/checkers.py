"""The checkers board: four by four cells of alternating classes, drawn from a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..content import Content, Part
from ..files import LocalFile
from ..parameters import Parameters, integers, real
from ..sources import Source

N_CELLS = 16
_MAX_POINTS = 10**8
DEFAULTS: Parameters = MappingProxyType({"n_train": 2000, "n_test": 2000, "seed": 0, "noise": 0.02})


def check_parameters(params: Mapping[str, object]) -> dict[str, int | float]:
    """All parameters, checked and in plain int and float; raises `DataError`.

    There are at least 16 points in each part (the counts of the 16 cells differ by at most one);
    ``noise`` is a standard deviation in cell widths.
    """
    sizes = (N_CELLS, _MAX_POINTS)
    checked = integers("checkers", params, n_train=sizes, n_test=sizes, seed=(0, math.inf))
    expected = "a finite number, 0 or more"
    noise = real("checkers", "noise", params["noise"], expected, lambda x: 0 <= x < math.inf)
    return {**checked, "noise": noise}


def read(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Generate float64 points of shape (n, 2) with labels -1 and +1.

    The test part depends on ``seed``, ``n_test`` and ``noise`` only, so training parts of several
    sizes share it.
    """
    seeds = np.random.SeedSequence(int(params["seed"])).spawn(2)
    noise = float(params["noise"])
    train, test = (
        _board(np.random.Generator(np.random.PCG64(seed)), int(params[size]), noise)
        for seed, size in zip(seeds, ("n_train", "n_test"), strict=True)
    )
    return Content(train, test)


def _board(generator: np.random.Generator, n: int, noise: float) -> Part:
    # SVM-KM's `checkers`: n / 16 uniform points in each unit cell of [-2, 2]^2. CUTS08 states
    # sigma = 0.02; the released generator ignores it. Here it moves points after labelling.
    cell = np.arange(n) % N_CELLS
    corner = np.stack((cell // 4, cell % 4), axis=1)
    y: NDArray[np.int8] = np.where(corner.sum(axis=1) % 2 == 0, 1, -1).astype(np.int8)
    X = corner - 2.0 + generator.random((n, 2))
    X += noise * generator.standard_normal((n, 2))
    # Cell by cell, the order of the rows would steer solvers that take points in turn.
    order = generator.permutation(n)
    return Part(X[order], y[order])


_CITATION = """@inproceedings{yu2008sampled,
  author = {Yu, Chun-Nam John and Joachims, Thorsten},
  title = {Training Structural {SVM}s with Kernels Using Sampled Cuts},
  booktitle = {Proceedings of the 14th ACM SIGKDD International Conference on Knowledge
    Discovery and Data Mining},
  year = {2008}
}"""

SOURCES = (
    Source(
        name="checkers",
        summary="points of a 4x4 checkers board in the plane, colour against colour",
        format="generator",
        split="two independent samples of one seed",
        read=read,
        parameters=DEFAULTS,
        check_parameters=check_parameters,
        licence="BSD-3-Clause (generated)",
        citation=_CITATION,
        # CUTS08 table 1 has sigma^2 = 0.05, read here as exp(-||x - z||^2 / sigma^2).
        default_gamma=20.0,
        default_C=1.0,
    ),
)
