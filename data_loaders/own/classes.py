"""From the target's words to labels: which classes there are, and which one is positive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..content import Labels
from ..errors import DataError, suggest
from .words import in_words, is_number, listed, shown_word

#: More of them are no classes, or whole numbers that stand for something else.
MAX_CLASSES = 1000
_MAX_FRACTIONS = 20
#: A whole number without zeros before it, and none but zeros behind its point.
_WHOLE = re.compile(r"([+-]?)(0|[1-9][0-9]*)(?:\.0*)?")
#: Of two classes these words name the positive one, in any case.
_YES = ("1", "yes", "true", "positive", "pos", "y", "t")


@dataclass(frozen=True)
class Target:
    """The classes in ascending order (numbers by value, before texts), and that of each row.

    A code is a position in `words`, or -1 where the target is missing.
    """

    codes: NDArray[np.int64]
    words: tuple[str, ...]

    def counts(self, rows: NDArray[np.intp]) -> dict[str, int]:
        """How many of the rows are of each class."""
        sizes = np.bincount(self.codes[rows], minlength=len(self.words))
        return dict(zip(self.words, sizes.tolist(), strict=True))


def read_target(column: Any, origin: str, name: str) -> Target:
    """The classes of a column of texts or numbers.

    Raises `DataError` if there are too many distinct values for classes, or fractions.
    """
    encoded = pc.dictionary_encode(column.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    raw = encoded.dictionary.to_pylist()
    positions: NDArray[Any] = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    fractions = sum(1 for value in raw if _is_fraction(value))
    if len(raw) > MAX_CLASSES or fractions > _MAX_FRACTIONS:
        raise DataError(
            f"{origin}: the target {shown_word(name)} has {len(raw)} distinct values; is it a "
            "regression target? Name the column of the classes with target"
        )
    spelt = [_spelt(value) for value in raw]
    words = tuple(sorted(set(spelt), key=_order))
    position = {word: code for code, word in enumerate(words)}
    table = np.array([*(position[word] for word in spelt), -1], dtype=np.int64)
    return Target(table[positions], words)


@dataclass(frozen=True)
class Labelling:
    """The label of each class, and of those that the training part lacks (None: refused).

    `positive` is the positive class; empty where there are several.
    """

    values: dict[str, int]
    rest: int | None
    positive: str

    def labels(self, target: Target, rows: NDArray[np.intp], origin: str) -> Labels:
        """The labels of rows; `DataError` for a class that the training part has none of."""
        kind = np.int8 if self.positive else np.int64
        unknown = [word for word in target.words if word not in self.values]
        codes = target.codes[rows]
        if unknown and self.rest is None:
            for word in unknown:
                if (codes == target.words.index(word)).any():
                    raise DataError(
                        f"{origin}: the class {shown_word(word)} occurs in the test part only; "
                        "set positive to tell one class from the rest"
                    )
        table = np.array([self.values.get(word, self.rest or 0) for word in target.words])
        return cast(Labels, table.astype(kind)[codes])


def decide(words: Sequence[str], counts: Sequence[int], positive: str, origin: str) -> Labelling:
    """Decide what the labels are of the classes of the training part, which are ascending.

    With two classes and no `positive`, the positive class is the one that is called "1", "yes",
    "true", "positive", "pos", "y" or "t" if the other is not; else the rarer one, or the last one
    if they are equally frequent. With more classes, or with "none", all are kept. Raises
    `DataError` if there are fewer than two classes, or none is called `positive`.
    """
    if len(words) < 2:
        only = shown_word(words[0]) if words else "none"
        raise DataError(
            f"{origin}: one class only ({only}) in the training part; two are needed, is target "
            "the right column?"
        )
    if positive and positive != "none":
        named = _spelt(positive)
        if named not in words:
            hint = suggest(positive, words)
            hint = hint if hint.startswith(" (did") else f" (classes: {listed(list(words))})"
            raise DataError(f"{origin}: positive = {positive!r} is no class{hint}")
        return Labelling({word: 1 if word == named else -1 for word in words}, -1, named)
    if positive == "none" or len(words) > 2:
        whole = all(_WHOLE.fullmatch(word) and abs(float(word)) <= 2**53 for word in words)
        values = {word: int(word) if whole else code for code, word in enumerate(words)}
        return Labelling(values, None, "")
    yes = [word for word in words if word.casefold() in _YES]
    rarer = words[0] if counts[0] < counts[1] else words[1]
    chosen = yes[0] if len(yes) == 1 else rarer
    return Labelling({word: 1 if word == chosen else -1 for word in words}, None, chosen)


def describe(labelling: Labelling, train: dict[str, int], test: dict[str, int]) -> str:
    """The classes with their labels and counts, in a line."""
    parts = []
    for word, label in sorted(labelling.values.items(), key=lambda item: -item[1]):
        sign = f"{label:+d}" if labelling.positive else str(label)
        same = not labelling.positive and word == str(label)
        shown = sign if same else f"{sign} = {shown_word(word)}"
        parts.append(f"{shown} ({train.get(word, 0)} training, {test.get(word, 0)} test rows)")
    if not labelling.positive:
        parts.reverse()
    return listed(parts)


def _is_fraction(value: Any) -> bool:
    if isinstance(value, str):
        return is_number(value) and not float(value).is_integer()
    return value is not None and not float(value).is_integer()


def _spelt(value: Any) -> str:
    """The word of a class, the same for "1", "+1", "1.0", "1e0" and 1.0.

    Texts that are not the same whole number stay apart: "007" and "7", "1.1" and "1.10".
    """
    if not isinstance(value, str):
        return in_words(value)
    if whole := _WHOLE.fullmatch(value):
        sign, digits = whole.groups()
        return digits if sign != "-" or digits == "0" else f"-{digits}"
    if is_number(value) and "e" in value.lower() and float(value).is_integer():
        return in_words(float(value))
    return value


def _order(word: str) -> tuple[int, float, str]:
    return (0, float(word), word) if is_number(word) else (1, 0.0, word)
