"""Datasets in the format of LIBSVM, most of them from its data page, and of its relatives.

SVM-light's files have comments; SVMlin's have points and labels in two files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from .. import libsvm, transforms
from ..content import Content, Part, check_classes
from ..errors import DataError
from ..files import MIB, LocalFile, RemoteFile
from ..parameters import Parameters, one_of
from ..sources import LIBSVM_SITE, TICK_SITE, Source
from ..transforms import as_float32

#: What the sample of adult is tested on: the rows that were not drawn, or all rows, drawn ones
#: included.
TESTS = ("rest", "all")
#: CUTS08 section 6.1.
N_TRAIN = 22_697
POINTS, LABELS = "aut-avn.examples", "aut-avn.labels"
#: BMRM07 table 1.
AUT_AVN_WIDTH = 20_707


def sample(content: Content, params: Parameters) -> Content:
    """N_TRAIN rows of the training part, drawn by a fixed seed, and what ``params["test"]`` says.

    The published test part is not used: Yu and Joachims (2008) count 32 562 points in all, and do
    not say whether those that they trained on are among the ones that they tested on.
    """
    whole = as_float32(content, params).train
    if len(whole.y) <= N_TRAIN:
        raise DataError(f"adult-sample: {len(whole.y)} rows in a9a, more than {N_TRAIN} expected")
    order = np.random.Generator(np.random.PCG64(2008)).permutation(len(whole.y))
    drawn, rest = np.sort(order[:N_TRAIN]), np.sort(order[N_TRAIN:])
    test = whole if params["test"] == "all" else Part(whole.X[rest], whole.y[rest])
    return Content(Part(whole.X[drawn], whole.y[drawn]), test)


def read_svmlin(files: Mapping[str, LocalFile], params: Parameters) -> Content:
    """Read the points and their labels; every fifth row is the test part.

    `POINTS` has lines of ``index:value`` pairs, and `LABELS` lines of a label each.
    """
    X = libsvm.read_rows([files[POINTS]], AUT_AVN_WIDTH, labelled=False).X
    # A label alone is a point without pairs.
    y = libsvm.read_rows([files[LABELS]], 1, (-1, 1)).y
    if len(y) != X.shape[0]:
        raise DataError(
            f"{files[LABELS].origin}: {len(y)} labels for the {X.shape[0]} points of "
            f"{files[POINTS].origin}; one of the files is not complete"
        )
    check_classes(y, files[LABELS].origin)
    return transforms.every(Part(X, y), 5, first=4)


def _source(width: int, files: Mapping[str, tuple[str, ...]], mib: int, /, **about: Any) -> Source:
    """A source of a training and a test file, by their addresses, with labels -1 and +1."""
    train, test = files
    remote = tuple(RemoteFile(name, urls, max_bytes=mib * MIB) for name, urls in files.items())
    read = partial(libsvm.read_pair, train=train, test=test, width=width, classes=(-1, 1))
    defaults: dict[str, Any] = {
        "format": "LIBSVM text",
        "files": remote,
        "read": read,
        "transform": as_float32,
    }
    return Source(**defaults | about)


def _page(*names: str) -> dict[str, tuple[str, ...]]:
    """Files of LIBSVM's data page."""
    return {name: (f"{LIBSVM_SITE}/{name}",) for name in names}


#: Exact as float32: features are 0 or 1. The test file stops at feature 122.
_adult = partial(
    _source,
    123,
    _page("a9a", "a9a.t"),
    16,
    fingerprint="8bcc25a134f472406ab7b57eac8e51c533384849ad40cbd2a01994d2dd8551c3",
    licence="CC BY 4.0",
    citation="""@misc{becker1996adult,
  author = {Becker, Barry and Kohavi, Ronny},
  title = {Adult},
  year = {1996},
  howpublished = {UCI Machine Learning Repository; binary features of the {LIBSVM} data page},
  doi = {10.24432/C5XW20}
}""",
)

