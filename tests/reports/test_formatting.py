"""How numbers read, and the names that labels have in anchors and files."""

import numpy as np
import pytest

from marginbench.reports import formatting
from marginbench.reports.drawing.figures import log_ticks, padded, tick_labels
from marginbench.reports.formatting import slug, slugs

THIN = formatting.THIN


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        *(("percent", 0, "0 %"), ("percent", 0.0123, "1.23 %"), ("percent", 0.00012, "0.012 %")),
        *(("count", 0, "0"), ("count", 7.5, "7.5"), ("count", 999_949, "1.00M")),
        *(("count", 99_990, "100k"), ("count", 1.5e9, "1.50G"), ("seconds", 999.9, "1,000 s")),
        *(("seconds", 0.00456, "4.56 ms"), ("seconds", 0.9999, "1.00 s")),
        *(("scientific", 0.00123, f"1.2{formatting.TIMES}10⁻³"), ("scientific", 0, "0")),
    ],
)
def test_numbers_have_three_digits_and_a_unit(form, value, text):
    assert formatting.FORMATS[form](value) == text.replace(" ", THIN)


def test_spread_writes_a_shared_unit_once():
    dash = formatting.DASH
    for low, high, text in (
        (f"1.2{THIN}%", f"1.3{THIN}%", f"1.2{dash}1.3{THIN}%"),
        ("900k", "1.10M", f"900k{dash}1.10M"),
        ("1.10M", "never", f"1.10M{dash}never"),
        ("480", "480", ""),
        (*map(formatting.scientific, (1.2e-3, 3.4e-3)), f"(1.2{dash}3.4){formatting.TIMES}10⁻³"),
    ):
        assert formatting.spread(low, high) == text


def test_ticks_are_few_and_round_stay_within_a_narrow_range_and_have_short_labels():
    for low, high, ticks in (
        (2e3, 3e7, [1e4, 1e5, 1e6, 1e7]),
        (1e-8, 1e3, [1e-8, 1e-6, 1e-4, 1e-2, 1, 1e2]),
        (0.009, 0.4, [0.01, 0.03, 0.1, 0.3]),
        (0.14, 0.6, [0.15, 0.2, 0.3, 0.4, 0.5, 0.6]),
    ):
        assert log_ticks(low, high) == pytest.approx(ticks)
    ticks = log_ticks(0.1502, 0.1561)
    assert 3 <= len(ticks) <= 7
    assert all(0.1502 <= tick <= 0.1561 for tick in ticks)
    low, high = padded(np.array([10.0, 10.0]), 0.03, 0.03)
    assert low < 8 < 12 < high
    assert 10.0 in log_ticks(low, high)
    assert tick_labels([0.015], "percent") == [f"1.5{THIN}%"]
    assert tick_labels([1e3, 1e6], "count") == ["10³", "10⁶"]
    assert tick_labels([1e3, 3e3], "count") == ["1k", "3k"]
    assert tick_labels([3e-5], "scientific") == [f"3{formatting.TIMES}10⁻⁵"]
    assert tick_labels([3e-4, 0.01, 3000], "seconds") == ["0.0003", "0.01", "3000"]


def test_a_slug_is_lower_case_letters_digits_and_hyphens_and_each_label_has_its_own():
    for label, expected in (
        *(("κ = 1.5", "kappa-1-5"), ("Café № 3", "cafe-no-3"), ("../../etc/a", "etc-a")),
        *(("\N{ROCKET}", "unnamed"), ('"><script>', "script"), ("x" * 120, "x" * 60)),
    ):
        assert slug(label) == expected
    labels = ["a b", "a-b", "a-b-2", "A/B", "x" * 120, "x" * 121]
    found = slugs(labels)
    assert list(found) == labels
    assert [found["a b"], found["a-b"]] == ["a-b", "a-b-2"]
    assert len(set(found.values())) == len(labels)
