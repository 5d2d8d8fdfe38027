"""How numbers read, the same on the page, in figures and in the terminal; names made of labels."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from ..harness.results.measures import Format, Measure
from ..harness.words import plural as plural

#: Narrow no-break space: between a number and its unit.
THIN = "\N{NARROW NO-BREAK SPACE}"
#: No-break space: between words that belong together.
FIXED = "\N{NO-BREAK SPACE}"
#: Stands for a value that there is none of, and between two ends of a range.
DASH = "\N{EN DASH}"
#: Before a value that is only known to be at most, or at least, what is shown.
AT_MOST, AT_LEAST = f"≤{THIN}", f"≥{THIN}"
#: Stands for a cost of what never happened.
NEVER = "never"
TIMES = "\N{MULTIPLICATION SIGN}"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Letters of a word that a column is not widened for.
_LONG = 18
#: Of large counts, the largest first.
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def percent(value: float) -> str:
    """A fraction as a percentage: 0.0123 is "1.23 %"."""
    if value == 0:
        return f"0{THIN}%"
    scaled = 100 * value
    return (f"{scaled:.2f}" if abs(scaled) >= 0.1 else f"{scaled:.2g}") + f"{THIN}%"


def count(value: float) -> str:
    """A large count to three digits: 4534812 is "4.53M"; below 1000 as it is."""
    for size, prefix in PREFIXES:
        # 999 950 is "1.00M", not "1000k".
        if abs(value) >= size * 0.9995:
            return f"{_three_digits(value / size)}{prefix}"
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def integer(value: float) -> str:
    """A count in full: 12345 is "12,345"; a median between two integers keeps its half."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def seconds(value: float) -> str:
    """A time to three digits: "4.56 ms", "1.23 s", "3,600 s"."""
    if value >= 999.5:
        return f"{value:,.0f}{THIN}s"
    if value >= 0.9995 or value == 0:
        return f"{_three_digits(value)}{THIN}s"
    return f"{_three_digits(value * 1e3)}{THIN}ms"


def megabytes(value: float) -> str:
    """A size in full megabytes: 1234.5 is "1,234 MB"."""
    return f"{value:,.0f}{THIN}MB"


def decimals(value: float, places: int) -> str:
    """With a true minus sign, and without one at zero: -1.26 to one place is "−1.3"."""
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")


def scientific(value: float) -> str:
    """Two digits and a power of ten: 0.00123 is "1.2×10⁻³"; 0 is "0"."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}{TIMES}{power_of_ten(int(exponent))}"


def power_of_ten(exponent: int) -> str:
    """10 with a superscript exponent."""
    return f"10{str(exponent).translate(_SUPERSCRIPT)}"


def spread(low: str, high: str) -> str:
    """A range with its unit once, as in "1.23-1.31 %"; empty if both ends read the same."""
    if low == high:
        return ""
    split = [re.fullmatch(r"([\d.,]+)(.*)", text) for text in (low, high)]
    if split[0] is None or split[1] is None or split[0][2] != split[1][2]:
        return f"{low}{DASH}{high}"
    digits, unit = f"{split[0][1]}{DASH}{split[1][1]}", split[0][2]
    return f"({digits}){unit}" if unit.startswith(TIMES) else f"{digits}{unit}"


def some(words: Iterable[str], most: int) -> str:
    """The first words of a list, and how many more there are: "a, b and 3 more"."""
    words = list(words)
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def has_long_word(text: str) -> bool:
    """Whether some word of a text is longer than a narrow column may become."""
    return any(len(word) > _LONG for word in text.split())


def plain(value: float) -> str:
    """A parameter as it would be written: shortest text that reads back as the same number."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _three_digits(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(abs(float(f"{value:.2e}"))))
    return f"{value:.{max(digits, 0)}f}"


#: How a value of a measure reads, by the name of its format.
FORMATS: Mapping[Format, Callable[[float], str]] = MappingProxyType(
    {
        "percent": percent,
        "count": count,
        "integer": integer,
        "seconds": seconds,
        "scientific": scientific,
        "number": plain,
        "megabytes": megabytes,
    }
)


def say(measure: Measure, value: float) -> str:
    """A value of a measure as its format reads; an infinite cost is "never"."""
    return NEVER if math.isinf(value) else FORMATS[measure.format](value)


# A name stays readable, and its file's name within what every system allows.
_LONGEST = 60
_NAMELESS = "unnamed"


def slug(label: str, otherwise: str = _NAMELESS) -> str:
    """A label as lower-case letters, digits and single hyphens: "κ = 1.5" is "kappa-1-5".

    Greek letters are spelled out and accents are dropped. What has no such form is left out, and a
    long name loses its end. Lower case alone: names that differ only in case are one name on some
    file systems.
    """
    spelled = "".join(_spelled(letter) for letter in unicodedata.normalize("NFKD", label))
    words = re.sub(r"[^a-z0-9]+", "-", spelled.lower()).strip("-")
    return words[:_LONGEST].rstrip("-") or otherwise


def slugs(labels: Iterable[str]) -> dict[str, str]:
    """A slug for each label, in order; of labels with the same slug later ones are numbered."""
    by_label: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        name = unused(slug(label), taken)
        taken.add(name)
        by_label[label] = name
    return by_label


def unused(name: str, taken: Iterable[str], between: str = "-") -> str:
    """The name, or where it is taken with the first number from 2 on that makes it another."""
    taken = set(taken)
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}{between}{number}"
    return candidate


def _spelled(letter: str) -> str:
    if letter.isascii():
        return letter
    words = unicodedata.name(letter, "").split()
    return f" {words[-1]} " if words[:1] == ["GREEK"] and "LETTER" in words else ""
