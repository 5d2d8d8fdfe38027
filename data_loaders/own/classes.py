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
    """The classes of rows.

    Attributes
    ----------
    codes : int64 ndarray
        Of each row its position in `words`; -1 where the target is missing.
    words : tuple of str
        In ascending order: numbers by value, before texts.
    """

    codes: NDArray[np.int64]
    words: tuple[str, ...]

    def counts(self, rows: NDArray[np.intp]) -> dict[str, int]:
        """How many of the rows are of each class."""
        sizes = np.bincount(self.codes[rows], minlength=len(self.words))
        return dict(zip(self.words, sizes.tolist(), strict=True))


def read_target(column: Any, origin: str, name: str) -> Target:
    """The classes of a column.

    Parameters
    ----------
    column : ChunkedArray of Arrow
        Texts, or float64.
    origin, name : str
        What messages call the file and the column.

    Raises
    ------
    DataError
        If there are too many distinct values for classes, or fractions.
    """
    encoded = pc.dictionary_encode(column.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    raw = encoded.dictionary.to_pylist()
    found: NDArray[Any] = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
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
    return Target(table[found], words)


@dataclass(frozen=True)
class Labelling:
    """How classes become labels.

    Attributes
    ----------
    values : dict
        Label of each class.
    rest : int or None
        Label of classes that the training part has none of; None: they are refused.
    positive : str
        The positive class; empty where there are several.
    """

    values: dict[str, int]
    rest: int | None
    positive: str

    def labels(self, target: Target, rows: NDArray[np.intp], origin: str) -> Labels:
        """The labels of rows.

        Raises
        ------
        DataError
            For a class that the training part has none of.
        """
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
    """Decide what the labels are.

    With two classes and no `positive`, the positive class is the one that is called "1", "yes",
    "true", "positive", "pos", "y" or "t" if the other is not; else the rarer one, or the last one
    if they are equally frequent. With more classes, all are kept.

    Parameters
    ----------
    words : sequence of str
        The classes of the training part, ascending.
    counts : sequence of int
        Their rows.
    positive : str
        A class, "none", or empty.
    origin : str

    Raises
    ------
    DataError
        If there are fewer than two classes, or none is called `positive`.
    """
    if len(words) < 2:
        found = shown_word(words[0]) if words else "none"
        raise DataError(
            f"{origin}: one class only ({found}) in the training part; two are needed, is target "
            "the right column?"
        )
    if positive and positive != "none":
        named = _spelt(positive)
        if named not in words:
            raise DataError(
                f"{origin}: positive = {positive!r} is no class{_hint(positive, words)}"
            )
        return _against_the_rest(words, named, rest=-1)
    if positive == "none" or len(words) > 2:
        return Labelling(_several(words), None, "")
    return _against_the_rest(words, _default(words, counts), rest=None)


def told(labelling: Labelling, train: dict[str, int], test: dict[str, int]) -> str:
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


def _default(words: Sequence[str], counts: Sequence[int]) -> str:
    yes = [word for word in words if word.casefold() in _YES]
    if len(yes) == 1:
        return yes[0]
    return words[0] if counts[0] < counts[1] else words[1]


def _against_the_rest(words: Sequence[str], positive: str, rest: int | None) -> Labelling:
    return Labelling({word: 1 if word == positive else -1 for word in words}, rest, positive)


def _several(words: Sequence[str]) -> dict[str, int]:
    if all(_is_integer(word) for word in words):
        return {word: int(word) for word in words}
    return {word: code for code, word in enumerate(words)}


def _hint(word: str, words: Sequence[str]) -> str:
    hint = suggest(word, words)
    return hint if hint.startswith(" (did") else f" (classes: {listed(list(words))})"


def _is_integer(word: str) -> bool:
    return _WHOLE.fullmatch(word) is not None and abs(float(word)) <= 2**53


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
