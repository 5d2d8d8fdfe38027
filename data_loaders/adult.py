"""A part of Adult's training points, as some papers train on it."""

from __future__ import annotations

import numpy as np

from marginbench.data_loaders.content import Content, Part
from marginbench.data_loaders.errors import DataError
from marginbench.data_loaders.parameters import Parameters
from marginbench.data_loaders.transforms import as_float32

#: What the sample is tested on: the rows that were not drawn, or all rows, drawn ones included.
TESTS = ("rest", "all")
#: CUTS08 section 6.1.
N_TRAIN = 22_697


def sample(content: Content, params: Parameters) -> Content:
    """N_TRAIN rows of the training part, drawn by a fixed seed, and what ``params["test"]`` says.

    The published test part is not used: Yu and Joachims (2008) count 32 562 points in all, and do
    not say whether those that they trained on are among the ones that they tested on.

    Parameters
    ----------
    content : Content
    params : mapping
        ``test`` is one of `TESTS`.

    Raises
    ------
    DataError
        If there are fewer training points.
    """
    whole = as_float32(content, params).train
    if len(whole.y) <= N_TRAIN:
        raise DataError(f"adult-sample: {len(whole.y)} rows in a9a, more than {N_TRAIN} expected")
    order = np.random.Generator(np.random.PCG64(2008)).permutation(len(whole.y))
    drawn, rest = np.sort(order[:N_TRAIN]), np.sort(order[N_TRAIN:])
    test = whole if params["test"] == "all" else Part(whole.X[rest], whole.y[rest])
    return Content(Part(whole.X[drawn], whole.y[drawn]), test)