SOURCES = (
    _adult(
        name="adult",
        summary="census records as 123 binary features, income over 50 000 dollars or not",
        split="as published: a9a and a9a.t",
        # SBP12 table 2, without bias.
        default_gamma=0.05,
    ),
    _adult(
        name="adult-sample",
        summary="22 697 census records of the training part of adult, tested on its other rows",
        split="22 697 rows of a9a drawn once; tested on the others, or on all of a9a",
        mirror_folder="adult",
        transform=sample,
        parameters={"test": "rest"},
        check_parameters=one_of("adult-sample", test=TESTS),
        # CUTS08 table 1 has sigma^2 = 20, read here as exp(-||x - z||^2 / sigma^2).
        default_gamma=0.05,
        default_C=100.0,
    ),
    _source(
        99_757,  # BMRM07 table 1
        {"train.dat": (), "test.dat": ()},
        512,
        name="astro-ph",
        summary="abstracts of physics papers by words, from the section astro-ph or not",
        format="SVM-light text",
        split="as its publisher has it: train.dat and test.dat",
        licence="not stated",
        citation="""@inproceedings{joachims2006training,
  author = {Joachims, Thorsten},
  title = {Training Linear {SVM}s in Linear Time},
  booktitle = {Proceedings of the 12th ACM SIGKDD International Conference on Knowledge
    Discovery and Data Mining},
  year = {2006}
}""",
        default_gamma=1.0,
    ),
    _source(
        AUT_AVN_WIDTH,
        {POINTS: (), LABELS: ()},
        512,
        name="aut-avn",
        summary="UseNet postings by TF-IDF of words, about cars or about aviation",
        format="SVMlin text",
        split="every fifth row is the test part",
        read=read_svmlin,
        licence="not stated",
        citation="""@misc{mccallum_sraa,
  author = {McCallum, Andrew},
  title = {{SRAA}: Simulated/Real/Aviation/Auto {UseNet} Data},
  howpublished = {Vectors for {SVMlin} by Vikas Sindhwani}
}""",
        default_gamma=1.0,
    ),
    _source(
        8,
        {"cod-rna.txt": (), "cod-rna.t": ()},
        128,
        name="cod-rna",
        summary="pairs of aligned sequences by 8 features, non-coding RNA or not",
        split="as published: cod-rna and cod-rna.t",
        files=tuple(
            RemoteFile(
                name, (f"{LIBSVM_SITE}/{url}",), archive="rna_dataset.zip", max_bytes=128 * MIB
            )
            for name, url in (("cod-rna.txt", "cod-rna"), ("cod-rna.t", "cod-rna.t"))
        ),
        transform=transforms.tabular,
        parameters={"scale": "minmax"},
        check_parameters=one_of("cod-rna", scale=transforms.SCALES),
        fingerprint="fb31fa07387d1fa247d95de7dd0779ec785dba086522346a087702e5c8137d25",
        licence="not stated",
        citation="""@article{uzilov2006detection,
  author = {Uzilov, Andrew V. and Keegan, Joshua M. and Mathews, David H.},
  title = {Detection of Non-Coding {RNA}s on the Basis of Predicted Secondary Structure Formation
    Free Energy Change},
  journal = {BMC Bioinformatics},
  volume = {7},
  number = {173},
  year = {2006},
  doi = {10.1186/1471-2105-7-173}
}""",
        # BSCA18 table 1: C = 2^5, gamma = 2^-3. With features in [0, 1], LIBSVM then has the
        # accuracy printed there, 96.33 %; in [-1, 1], distances double and that is 2^-5.
        default_gamma=2.0**-5,
        default_C=32.0,
    ),
    Source(
        name="heart",
        summary="patients by 13 findings in [-1, 1], heart disease or not",
        format="LIBSVM text",
        split="every third row is the test part",
        files=(RemoteFile("heart_scale", (f"{LIBSVM_SITE}/heart_scale",), max_bytes=MIB),),
        mirror_folder="heart_scale",
        read=partial(libsvm.read_single, name="heart_scale", width=13, classes=(-1, 1), step=3),
        transform=transforms.tabular,
        fingerprint="d158b0237c21322ad066764780992992a2a95e178555279a1a66444a80c52586",
        licence="CC BY 4.0",
        citation="""@misc{statlog1993heart,
  author = {{Statlog project}},
  title = {Statlog (Heart)},
  year = {1993},
  howpublished = {UCI Machine Learning Repository; scaled features of the {LIBSVM} data page},
  doi = {10.24432/C57303}
}""",
        default_gamma=0.05,
    ),
    _source(
        22,
        {
            "ijcnn1.trn.bz2": (f"{LIBSVM_SITE}/ijcnn1.bz2", f"{TICK_SITE}/ijcnn1/ijcnn1.trn.bz2"),
            "ijcnn1.tst.bz2": (f"{LIBSVM_SITE}/ijcnn1.t.bz2", f"{TICK_SITE}/ijcnn1/ijcnn1.tst.bz2"),
        },
        64,
        name="ijcnn1",
        summary="states of a combustion engine over time, misfire or normal",
        split="as published",
        transform=transforms.tabular,
        fingerprint="5c4ca242b49130be4201ff4b34344565701819a9add15f0fb1c4164aefdb6845",
        licence="not stated",
        citation="""@misc{prokhorov2001ijcnn,
  author = {Prokhorov, Danil},
  title = {{IJCNN} 2001 Neural Network Competition},
  year = {2001},
  howpublished = {Slides, Ford Research Laboratory; features of the {LIBSVM} data page}
}""",
        # BSCA18 table 1.
        default_gamma=2.0,
        default_C=32.0,
    ),
    Source(
        name="real-sim",
        summary="UseNet postings by TF-IDF of words, on real or on simulated vehicles",
        format="LIBSVM text",
        split="every fifth row is the test part",
        files=(RemoteFile("real-sim.bz2", (f"{LIBSVM_SITE}/real-sim.bz2",), max_bytes=512 * MIB),),
        read=partial(libsvm.read_single, name="real-sim.bz2", width=20958, classes=(-1, 1), step=5),
        transform=transforms.as_float32,
        licence="not stated",
        citation="""@misc{mccallum_sraa,
  author = {McCallum, Andrew},
  title = {{SRAA}: Simulated/Real/Aviation/Auto {UseNet} Data},
  howpublished = {Vectors of the {LIBSVM} data page}
}""",
        default_gamma=1.0,
    ),
    _source(
        8315,
        {name: (f"{TICK_SITE}/reuters/{name}",) for name in ("reuters.trn.bz2", "reuters.tst.bz2")},
        64,
        name="reuters_moneyfx",
        summary="news stories of Reuters-21578 by TF-IDF of words, topic money-fx or not",
        split="as published",
        fingerprint="b9081e7d407090de526a23245a748e47e421fc67143a013084f9acba6bdeb983",
        licence="research use (terms of Reuters-21578)",
        citation="""@article{bordes2005fast,
  author = {Bordes, Antoine and Ertekin, Seyda and Weston, Jason and Bottou, L{\\'e}on},
  title = {Fast Kernel Classifiers with Online and Active Learning},
  journal = {Journal of Machine Learning Research},
  volume = {6},
  pages = {1579--1619},
  year = {2005},
  note = {Its money-fx task, of the {Reuters-21578} collection of David D. Lewis}
}""",
        # SBP12 table 2, without bias.
        default_gamma=1.0,
    ),
    _source(
        300,
        _page("w8a", "w8a.t"),
        32,
        name="web8",
        summary="web pages by 300 binary keyword features, of one category or not",
        split="as published: w8a and w8a.t",
        licence="not stated",
        citation="""@incollection{platt1999fast,
  author = {Platt, John C.},
  title = {Fast Training of Support Vector Machines Using Sequential Minimal Optimization},
  booktitle = {Advances in Kernel Methods: Support Vector Learning},
  publisher = {MIT Press},
  year = {1999}
}""",
        # Platt's Gaussian of variance 10: exp(-||x - z||^2 / 20).
        default_gamma=0.05,
        default_C=5.0,
    ),
)
