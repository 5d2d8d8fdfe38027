"""Labels that keep clear of curves and of each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .canvas import (
    FONT,
    LABEL,
    LEADER,
    MUTED,
    annotate_line,
    length,
    rule,
    text_width,
)
from .styles import SolverStyle

Array = npt.NDArray[np.float64]

#: More labels beside a panel than this would make it higher than it is wide.
MOST_LABELS = 24
_MOST_CHARACTERS = 15
# How many characters of a long label may stay before the gap, in the order in which they are tried.
_HEADS = (9, 14, 4, 12, 0, 7)
# Where the label of a horizontal line may stand, the first of equally free places.
# Weighs more than all pieces of curves that a label can meet.
_FORBIDDEN = 1_000_000
_PLACES = tuple((place, above) for place in (0.0, 1.0, 0.5) for above in (False, True))


def end_labels(solvers: Iterable[str], styles: Mapping[str, SolverStyle]) -> list[str]:
    """The labels that muted solvers of a panel have beside it, for :func:`panel_axes`."""
    muted = [solver for solver in solvers if styles[solver].muted]
    return list(shortened(muted).values())[:MOST_LABELS]


def shortened(labels: Sequence[str]) -> dict[str, str]:
    """Labels without their middle where they are long, told apart if some cut can."""
    found = {}
    for head in _HEADS:
        found = {label: _without_middle(label, head) for label in labels}
        if len(set(found.values())) == len(found):
            break
    return found


def _without_middle(label: str, head: int) -> str:
    if len(label) <= _MOST_CHARACTERS:
        return label
    tail = label[len(label) - (_MOST_CHARACTERS - 1 - head) :]
    return f"{label[:head]}…{tail}"


def label_ends(
    axes: Axes, ends: Mapping[str, tuple[float, float]], styles: Mapping[str, SolverStyle]
) -> None:
    """Write the names of muted solvers beside the panel, each led from where its line ends.

    Parameters
    ----------
    axes : Axes
        Of :func:`panel_axes` with these labels, its limits set.
    ends : mapping of str to (x, y)
        The last point of each solver; of solvers in colour it is not used.
    styles : mapping of str to SolverStyle
    """
    muted = {solver: end for solver, end in ends.items() if styles[solver].muted}
    # Where there are too many, the lowest are named: low is good.
    lowest = sorted(muted.items(), key=lambda item: item[1][1])[:MOST_LABELS]
    if not lowest:
        return
    height, width = length(axes, "y"), length(axes, "x")
    names = shortened([solver for solver in styles if solver in muted])
    points = _in_points(axes, np.array([end for _, end in lowest]))
    places = pushed_apart(points[:, 1], LABEL, LABEL / 2, height - LABEL / 2)
    for (solver, _), (x, y), place in zip(lowest, points, places, strict=True):
        axes.plot(
            [x / width, 1.0, 1 + 0.7 * LEADER / width],
            [y / height, y / height, place / height],
            transform=axes.transAxes, clip_on=False, color=MUTED, lw=0.6,
            dashes=(1, 1.6), zorder=1.4,
        )  # fmt: skip
        axes.text(
            1 + LEADER / width, place / height, names[solver], transform=axes.transAxes,
            fontsize=FONT, color=MUTED, verticalalignment="center_baseline",
        )  # fmt: skip


def pushed_apart(wanted: Array, gap: float, low: float, high: float) -> Array:
    """Places at least a gap apart, as near to the wanted ones as can be (least squares).

    Parameters
    ----------
    wanted : array, shape (n,)
    gap, low, high : float
        Places are between low and high if n of them fit there; otherwise they begin at low.

    Returns
    -------
    array, shape (n,)
        In the order of ``wanted``; equal wishes keep their order.
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    # Less a gap for each label below, they have only to ascend: pool those that do not.
    pools: list[tuple[float, int]] = []
    for value in wanted[order] - steps:
        mean, size = float(value), 1
        while pools and pools[-1][0] > mean:
            other, n = pools.pop()
            mean, size = (mean * size + other * n) / (size + n), size + n
        pools.append((mean, size))
    ascending = np.concatenate([np.full(size, mean) for mean, size in pools])
    places = np.empty(len(wanted))
    places[order] = np.clip(ascending, low, max(high - steps[-1], low)) + steps
    return places


def reference_lines(axes: Axes, lines: Sequence[tuple[float, str]]) -> None:
    """Dashed horizontal lines with their labels where the curves leave most room for them.

    Parameters
    ----------
    axes : Axes
        With its curves drawn and its limits set.
    lines : sequence of (float, str)
        Value and label.
    """
    crossed = _pieces(axes)
    # Outside the axes a label would meet those of the ticks.
    taken = _surroundings(axes)
    for value, text in lines:
        boxes = _boxes(axes, value, text)
        hits = [_hits(box, crossed) + _FORBIDDEN * _hits(box, taken) for box in boxes]
        best = int(np.argmin(hits))
        place, above = _PLACES[best]
        rule(axes, value)
        annotate_line(axes, value, text, place, above=above)
        taken = np.vstack([taken, boxes[best]])


def _boxes(axes: Axes, value: float, text: str) -> Array:
    """Left, bottom, right and top of the label at each of the places, in points."""
    # A sentence has narrower characters than a name on which room depends.
    width, height = 0.92 * text_width(text), 1.2 * FONT
    y = _in_points(axes, np.array([[axes.get_xlim()[0], value]]))[0, 1]
    room = length(axes, "x") - width
    boxes = []
    for place, above in _PLACES:
        left, bottom = place * room, y + (2 if above else -2 - height)
        boxes.append((left, bottom, left + width, bottom + height))
    return np.array(boxes)


def _surroundings(axes: Axes) -> Array:
    """The boxes below and above the axes, in points."""
    height = length(axes, "y")
    return np.array([[-np.inf, -np.inf, np.inf, -1.0], [-np.inf, height + 5.0, np.inf, np.inf]])


def _pieces(axes: Axes) -> Array:
    """The boxes around all pieces of the curves, shape (n, 4), in points."""
    found = [np.empty((0, 4))]
    for line in axes.get_lines():
        if line.get_transform() != axes.transData:
            continue
        points = _in_points(axes, line.get_xydata())
        points = points[np.isfinite(points).all(axis=1)]
        if line.get_drawstyle() == "steps-post":
            corners = np.column_stack([points[1:, 0], points[:-1, 1]])
            points = np.insert(points, np.arange(1, len(points)), corners, axis=0)
        ends = points if len(points) == 1 else points[1:]
        starts = points if len(points) == 1 else points[:-1]
        found.append(np.hstack([np.minimum(starts, ends), np.maximum(starts, ends)]))
    return np.vstack(found)


def _hits(box: Array, others: Array) -> int:
    """How many other boxes a box meets."""
    left, bottom, right, top = box
    apart = (others[:, 2] < left) | (others[:, 0] > right)
    apart |= (others[:, 3] < bottom) | (others[:, 1] > top)
    return int((~apart).sum())


def _in_points(axes: Axes, places: npt.ArrayLike) -> Array:
    """Places of the data in points from the lower left corner of the axes."""
    inside = axes.transAxes.inverted().transform(axes.transData.transform(places))
    found: Array = inside * (length(axes, "x"), length(axes, "y"))
    return found
