"""What changed between two snapshots: value by value, cell by cell, and what the gate says.

Every value that changes beyond its bound counts, one by one: no mean hides a cell. A cell that
fails hides nothing of the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .annotations import Annotation, chosen
from .measures import Watched, watched
from .samples import Estimate, ratio
from .values import (
    FAILED,
    Benchmark,
    Cell,
    Key,
    Snapshot,
    Value,
)

Outcome = Literal["worse", "better", "within bound", "same", "new", "gone", "advice"]
Verdict = Literal[
    "failed",
    "regression",
    "mixed",
    "gone",
    "improvement",
    "mended",
    "new",
    "still failing",
    "unchanged",
]
#: Worst first; the order of lists.
SEVERITY: tuple[Verdict, ...] = (
    *("failed", "regression", "mixed", "gone", "improvement", "mended", "new"),
    *("still failing", "unchanged"),
)
GONE = "gone"
#: Exit codes of the gate.
EXIT_SAME, EXIT_WORSE, EXIT_FAILED = 0, 1, 2
# Relative changes below which a change is called so.
_SIZES = ((0.05, "small"), (0.5, "medium"), (math.inf, "large"))


@dataclass(frozen=True)
class Change:
    """How one value differs.

    Attributes
    ----------
    key : Key
    measure : Watched
    before, after : float or None
        None: there is none on that side.
    outcome : str
    significance : float
        The change in units of its bound; positive for a worsening.
    estimate : Estimate or None
        Of times: the ratio with its interval.
    accepted : Annotation or None
        The known change that a worsening is.
    """

    key: Key
    measure: Watched
    before: float | None
    after: float | None
    outcome: Outcome
    significance: float = 0.0
    estimate: Estimate | None = None
    accepted: Annotation | None = None

    @property
    def ratio(self) -> float | None:
        """After / before; None where it is not a positive finite number."""
        if self.before is None or self.after is None or self.before <= 0 or self.after <= 0:
            return None
        return self.after / self.before

    @property
    def size(self) -> str:
        """How large it is, in a word; empty if there is no ratio."""
        found = self.ratio
        if found is None:
            return ""
        return next(word for most, word in _SIZES if abs(math.log(found)) <= math.log1p(most))

    @property
    def worse(self) -> bool:
        """Whether it is a worsening beyond its bound, or a value that is no more."""
        return self.outcome in ("worse", "gone")

    @property
    def told_by_itself(self) -> bool:
        """Whether it is more than differs without a cause: of times, whether the turns say so."""
        if self.measure.is_time:
            return self.estimate is not None and self.estimate.told
        return abs(self.significance) > 1

    @property
    def refused(self) -> bool:
        """Whether it is a worsening that no known change accepts."""
        return self.worse and self.accepted is None


@dataclass(frozen=True)
class CellVerdict:
    """What is said of one cell.

    Attributes
    ----------
    cell : Cell
    verdict : str
    changes : tuple of Change
        Of its measures, the most significant first.
    accepted : Annotation or None
        The known change because of which it fails, is gone, or is worse in all that is worse.
    """

    cell: Cell
    verdict: Verdict
    changes: tuple[Change, ...]
    accepted: Annotation | None = None

    @property
    def told(self) -> tuple[Change, ...]:
        """The changes beyond their bounds."""
        return tuple(each for each in self.changes if each.worse or each.outcome == "better")

    @property
    def significance(self) -> float:
        """That of its most significant change."""
        return max((abs(each.significance) for each in self.told), default=0.0)

    @property
    def refused(self) -> bool:
        """Whether the gate does not let it pass."""
        if self.verdict in ("failed", "gone"):
            # Values go with what fails; one that is worse is another matter.
            worse = any(each.outcome == "worse" and each.refused for each in self.changes)
            return self.accepted is None or worse
        return any(each.refused for each in self.changes)


@dataclass(frozen=True)
class Comparison:
    """What changed from one snapshot to another.

    Attributes
    ----------
    before, after : Snapshot
    cells : tuple of CellVerdict
        The worst first; of the same verdict the most significant first.
    """

    before: Snapshot
    after: Snapshot
    cells: tuple[CellVerdict, ...]

    @property
    def counts(self) -> Counter[Verdict]:
        """How many cells have each verdict."""
        return Counter(each.verdict for each in self.cells)

    @property
    def advice(self) -> tuple[Change, ...]:
        """Changes of measures that only advise, the largest first.

        Those that the turns tell; of what has no turns, such as memory, those beyond their bounds.
        """
        found = [
            change
            for each in self.cells
            for change in each.changes
            if change.outcome == "advice" and change.told_by_itself
        ]
        return tuple(sorted(found, key=lambda each: (-abs(each.significance), each.key)))

    @property
    def exit_code(self) -> int:
        """2: cells fail that did not; 1: something else is worse and not a known change; else 0."""
        refused = [each for each in self.cells if each.refused]
        if any(each.verdict == "failed" and each.accepted is None for each in refused):
            return EXIT_FAILED
        return EXIT_WORSE if refused else EXIT_SAME

    @property
    def other_code(self) -> tuple[Benchmark, ...]:
        """Benchmarks whose own code differs between the two, so that values may not compare."""
        return tuple(
            each
            for each, version in sorted(self.before.versions.items())
            if self.after.versions.get(each, version) != version
        )

    @property
    def one_sided(self) -> tuple[Benchmark, ...]:
        """Benchmarks that were run on one side only; nothing is said of them."""
        return tuple(sorted(self.before.versions.keys() ^ self.after.versions.keys()))


def compared(
    before: Snapshot,
    after: Snapshot,
    *,
    annotations: Sequence[Annotation] = (),
    bounds: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare two snapshots, value by value.

    Parameters
    ----------
    before, after : Snapshot
    annotations : sequence of Annotation
        The known changes between them.
    bounds : mapping of str to float, optional
        Bounds of the user by names of measures.

    Returns
    -------
    Comparison
    """
    both = before.versions.keys() & after.versions.keys()
    measures = _measures(both, {**before.units, **after.units}, bounds)
    by_cell: dict[Cell, list[Key]] = {}
    for key in sorted({*before.values, *after.values}):
        if Benchmark(key.cell.suite, key.measure) in both:
            by_cell.setdefault(key.cell, []).append(key)
    states = [(side.cells(), side.failed_cells()) for side in (before, after)]
    found = []
    for cell, keys in by_cell.items():
        state = _state(cell, *states[0]), _state(cell, *states[1])
        changes = [
            _change(key, measures[key.measure], before, after, annotations)
            for key in keys
            if key.measure != FAILED
        ]
        changes.sort(key=lambda each: (-abs(each.significance), each.key))
        found.append(_verdict(cell, state, tuple(changes), annotations))
    found.sort(key=lambda each: (SEVERITY.index(each.verdict), -each.significance, each.cell))
    return Comparison(before, after, tuple(found))


