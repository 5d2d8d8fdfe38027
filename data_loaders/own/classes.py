"""From the target's words to labels: which classes there are, and which one is positive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..content import Labels
from ..errors import DataError, nearest
from .words import in_words, is_number, listed, shown_word

#: More of them are no classes, or whole numbers that stand for something else.
MAX_CLASSES = 1000
_MAX_FRACTIONS = 20
#: A whole number without zeros before it, and none but zeros behind its point.
_WHOLE = re.compile(r"([+-]?)(0|[1-9][0-9]*)(?:\.0*)?")
#: Of two classes these words name the positive one, in any case.
_YES = ("1", "yes", "true", "positive", "pos", "y", "t")


@dataclass(frozen=True, eq=False)
class Target:
    """The classes in ascending order (numbers by value, before texts), and that of each row.

    A code is a position in `words`, or -1 where the target is missing.
    """

    codes: NDArray[np.int64]
    words: tuple[str, ...]


def read_target(column: Any, origin: str, name: str) -> Target:
    """The classes of a column of texts or numbers.

    Raises `DataError` if there are too many distinct values for classes, or fractions.
    """
    encoded = pc.dictionary_encode(column.combine_chunks())
    raw = encoded.dictionary.to_pylist()
    positions: NDArray[Any] = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    spelt = [_spelt(value) for value in raw]
    fractions = sum(is_number(word) and not float(word).is_integer() for word in spelt)
    if len(raw) > MAX_CLASSES or fractions > _MAX_FRACTIONS:
        raise DataError(
            f"{origin}: the target {shown_word(name)} has {len(raw)} distinct values; is it a "
            "regression target? Name the column of the classes with target"
        )
    words = tuple(sorted(set(spelt), key=_order))
    position = {word: code for code, word in enumerate(words)}
    table = np.array([*(position[word] for word in spelt), -1], dtype=np.int64)
    return Target(table[positions], words)


def label(
    target: Target, train: NDArray[np.intp], test: NDArray[np.intp], positive: str, origin: str
) -> tuple[Labels, Labels, str]:
    """The labels of the rows of each part, and what they stand for in a line.

    With two classes and no `positive`, the positive class is the one that is called "1", "yes",
    "true", "positive", "pos", "y" or "t" if the other is not; else the rarer one, or the last one
    if they are equally frequent. With more classes, or with "none", all are kept. Raises
    `DataError` if there are fewer than two classes, or none is called `positive`, or one that is
    kept is in the test part only.
    """
    n_train, n_test = (
        dict(zip(target.words, np.bincount(codes, minlength=len(target.words)), strict=True))
        for codes in (target.codes[train], target.codes[test])
    )
    words = [word for word in target.words if n_train[word]]
    if len(words) < 2:
        raise DataError(
            f"{origin}: one class only ({', '.join(map(shown_word, words))}) in the training part; "
            "two are needed, is target the right column?"
        )
    if chosen := _positive(words, n_train, positive, origin):
        values = {word: 1 if word == chosen else -1 for word in words}
    else:
        whole = all(_WHOLE.fullmatch(word) and abs(float(word)) < 2**53 for word in words)
        values = {word: int(word) if whole else code for code, word in enumerate(words)}
    for word in target.words:
        if n_test[word] and word not in values and positive in ("", "none"):
            raise DataError(
                f"{origin}: the class {shown_word(word)} occurs in the test part only; set "
                "positive to tell one class from the rest"
            )
    table = np.array([values.get(word, -1) for word in target.words])
    table = table.astype(np.int8 if chosen else np.int64)
    y_train, y_test = (cast(Labels, table[target.codes[rows]]) for rows in (train, test))
    if (y_test == y_test[0]).all():
        raise DataError(
            f"{origin}: one class only in the test part (label {y_test[0]}); two are needed"
        )
    lines = []
    for word, value in sorted(values.items(), key=lambda item: -item[1] if chosen else item[1]):
        sign = f"{value:+d}" if chosen else str(value)
        shown = sign if word == sign else f"{sign} = {shown_word(word)}"
        lines.append(f"{shown} ({n_train[word]} training, {n_test[word]} test rows)")
    return y_train, y_test, listed(lines)


def _positive(words: Sequence[str], counts: dict[str, int], positive: str, origin: str) -> str:
    """The positive one of the classes; empty if all are kept."""
    if positive == "none" or (not positive and len(words) > 2):
        return ""
    if positive:
        named = _spelt(positive)
        if named not in words:
            hint = nearest(positive, words) or f" (classes: {listed(list(words))})"
            raise DataError(f"{origin}: positive = {positive!r} is no class{hint}")
        return named
    yes = [word for word in words if word.casefold() in _YES]
    return yes[0] if len(yes) == 1 else min(reversed(words), key=lambda word: counts[word])


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
