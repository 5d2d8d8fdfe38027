"""Names of anchors and files are readable, and different for different labels."""

from __future__ import annotations

import re

import pytest

from marginbench.reports.formatting import slug, slugs


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("digits-with-bias", "digits-with-bias"),
        ("a/b.c d", "a-b-c-d"),
        ("κ = 1.5", "kappa-1-5"),
        ("Café № 3", "cafe-no-3"),
        ("../../etc/passwd", "etc-passwd"),
        ("\N{ROCKET}", "unnamed"),
        ("", "unnamed"),
        ('"><script>', "script"),
        ("x" * 120, "x" * 60),
    ],
)
def test_a_slug_is_lower_case_letters_digits_and_hyphens(label, expected):
    assert slug(label) == expected
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug(label))


def test_labels_with_the_same_slug_have_different_names():
    labels = ["a b", "a-b", "a-b-2", "A/B", "x" * 120, "x" * 121]
    found = slugs(labels)
    assert list(found) == labels
    assert found["a b"] == "a-b"
    assert found["a-b"] == "a-b-2"
    assert len(set(found.values())) == len(labels)
