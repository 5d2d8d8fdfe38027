"""SUSY: simulated particle collisions."""

from __future__ import annotations

from functools import partial

from .. import csv_text, transforms
from ..files import MIB, RemoteFile
from ..parameters import one_of
from ..sources import UCI_SITE, Source

_CITATION = """@article{baldi2014searching,
  author = {Baldi, Pierre and Sadowski, Peter and Whiteson, Daniel},
  title = {Searching for Exotic Particles in High-Energy Physics with Deep Learning},
  journal = {Nature Communications},
  volume = {5},
  number = {4308},
  year = {2014},
  doi = {10.1038/ncomms5308}
}"""

SOURCES = (
    Source(
        name="susy",
        summary="simulated particle collisions by 18 measurements, new particles or background",
        format="CSV",
        split="the last 500000 rows are the test part, as its publishers have it",
        files=(
            RemoteFile("SUSY.csv.gz", (f"{UCI_SITE}/00279/SUSY.csv.gz",), max_bytes=4096 * MIB),
        ),
        read=partial(
            csv_text.read,
            name="SUSY.csv.gz",
            width=18,
            classes=(0, 1),
            label="first",
            split=partial(transforms.last, n_test=500_000),
        ),
        transform=partial(transforms.tabular, positive=1),
        parameters={"scale": "none"},
        check_parameters=one_of("susy", scale=transforms.SCALES),
        licence="CC BY 4.0",
        citation=_CITATION,
        # BSCA18 table 1, which does not state the scale.
        default_gamma=2.0**-7,
        default_C=32.0,
    ),
)
