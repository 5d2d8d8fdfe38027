"""Logarithmic axes with few, round, readable ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullFormatter, NullLocator

from .. import formatting
from .canvas import FONT, figure_of, text_width

# Multiples of a power of ten that are tried in turn once powers alone are too few.
_MULTIPLES = ((1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
_FEWEST = 3
# More powers of ten than this are thinned to every second, third... of them.
_MOST = {"x": 7, "y": 9}
# Decimals read better than powers of ten from a tenth of a millisecond to some hours.
_DECIMAL_SECONDS = (0.99e-4, 1e4)
# Values within this factor are one value, with this factor of room on both sides.
_SAME, _AROUND_ONE = 1.001, 1.6
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def length(axes: Axes, which: str) -> float:
    """The length of the x or y axis in points."""
    box = axes.get_position()
    width, height = figure_of(axes).get_size_inches()
    return float(72 * (box.width * width if which == "x" else box.height * height))


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round positions for ticks on a logarithmic axis from low to high.

    Powers of ten where at least three fit (every second, third... if more than ``most`` do),
    else their multiples; over a narrow range evenly spaced round numbers.
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first + 1 >= _FEWEST:
        return [10.0**exponent for exponent in _thinned(first, last, most)]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for multiples in _MULTIPLES:
        ticks = [
            round(multiple * 10.0**exponent, 12 - exponent if exponent < 0 else 6)
            for exponent in range(first, last + 1)
            for multiple in multiples
        ]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= _FEWEST:
            return ticks
    ticks = [float(tick) for tick in MaxNLocator(5).tick_values(low, high)]
    return [tick for tick in ticks if low <= tick <= high and tick > 0]


def _thinned(first: int, last: int, most: int) -> range:
    """Evenly spaced exponents that leave as little of the ends without a tick as can be."""
    stride = math.ceil((last - first + 1) / most)
    starts = range(first, first + stride)
    # Of equally good ones those that are multiples of the stride, such as 1, 100, 10 000.
    start = min(starts, key=lambda s: (max(s - first, (last - s) % stride), s % stride))
    return range(start, last + 1, stride)


def tick_label(value: float, format_: str) -> str:
    """The text of a tick on the axis of a measure with a format: a power of ten where it can."""
    return tick_labels([value], format_)[0]


def tick_labels(values: Sequence[float], format_: str) -> list[str]:
    """The texts of the ticks of one axis, all written in the same way."""
    if format_ == "percent":
        return [f"{_decimal(100 * value)}{formatting.THIN}%" for value in values]
    low, high = _DECIMAL_SECONDS
    if format_ == "seconds" and all(low < value < high for value in values):
        return [_decimal(value) for value in values]
    exponents = [math.floor(math.log10(value) + 1e-9) for value in values]
    if all(abs(value / 10.0**n - 1) < 1e-6 for value, n in zip(values, exponents, strict=True)):
        return [formatting.power_of_ten(exponent) for exponent in exponents]
    if format_ == "count" and min(values) >= 1:
        return [_counted(value) for value in values]
    return [
        f"{value / 10.0**n:.3g}{formatting.TIMES}{formatting.power_of_ten(n)}"
        for value, n in zip(values, exponents, strict=True)
    ]


def _decimal(value: float) -> str:
    """All digits that count, never as a power of ten."""
    return f"{value:.10f}".rstrip("0").rstrip(".") if value < 1 else f"{value:.6g}"


def _counted(value: float) -> str:
    for size, prefix in _PREFIXES:
        if value >= size:
            return f"{value / size:g}{prefix}"
    return f"{value:g}"


def set_log_axis(
    axes: Axes, which: str, low: float, high: float, format_: str, most: int | None = None
) -> None:
    """Give the x or y axis a logarithmic scale from low to high with labelled round ticks."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    room = length(axes, which) / max(math.log(high / low), 1e-12)
    room *= FONT / float(axes.xaxis.get_label().get_fontsize())
    most = most or _MOST[which]
    ticks = log_ticks(low, high, most)
    # Powers of ten are thinned evenly until none touch.
    while (kept := _apart(ticks, room, format_, which)) != ticks and most > _FEWEST:
        most -= 1
        ticks = log_ticks(low, high, most)
    axis.set_major_locator(FixedLocator(kept))
    axis.set_major_formatter(FixedFormatter(tick_labels(kept, format_)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _size(label: str, which: str) -> float:
    return text_width(label) + 0.5 * FONT if which == "x" else 1.15 * FONT


def _digits(tick: float) -> tuple[int, int]:
    digits = f"{tick:.6e}".split("e")[0].rstrip("0").replace(".", "")
    return len(digits), "152346789".index(digits[0])


def _apart(ticks: Sequence[float], room: float, format_: str, which: str) -> list[float]:
    """The ticks without those whose labels would touch that of a rounder number."""
    sizes = [_size(label, which) for label in tick_labels(ticks, format_)]
    half = {tick: size / 2 / room for tick, size in zip(ticks, sizes, strict=True)}
    kept: list[float] = []
    for tick in sorted(ticks, key=_digits):
        if all(abs(math.log(tick / other)) >= half[tick] + half[other] for other in kept):
            kept.append(tick)
    return sorted(kept)


def padded(values: npt.NDArray[np.float64], below: float, above: float) -> tuple[float, float]:
    """Limits around positive values with a margin, in fractions of their logarithmic range."""
    low, high = float(values.min()), float(values.max())
    if high < _SAME * low:
        return low / _AROUND_ONE, high * _AROUND_ONE
    span = max(np.log10(high / low), 0.3)
    return low / 10 ** (below * span), high * 10 ** (above * span)
