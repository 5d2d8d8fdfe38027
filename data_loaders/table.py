"""The datasets that can be loaded: one entry of a table each, here or in a module beside this.

A new dataset is one entry, and one reader if its format is new. A reader is a function
``read(files, params) -> Content`` that parses local files (or generates) and splits; what it
returns is the raw content, whose fingerprint is pinned here. A transform then makes the content
that solvers see.
"""

from __future__ import annotations

from functools import partial

from marginbench.data_loaders import (
    adult,
    csv_text,
    libsvm,
    rcv1,
    splits,
    transforms,
)
from marginbench.data_loaders.citations import CITATIONS
from marginbench.data_loaders.content import Content, Part
from marginbench.data_loaders.files import RemoteFile
from marginbench.data_loaders.parameters import one_of
from marginbench.data_loaders.source import Source
from marginbench.data_loaders.table_images import IMAGES
from marginbench.data_loaders.table_offline import OFFLINE

_LIBSVM_SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_TICK_SITE = "https://raw.githubusercontent.com/X-DataInitiative/tick-datasets/master/binary"
_UCI_SITE = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_FIGSHARE = "https://ndownloader.figshare.com/files"
#: The numbers and SHA-256 of the files of RCV1-v2, as scikit-learn has them.
_RCV1_FILES = {
    rcv1.TRAIN[0]: (5976057, "5468f656d0ba7a83afc7ad44841cf9a53048a5c083eedc005dcdb5cc768924ae"),
    rcv1.TEST[0]: (5976069, "ed40f7e418d10484091b059703eeb95ae3199fe042891dcec4be6696b9968374"),
    rcv1.TEST[1]: (5976066, "87700668ae45d45d5ca1ef6ae9bd81ab0f5ec88cc95dcef9ae7838f727a13aa6"),
    rcv1.TEST[2]: (5976063, "48143ac703cbe33299f7ae9f4995db49a258690f60e5debbff8995c34841c7f5"),
    rcv1.TEST[3]: (5976060, "dfcb0d658311481523c6e6ca0c3f5a3e1d3d12cde5d7a8ce629a9006ec7dbb39"),
    rcv1.TOPICS: (5976048, "2a98e5e5d8b770bded93afc8930d88299474317fe14181aee1466cc754d0d1c1"),
}


def _last_rows(whole: Part, origin: str, n_test: int) -> Content:
    return splits.last(whole, n_test, origin)


def _every_row(whole: Part, origin: str, step: int, first: int) -> Content:
    return splits.every(whole, step, first)