def _measures(
    benchmarks: Iterable[Benchmark], units: Mapping[str, str], bounds: Mapping[str, float] | None
) -> dict[str, Watched]:
    names = {each.measure for each in benchmarks}
    return {name: watched(name, units.get(name, ""), bounds) for name in names}


def _state(cell: Cell, present: frozenset[Cell], failing: frozenset[Cell]) -> str:
    if cell not in present:
        return "absent"
    return "failing" if cell in failing else "well"


def _change(
    key: Key,
    measure: Watched,
    before: Snapshot,
    after: Snapshot,
    annotations: Sequence[Annotation],
) -> Change:
    left, right = before.values.get(key), after.values.get(key)
    old, new = _number(left), _number(right)
    if old is None or new is None:
        outcome: Outcome = "same" if old is new else "new" if old is None else "gone"
        if outcome == "gone" and not measure.gates:
            outcome = "advice"
        accepted = chosen(annotations, key.cell, GONE) if outcome == "gone" else None
        return Change(key, measure, old, new, outcome, accepted=accepted)
    significance = measure.beyond(old, new)
    if not measure.gates:
        estimate = ratio(left.samples, right.samples) if left and right else None
        return Change(key, measure, old, new, "advice", significance, estimate)
    if abs(significance) <= 1:
        return Change(
            key, measure, old, new, "within bound" if old != new else "same", significance
        )
    worse = significance > 0
    # More than nothing is infinitely more.
    factor = new / old if old > 0 else math.inf
    accepted = chosen(annotations, key.cell, key.measure, factor) if worse else None
    return Change(
        key, measure, old, new, "worse" if worse else "better", significance, None, accepted
    )


def _number(value: Value | None) -> float | None:
    return None if value is None else value.number


_BY_STATES: dict[tuple[str, str], Verdict] = {
    ("well", "failing"): "failed",
    ("absent", "failing"): "failed",
    ("failing", "failing"): "still failing",
    ("failing", "well"): "mended",
    ("absent", "well"): "new",
    ("well", "absent"): "gone",
    ("failing", "absent"): "gone",
}


def _verdict(
    cell: Cell,
    state: tuple[str, str],
    changes: tuple[Change, ...],
    annotations: Sequence[Annotation],
) -> CellVerdict:
    known = _BY_STATES.get(state)
    if known is not None:
        name = FAILED if known == "failed" else GONE
        accepted = chosen(annotations, cell, name) if known in ("failed", "gone") else None
        return CellVerdict(cell, known, changes, accepted)
    worse = [each for each in changes if each.worse]
    better = any(each.outcome == "better" for each in changes)
    if not worse:
        return CellVerdict(cell, "improvement" if better else "unchanged", changes)
    accepted = worse[0].accepted if all(each.accepted for each in worse) else None
    return CellVerdict(cell, "mixed" if better else "regression", changes, accepted)
