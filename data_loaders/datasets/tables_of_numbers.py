"""Tables of numbers: Covertype, a sample of it, and SUSY."""

from __future__ import annotations

from functools import partial

from .. import csv_text, transforms
from ..content import Content, Part
from ..files import MIB, RemoteFile
from ..parameters import one_of
from ..sources import FIGSHARE, UCI_SITE, Source


def _every_row(whole: Part, origin: str, step: int, first: int) -> Content:
    return transforms.every(whole, step, first)


_COVERTYPE = """@misc{blackard1998covertype,
  author = {Blackard, Jock A.},
  title = {Covertype},
  year = {1998},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C50K5N}
}"""

SOURCES = (
    Source(
        name="covtype",
        summary="forest cells by 54 map features, lodgepole pine (or another cover) or not",
        format="CSV",
        # The counts of SBP12. Rows are sorted by region: the last tenth would be another forest.
        split="rows 1, 11, 21, ... are the test part: 522910 and 58102 rows",
        files=(
            RemoteFile(
                "covtype.data.gz",
                (f"{UCI_SITE}/covtype/covtype.data.gz", f"{FIGSHARE}/5976039"),
                # As scikit-learn has it.
                sha256="614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
                max_bytes=256 * MIB,
            ),
        ),
        read=partial(
            csv_text.read,
            name="covtype.data.gz",
            width=54,
            classes=tuple(range(1, 8)),
            label="last",
            split=partial(_every_row, step=10, first=0),
        ),
        transform=transforms.tabular,
        parameters={"positive": 2, "scale": "unit"},
        check_parameters=one_of(
            "covtype", positive=(*range(1, 8), "none"), scale=transforms.SCALES
        ),
        licence="CC BY 4.0",
        citation=_COVERTYPE,
        # BSCA18 table 1, which does not state the scale.
        default_gamma=0.125,
        default_C=128.0,
    ),
    Source(
        name="covtype-sample",
        summary="a 3.7 % sample of forest cells by 54 map features, in two classes",
        format="CSV",
        split="every third row is the test part",
        files=(RemoteFile("covtype_union_binary_raw.csv", (), max_bytes=16 * MIB),),
        mirror_folder="covtype_sample",
        read=partial(
            csv_text.read,
            name="covtype_union_binary_raw.csv",
            width=54,
            classes=(-1, 1),
            label="first",
            split=partial(_every_row, step=3, first=2),
        ),
        transform=transforms.tabular,
        parameters={"scale": "unit"},
        check_parameters=one_of("covtype-sample", scale=transforms.SCALES),
        fingerprint="3a4d061aee29c1eb798123c1690ab0df639d343d0ae202b5c22753e66781542a",
        licence="CC BY 4.0",
        citation=_COVERTYPE,
        default_gamma=8.0,
        default_C=8.0,
    ),
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
        citation="""@article{baldi2014searching,
  author = {Baldi, Pierre and Sadowski, Peter and Whiteson, Daniel},
  title = {Searching for Exotic Particles in High-Energy Physics with Deep Learning},
  journal = {Nature Communications},
  volume = {5},
  number = {4308},
  year = {2014},
  doi = {10.1038/ncomms5308}
}""",
        # BSCA18 table 1, which does not state the scale.
        default_gamma=2.0**-7,
        default_C=32.0,
    ),
)
