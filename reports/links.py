"""What a page offers beside a figure: its numbers, and the command that makes it again."""

from __future__ import annotations

import base64
import shlex
from itertools import zip_longest

import pandas as pd

# Bytes of a link. Larger numbers stay out of the page, which says how to export them.
_LARGEST = 20_000


def csv_link(data: pd.DataFrame) -> str:
    """The numbers of a figure as a link that holds them as CSV; empty if they are too many."""
    # Each number is at least a digit and a comma: most large frames need not be written.
    if 2 * data.size > _LARGEST:
        return ""
    text = data.to_csv(index=False, lineterminator="\n").encode()
    link = f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text).decode()}"
    return link if len(link) <= _LARGEST else ""


def results_argument(command: str, study: str) -> str:
    """The results folder for a command line, quoted: where the command that made them put them.

    Parameters
    ----------
    command : str
        Of ``marginbench run``.
    study : str
        Its name; without ``--out`` results are in ``results/NAME``.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word == "--out" and following:
            return shlex.quote(following)
        if word.startswith("--out="):
            return shlex.quote(word.removeprefix("--out="))
    return shlex.quote(f"results/{study}")
