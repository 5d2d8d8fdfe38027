"""Splits into a training and a test part that no random stream can change."""

from __future__ import annotations

import numpy as np

from .content import Content, Part
from .errors import DataError


def every(whole: Part, step: int, first: int) -> Content:
    """Rows `first`, `first` + `step`, ... are the test part, the others the training part.

    Parameters
    ----------
    whole : Part
    step : int
        At least 2.
    first : int
        The first row of the test part, from 0.

    Returns
    -------
    Content
    """
    test = np.arange(len(whole.y)) % step == first
    return Content(Part(whole.X[~test], whole.y[~test]), Part(whole.X[test], whole.y[test]))


def last(whole: Part, n_test: int, origin: str) -> Content:
    """The last rows are the test part, the others the training part; nothing is copied.

    Parameters
    ----------
    whole : Part
    n_test : int
        Rows of the test part.
    origin : str
        Where the rows come from, for the message.

    Returns
    -------
    Content

    Raises
    ------
    DataError
        If there are no rows left for the training part.
    """
    n_train = len(whole.y) - n_test
    if n_train < 1:
        raise DataError(
            f"{origin}: {len(whole.y)} rows, but the last {n_test} alone are the test part; "
            "the file is not complete"
        )
    return Content(
        Part(whole.X[:n_train], whole.y[:n_train]), Part(whole.X[n_train:], whole.y[n_train:])
    )
