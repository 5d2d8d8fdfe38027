"""The datasets that need no file: generated ones, and those that scikit-learn brings."""

from __future__ import annotations

from marginbench.data_loaders import checkers, embedded, random_text
from marginbench.data_loaders.citations import CITATIONS
from marginbench.data_loaders.source import Source

OFFLINE = (
    Source(
        name="digits",
        summary="handwritten digits of 8x8 pixels, eight against the rest",
        format="scikit-learn",
        split="every third row is the test part",
        read=embedded.read_digits,
        transform=embedded.eight_against_rest,
        fingerprint="ea7295ec9e77303841c43cc81de1b72597e6c73f000d06753f6e689ff5b0c3bf",
        licence="CC BY 4.0",
        citation=CITATIONS["digits"],
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
        citation=CITATIONS["breast-cancer"],
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
        citation=CITATIONS["checkers"],
        # CUTS08 table 1 has sigma^2 = 0.05, read here as exp(-||x - z||^2 / sigma^2).
        default_gamma=20.0,
        default_C=1.0,
    ),
    Source(
        name="random-text",
        summary="random sparse points like documents, on either side of a noisy hyperplane",
        format="generator",
        split="two independent samples of one seed",
        read=random_text.read,
        parameters=random_text.DEFAULTS,
        check_parameters=random_text.check_parameters,
        licence="BSD-3-Clause (generated)",
        citation=CITATIONS["random-text"],
        default_gamma=1.0,
        default_C=1.0,
    ),
)
