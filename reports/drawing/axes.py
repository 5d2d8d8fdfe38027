"""Logarithmic axes with few, round, readable ticks."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullFormatter, NullLocator

from marginbench.reports import formatting

# Multiples of a power of ten that are tried in turn once powers alone are too few.
_MULTIPLES = ((1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
_FEWEST = 3


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round positions for ticks on a logarithmic axis from low to high.

    Powers of ten where at least three fit (every second, third... if more than ``most`` do),
    else their multiples; over a narrow range evenly spaced round numbers.
    """
    decades = list(
        range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    )
    if len(decades) >= _FEWEST:
        stride = math.ceil(len(decades) / most)
        return [10.0**exponent for exponent in decades if exponent % stride == 0]
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


def tick_label(value: float, format_: str) -> str:
    """The text of a tick on the axis of a measure with a format: a power of ten where it can."""
    if format_ == "percent":
        return f"{100 * value:.4g}{formatting.THIN}%"
    exponent = math.floor(math.log10(value) + 1e-9)
    if format_ == "seconds" and -5 < exponent < 4:
        return f"{value:.6f}".rstrip("0").rstrip(".")
    mantissa = value / 10.0**exponent
    power = formatting.power_of_ten(exponent)
    return power if abs(mantissa - 1) < 1e-6 else f"{mantissa:.3g}{formatting.TIMES}{power}"


def set_log_axis(axes: Axes, which: str, low: float, high: float, format_: str) -> None:
    """Give the x or y axis a logarithmic scale from low to high with labelled round ticks."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    ticks = log_ticks(low, high)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([tick_label(tick, format_) for tick in ticks]))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def padded(values: npt.NDArray[np.float64], below: float, above: float) -> tuple[float, float]:
    """Limits around positive values with a margin, in fractions of their logarithmic range."""
    low, high = float(values.min()), float(values.max())
    span = max(np.log10(high / low), 0.3)
    return low / 10 ** (below * span), high * 10 ** (above * span)
