"""What pages say of two commits in sentences: the verdict first, then solver by solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ..formatting import TIMES, plural
from ..wording import capitalised
from . import words
from .history import ACCEPTED, BLIP, Neighbours
from .verdicts import EXIT_FAILED, EXIT_SAME

#: What an overview calls cells, the worst first, and the heading of their numbers.
KINDS: tuple[tuple[str, str], ...] = (
    ("failed", "failed"),
    ("regression", "worse"),
    ("mixed", "mixed"),
    ("gone", "gone"),
    ("improvement", "better"),
    ("mended", "mended"),
    ("new", "new"),
    (ACCEPTED, "accepted"),
    (BLIP, "blips"),
    ("still failing", "still failing"),
)
#: The kinds that a maintainer must look at.
BAD = frozenset({"failed", "regression", "mixed", "gone"})
_VERBS = {
    "failed": ("fails and did not before", "fail and did not before"),
    "regression": ("is worse", "are worse"),
    "mixed": ("is better in one measure and worse in another",) * 2,
    "gone": ("is gone", "are gone"),
    "improvement": ("is better", "are better"),
    "mended": ("fails no more", "fail no more"),
    "new": ("is new", "are new"),
    ACCEPTED: ("is worse by a known change", "are worse by known changes"),
    BLIP: ("has a blip", "have blips"),
    "still failing": ("still fails", "still fail"),
}
_NAMED = 4


#: The parts of a headline: a word, and the kinds that it stands for.
_HEADLINE = (
    ("failed", ("failed",)),
    ("worse", ("regression", "mixed")),
    ("gone", ("gone",)),
    ("better", ("improvement",)),
)


def headline(pair: Neighbours) -> str:
    """The verdict in a few words."""
    kinds = pair.kinds
    parts = [
        f"{word} in {plural(number, 'cell')} ({_groups(pair, members)})"
        for word, members in _HEADLINE
        if (number := sum(kinds[kind] for kind in members))
    ]
    if parts:
        return capitalised("; ".join(parts[:2]))
    if kinds[ACCEPTED]:
        return f"Only known changes, in {plural(kinds[ACCEPTED], 'cell')}"
    if kinds[BLIP]:
        return f"Only blips, in {plural(kinds[BLIP], 'cell')}"
    return "Nothing is worse" if kinds["mended"] or kinds["new"] else "Nothing changed"


def verdict_sentences(pair: Neighbours) -> list[str]:
    """All that changed, how much did not, and what the gate says."""
    kinds = pair.kinds
    found = [
        f"{plural(kinds[kind], 'cell')} {_VERBS[kind][kinds[kind] != 1]} ({_groups(pair, {kind})})."
        for kind, _ in KINDS
        if kinds[kind]
    ]
    same = plural(kinds["unchanged"], "cell")
    found.append(
        f"{same} {'is' if kinds['unchanged'] == 1 else 'are'} unchanged."
        if found
        else f"All values of {same} are within their bounds."
    )
    return [*found, gate_sentence(pair)]


def gate_sentence(pair: Neighbours) -> str:
    """The exit code of ``marginbench regressions`` in words."""
    code = pair.comparison.exit_code
    if code == EXIT_SAME:
        return "The gate lets this pass (exit code 0)."
    what = "cells fail" if code == EXIT_FAILED else "something is worse"
    return f"The gate refuses this: {what} and no known change says why (exit code {code})."


def newest_sentence(pair: Neighbours, n_commits: int) -> str:
    """The verdict on the newest commit of a history."""
    kinds = pair.kinds
    parts = [
        plural(kinds[kind], BLIP) if kind == BLIP else f"{kinds[kind]} {word}"
        for kind, word in KINDS
        if kinds[kind] and kind != "still failing"
    ]
    newest = f"The newest of {n_commits} commits"
    if not parts:
        return f"{newest} changed nothing."
    touched = _groups(pair, {kind for kind, _ in KINDS} - {"still failing"})
    return f"{newest} changed {plural(_changed(kinds), 'cell')}: {', '.join(parts)} ({touched})."


def _changed(kinds: Counter[str]) -> int:
    return sum(kinds[kind] for kind, _ in KINDS if kind != "still failing")


def groups_of(pair: Neighbours, kinds: Collection[str]) -> Counter[str]:
    """How many cells of each solver an overview calls one of some kinds."""
    return Counter(cell.cell.group for cell in pair.comparison.cells if pair.kind(cell) in kinds)


def _groups(pair: Neighbours, kinds: Collection[str]) -> str:
    found = groups_of(pair, kinds)
    if len(found) == 1:
        return next(iter(found))
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0].casefold()))
    named = [f"{name} {n}" for name, n in ordered[:_NAMED]]
    rest = len(ordered) - _NAMED
    return ", ".join(named) + (f" and {plural(rest, 'other solver')}" if rest > 0 else "")


def ratio_words(ratio: float | None) -> str:
    """A ratio to three digits, or as many as tell it from 1: "×1.93"; empty if there is none."""
    if ratio is None:
        return ""
    if not 0.1 <= ratio < 10:
        return f"{TIMES}{ratio:.3g}"
    exact = ratio == 1
    texts = [f"{ratio:.{places}f}" for places in (2, 3, 4)]
    return TIMES + next((text for text in texts if exact or float(text) != 1), texts[-1])


def notes(pair: Neighbours) -> list[str]:
    """What a reader must know before trusting the comparison."""
    found = [_sentence(each) for each in (*pair.notes, *words.notes(pair.comparison))]
    if pair.crept:
        cells = [f"{key.cell.name}, {key.measure.replace('_', ' ')}" for key in pair.crept]
        found.append(
            f"{plural(len(pair.crept), 'value')} got beyond the bound by several small changes, "
            f"measured from the last step: {'; '.join(cells[:5])}"
            + (f" and {len(cells) - 5} more." if len(cells) > 5 else ".")
        )
    if pair.left:
        found.append(
            f"{plural(len(pair.left), 'value')} left for this commit alone and came back with the "
            "next one: a blip."
        )
    if pair.back:
        found.append(f"{plural(len(pair.back), 'value')} came back from a blip.")
    return found


def _sentence(note: str) -> str:
    return f"{capitalised(note)}."