TABLE = (
    *OFFLINE,
    Source(
        name="adult",
        summary="census records as 123 binary features, income over 50 000 dollars or not",
        format="LIBSVM text",
        split="as published: a9a and a9a.t",
        files=tuple(RemoteFile(name, (f"{_LIBSVM_SITE}/{name}",)) for name in ("a9a", "a9a.t")),
        # The test file stops at feature 122.
        read=partial(libsvm.read_pair, train="a9a", test="a9a.t", width=123, classes=(-1, 1)),
        # Exact: features are 0 or 1.
        transform=transforms.as_float32,
        fingerprint="8bcc25a134f472406ab7b57eac8e51c533384849ad40cbd2a01994d2dd8551c3",
        licence="CC BY 4.0",
        citation=CITATIONS["adult"],
        # SBP12 table 2, without bias.
        default_gamma=0.05,
        default_C=1.0,
    ),
    Source(
        name="adult-sample",
        summary="22 697 census records of the training part of adult, tested on its other rows",
        format="LIBSVM text",
        split="22 697 rows of a9a drawn once; tested on the others, or on all of a9a",
        files=tuple(RemoteFile(name, (f"{_LIBSVM_SITE}/{name}",)) for name in ("a9a", "a9a.t")),
        mirror_folder="adult",
        read=partial(libsvm.read_pair, train="a9a", test="a9a.t", width=123, classes=(-1, 1)),
        transform=adult.sample,
        parameters={"test": "rest"},
        check_parameters=one_of("adult-sample", test=adult.TESTS),
        fingerprint="8bcc25a134f472406ab7b57eac8e51c533384849ad40cbd2a01994d2dd8551c3",
        licence="CC BY 4.0",
        citation=CITATIONS["adult"],
        # CUTS08 table 1 has sigma^2 = 20, read here as exp(-||x - z||^2 / sigma^2).
        default_gamma=0.05,
        default_C=100.0,
    ),
    Source(
        name="ijcnn1",
        summary="states of a combustion engine over time, misfire or normal",
        format="LIBSVM text",
        split="as published",
        files=(
            RemoteFile(
                "ijcnn1.trn.bz2",
                (f"{_LIBSVM_SITE}/ijcnn1.bz2", f"{_TICK_SITE}/ijcnn1/ijcnn1.trn.bz2"),
            ),
            RemoteFile(
                "ijcnn1.tst.bz2",
                (f"{_LIBSVM_SITE}/ijcnn1.t.bz2", f"{_TICK_SITE}/ijcnn1/ijcnn1.tst.bz2"),
            ),
        ),
        read=partial(
            libsvm.read_pair,
            train="ijcnn1.trn.bz2",
            test="ijcnn1.tst.bz2",
            width=22,
            classes=(-1, 1),
        ),
        transform=transforms.tabular,
        fingerprint="5c4ca242b49130be4201ff4b34344565701819a9add15f0fb1c4164aefdb6845",
        licence="not stated",
        citation=CITATIONS["ijcnn1"],
        # BSCA18 table 1.
        default_gamma=2.0,
        default_C=32.0,
    ),
    Source(
        name="cod-rna",
        summary="pairs of aligned sequences by 8 features, non-coding RNA or not",
        format="LIBSVM text",
        split="as published: cod-rna and cod-rna.t",
        files=(
            RemoteFile("cod-rna.txt", (f"{_LIBSVM_SITE}/cod-rna",), archive="rna_dataset.zip"),
            RemoteFile("cod-rna.t", (f"{_LIBSVM_SITE}/cod-rna.t",), archive="rna_dataset.zip"),
        ),
        read=partial(
            libsvm.read_pair, train="cod-rna.txt", test="cod-rna.t", width=8, classes=(-1, 1)
        ),
        transform=transforms.tabular,
        parameters={"scale": "minmax"},
        check_parameters=one_of("cod-rna", scale=transforms.SCALES),
        fingerprint="fb31fa07387d1fa247d95de7dd0779ec785dba086522346a087702e5c8137d25",
        licence="not stated",
        citation=CITATIONS["cod-rna"],
        # BSCA18 table 1: C = 2^5, gamma = 2^-3. With features in [0, 1], LIBSVM then has the
        # accuracy printed there, 96.33 %; in [-1, 1], distances double and that is 2^-5.
        default_gamma=2.0**-5,
        default_C=32.0,
    ),
    Source(
        name="reuters_moneyfx",
        summary="news stories of Reuters-21578 by TF-IDF of words, topic money-fx or not",
        format="LIBSVM text",
        split="as published",
        files=tuple(
            RemoteFile(name, (f"{_TICK_SITE}/reuters/{name}",))
            for name in ("reuters.trn.bz2", "reuters.tst.bz2")
        ),
        read=partial(
            libsvm.read_pair,
            train="reuters.trn.bz2",
            test="reuters.tst.bz2",
            width=8315,
            classes=(-1, 1),
        ),
        transform=transforms.as_float32,
        fingerprint="b9081e7d407090de526a23245a748e47e421fc67143a013084f9acba6bdeb983",
        licence="research use (terms of Reuters-21578)",
        citation=CITATIONS["reuters_moneyfx"],
        # SBP12 table 2, without bias.
        default_gamma=1.0,
        default_C=1.0,
    ),
    Source(
        name="heart",
        summary="patients by 13 findings in [-1, 1], heart disease or not",
        format="LIBSVM text",
        split="every third row is the test part",
        files=(RemoteFile("heart_scale", (f"{_LIBSVM_SITE}/heart_scale",)),),
        mirror_folder="heart_scale",
        read=partial(libsvm.read_single, name="heart_scale", width=13, classes=(-1, 1), step=3),
        transform=transforms.tabular,
        fingerprint="d158b0237c21322ad066764780992992a2a95e178555279a1a66444a80c52586",
        licence="CC BY 4.0",
        citation=CITATIONS["heart"],
        default_gamma=0.05,
        default_C=1.0,
    ),
    Source(
        name="covtype-sample",
        summary="a 3.7 % sample of forest cells by 54 map features, in two classes",
        format="CSV",
        split="every third row is the test part",
        files=(RemoteFile("covtype_union_binary_raw.csv", ()),),
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
        citation=CITATIONS["covtype"],
        default_gamma=8.0,
        default_C=8.0,
    ),
    Source(
        name="covtype",
        summary="forest cells by 54 map features, lodgepole pine (or another cover) or not",
        format="CSV",
        # The counts of SBP12. Rows are sorted by region: the last tenth would be another forest.
        split="rows 1, 11, 21, ... are the test part: 522910 and 58102 rows",
        files=(
            RemoteFile(
                "covtype.data.gz",
                (f"{_UCI_SITE}/covtype/covtype.data.gz", f"{_FIGSHARE}/5976039"),
                # As scikit-learn has it.
                sha256="614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
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
        citation=CITATIONS["covtype"],
        # BSCA18 table 1, which does not state the scale.
        default_gamma=0.125,
        default_C=128.0,
    ),
    Source(
        name="susy",
        summary="simulated particle collisions by 18 measurements, new particles or background",
        format="CSV",
        split="the last 500000 rows are the test part, as its publishers have it",
        files=(RemoteFile("SUSY.csv.gz", (f"{_UCI_SITE}/00279/SUSY.csv.gz",)),),
        read=partial(
            csv_text.read,
            name="SUSY.csv.gz",
            width=18,
            classes=(0, 1),
            label="first",
            split=partial(_last_rows, n_test=500_000),
        ),
        transform=partial(transforms.tabular, positive=1),
        parameters={"scale": "none"},
        check_parameters=one_of("susy", scale=transforms.SCALES),
        licence="CC BY 4.0",
        citation=CITATIONS["susy"],
        # BSCA18 table 1, which does not state the scale.
        default_gamma=2.0**-7,
        default_C=32.0,
    ),
    Source(
        name="rcv1",
        summary="Reuters stories (RCV1-v2) by TF-IDF of words, topic CCAT (or another) or not",
        format="LIBSVM text",
        split="as published (LYRL2004: 23149 and 781265 stories), or swapped",
        files=tuple(
            RemoteFile(name, (f"{_FIGSHARE}/{number}",), sha256)
            for name, (number, sha256) in _RCV1_FILES.items()
        ),
        read=rcv1.read,
        transform=transforms.as_float32,
        parameters={"topic": "CCAT", "split": "published"},
        check_parameters=rcv1.check_parameters,
        licence="research use (terms of RCV1-v2)",
        citation=CITATIONS["rcv1"],
        default_gamma=1.0,
        default_C=1.0,
    ),
    Source(
        name="real-sim",
        summary="UseNet postings by TF-IDF of words, on real or on simulated vehicles",
        format="LIBSVM text",
        split="every fifth row is the test part",
        files=(RemoteFile("real-sim.bz2", (f"{_LIBSVM_SITE}/real-sim.bz2",)),),
        read=partial(libsvm.read_single, name="real-sim.bz2", width=20958, classes=(-1, 1), step=5),
        transform=transforms.as_float32,
        licence="not stated",
        citation=CITATIONS["real-sim"],
        default_gamma=1.0,
        default_C=1.0,
    ),
    *IMAGES,
)
