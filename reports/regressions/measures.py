"""What the values of benchmarks are of: titles, units, directions, and what change is accepted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...data_loaders import suggest
from .. import formatting
from ..comparison.measured import parse_bound
from ..errors import ReportError
from .asv_files import FAILED

_MEBIBYTE = 2.0**20


@dataclass(frozen=True)
class Watched:
    """A measure of benchmarks, and the change of it that is accepted.

    A change is beyond its bound where it exceeds both the relative and the absolute one.

    Attributes
    ----------
    name, title, unit : str
    relative : float
        Of the value before.
    absolute : float
        In the unit.
    gates : bool
        Whether a worsening beyond the bound fails the gate. Times and memory only advise: the
        machine and the compiler have a part in them.
    better : {"less", "more"}
    """

    name: str
    title: str
    unit: str = ""
    relative: float = 0.01
    absolute: float = 0.0
    gates: bool = True
    better: str = "less"

    @property
    def is_time(self) -> bool:
        """Whether it is a time, which has samples and depends on the machine."""
        return self.unit == "seconds"

    def beyond(self, before: float, after: float) -> float:
        """How many times its bound a change is; positive for a worsening."""
        change = after - before if self.better == "less" else before - after
        if change == 0:
            return 0.0
        bound = max(self.relative * abs(before), self.absolute)
        return change / bound if bound > 0 else math.copysign(math.inf, change)

    def say(self, value: float) -> str:
        """The value with its unit."""
        if self.unit == "seconds":
            return formatting.seconds(value)
        if self.unit == "bytes":
            return formatting.megabytes(value / 1e6)
        if self.unit == "%":
            return f"{formatting.decimals(value, 2)}{formatting.THIN}%"
        if value == round(value):
            return formatting.integer(value)
        return f"{value:.4g}"

    @property
    def bound_words(self) -> str:
        """The bound in words."""
        if not self.gates:
            return "advice only"
        parts = []
        if self.relative:
            parts.append(f"{100 * self.relative:g}{formatting.THIN}%")
        if self.absolute:
            of_bytes = self.unit == "bytes"
            size = f"{self.absolute / _MEBIBYTE:g}" if of_bytes else f"{self.absolute:g}"
            unit = {"%": " points", "bytes": " MiB", "": ""}.get(self.unit, f" {self.unit}")
            parts.append(f"{size}{unit}")
        return " and ".join(parts) or "any change"


#: Measures of the suites. They are deterministic but for time and memory, so a bound is there for
#: changes that no one would call one, such as another order of a sum.
_KNOWN = (
    Watched(FAILED, "failed", relative=0.0),
    Watched("unsolved", "without a certificate", relative=0.0),
    Watched("evaluations", "evaluations asked"),
    Watched("evaluations_computed", "evaluations computed"),
    Watched("iterations", "iterations"),
    Watched("products", "products with the matrix"),
    Watched("support_vectors", "support vectors", relative=0.02, absolute=1.0),
    Watched("test_error", "test error", "%", relative=0.0, absolute=0.5),
    Watched("suboptimality", "suboptimality", relative=0.1, absolute=5e-4),
    # Of the exact solver on thousands of points. When it leaves a sub-problem depends on rounding.
    Watched("pairs_moved", "pairs moved", relative=0.2),
    Watched("entries_asked", "entries asked", relative=0.2),
    Watched("violation", "violation", relative=0.1),
)
KNOWN: Mapping[str, Watched] = MappingProxyType({each.name: each for each in _KNOWN})
_TIME = Watched("time", "time", "seconds", relative=0.1, gates=False)
_MEMORY = Watched(
    "memory", "peak memory", "bytes", relative=0.1, absolute=8 * _MEBIBYTE, gates=False
)
_PREFIXES = {"time_": _TIME, "timeraw_": _TIME, "peakmem_": _MEMORY, "mem_": _MEMORY}
#: Names of measures of which any method of a benchmark may be one.
FAMILIES = ("time", "memory")


def watched(name: str, unit: str = "", bounds: Mapping[str, float] | None = None) -> Watched:
    """The measure of a name that :class:`Key` has, with bounds of the user.

    Parameters
    ----------
    name : str
    unit : str
        That asv recorded, for measures of other suites.
    bounds : mapping of str to float, optional
        From :func:`parsed_bounds`.
    """
    found = KNOWN.get(name) or _of_prefix(name) or Watched(name, name.replace("_", " "), unit)
    family = {"seconds": "time", "bytes": "memory"}.get(found.unit, name)
    bound = (bounds or {}).get(name, (bounds or {}).get(family))
    if bound is None:
        return found
    if math.isinf(bound):
        return replace(found, gates=False)
    if found.unit == "%":
        return replace(found, absolute=bound, relative=0.0, gates=True)
    return replace(found, relative=bound - 1, absolute=0.0, gates=True)


def _of_prefix(name: str) -> Watched | None:
    for prefix, family in _PREFIXES.items():
        if name.startswith(prefix):
            what = name.removeprefix(prefix).replace("_", " ")
            return replace(family, name=name, title=f"{family.title}, {what}")
    return None


def parsed_bounds(given: Iterable[str], known: Iterable[str]) -> dict[str, float]:
    """Bounds from texts such as ``evaluations=1.05``, ``test_error=1pt`` and ``memory=off``.

    Parameters
    ----------
    given : iterable of str
    known : iterable of str
        The names of the measures that there are.

    Raises
    ------
    ReportError
        If one is none; the message says what is.
    """
    names = sorted({*known, *KNOWN, *FAMILIES} - {FAILED})
    found = {}
    for text in (part.strip() for item in given for part in item.split(",")):
        name, _, value = (part.strip() for part in text.partition("="))
        if name not in names:
            near = suggest(name, names)
            raise ReportError(
                f"--bound {text!r}: no measure {name!r}{near}; give NAME=VALUE such as "
                "evaluations=1.05 or test_error=1pt"
            )
        found[name] = parse_bound(text, value, in_points=watched(name).unit == "%")
    return found
