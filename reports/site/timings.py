"""Files of timings that pytest-benchmark wrote, read with suspicion: anybody may have written them.

``pytest --benchmark-json FILE`` and ``--benchmark-autosave`` write them. Times are seconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...harness.words import visible
from ..errors import ReportError

#: A larger file is none of ours: one with all rounds of the suite has some megabytes.
LARGEST_BYTES = 64 * 2**20
_MOST_BENCHMARKS = 5000
# Characters of a name, and of a text beside the times; fields beside the times.
_NAME_LIMIT, _TEXT_LIMIT, _MOST_FIELDS = 200, 60, 40
# What Python's clocks measure.
_CLOCKS = {"perf_counter": "Wall-clock time", "process_time": "CPU time"}
# Quartiles are interpolated, so two that are equal can differ by rounding.
_ROUNDING = 1e-9

#: What a benchmark stores beside its times.
Extra = float | int | str
_Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
_Text = Annotated[str, Field(max_length=10_000)]


@dataclass(frozen=True)
class Timing:
    """The times of one benchmark.

    Attributes
    ----------
    group : str
        Empty if it has none.
    label : str
        What names it within its group.
    fullname : str
        What names it in any file: the test's id.
    rounds : int
    low, q1, median, q3, high : float
        Of the rounds, in seconds: least, quartiles, greatest.
    extra : mapping of str to (float, int or str)
        What the test stored beside: ``extra_info`` without nested values.
    """

    group: str
    label: str
    fullname: str
    rounds: int
    low: float
    q1: float
    median: float
    q3: float
    high: float
    extra: Mapping[str, Extra]


@dataclass(frozen=True, order=True)
class Machine:
    """What times must share to be compared: the machine, and the clock that took them.

    ``node`` is its name in the network, never shown.
    """

    processor: str
    cores: str
    memory: str
    system: str
    clock: str
    node: str

    @property
    def words(self) -> str:
        """What a reader sees of it."""
        parts = (self.processor, self.cores, self.memory, self.system)
        machine = ", ".join(filter(None, parts)) or "unknown machine"
        return f"{self.clock} on {machine}" if self.clock else machine


@dataclass(frozen=True)
class TimingFile:
    """One file.

    Attributes
    ----------
    title : str
    machine : Machine
    setting : mapping of str to str
        What else times depend on: versions by name.
    commit : str
        Its first digits, and whether files differed from it; empty if unknown.
    date : str
        Of the measurement.
    timings : tuple of Timing
        In the order of the file.
    """

    title: str
    machine: Machine
    setting: Mapping[str, str]
    commit: str
    date: str
    timings: tuple[Timing, ...]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Stats(_Part):
    min: _Seconds
    q1: _Seconds
    median: _Seconds
    q3: _Seconds
    max: _Seconds
    rounds: Annotated[int, Field(ge=1, le=10**12)]

    @model_validator(mode="after")
    def _in_order(self) -> _Stats:
        values = (self.min, self.q1, self.median, self.q3, self.max)
        if any(high < low * (1 - _ROUNDING) for low, high in pairwise(values)):
            raise ValueError("min, q1, median, q3 and max are not in ascending order")
        return self


class _Benchmark(_Part):
    group: _Text | None = None
    name: _Text
    fullname: _Text
    param: _Text | None = None
    params: dict[str, Any] | None = None
    extra_info: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    stats: _Stats

    @model_validator(mode="after")
    def _finite(self) -> _Benchmark:
        for name, value in self.extra_info.items():
            if isinstance(value, int | float) and not abs(value) <= 1e300:
                raise ValueError(f"extra_info {visible(name, 40)!r} is not a finite number")
        return self


class _File(_Part):
    machine_info: dict[str, Any]
    commit_info: dict[str, Any]
    benchmarks: Annotated[list[_Benchmark], Field(min_length=1, max_length=_MOST_BENCHMARKS)]
    datetime: _Text
    version: _Text


def read_timings(path: Path, title: str) -> TimingFile:
    """Read one file.

    Parameters
    ----------
    path : Path
    title : str
        What it is called on pages.

    Returns
    -------
    TimingFile

    Raises
    ------
    ReportError
        If it cannot be read, is too large, or is not one of pytest-benchmark's.
    """
    try:
        found = _File.model_validate_json(_content(path))
    except ValidationError as error:
        raise _foreign(path, _first(error)) from None
    names = Counter(item.fullname for item in found.benchmarks)
    [(name, times)] = names.most_common(1)
    if times > 1:
        raise _foreign(path, f"{visible(name, _NAME_LIMIT)!r} is in it {times} times")
    return TimingFile(
        title=visible(title, _NAME_LIMIT),
        machine=_machine(found.machine_info, found.benchmarks),
        setting=_setting(found.machine_info),
        commit=_commit(found.commit_info),
        date=visible(found.datetime, _TEXT_LIMIT)[:16].replace("T", " "),
        timings=_timings(found.benchmarks),
    )


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as source:
            content = source.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ReportError(
            f"{path}: cannot be read ({error.strerror}); 'pytest --benchmark-only "
            "--benchmark-json FILE' writes such a file"
        ) from None
    if len(content) > LARGEST_BYTES:
        raise _foreign(path, f"it is larger than {LARGEST_BYTES // 2**20} MiB")
    return content


def _foreign(path: Path, why: str) -> ReportError:
    return ReportError(
        f"{path}: no file of pytest-benchmark ({why}); give one that "
        "'pytest --benchmark-only --benchmark-json FILE' writes"
    )


def _first(error: ValidationError) -> str:
    """Where the first problem is, what it is, and the value if that is short."""
    problem = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    value = problem["input"]
    shown = f", not {value!r}" if isinstance(value, str | int | float) and place else ""
    text = f"{place}: {message[:1].lower()}{message[1:]}" if place else message
    return visible(text, 160) + (visible(shown, 60) if shown else "")


def _timings(found: list[_Benchmark]) -> tuple[Timing, ...]:
    groups: dict[str, list[_Benchmark]] = {}
    for item in found:
        groups.setdefault(item.group or "", []).append(item)
    labels = {
        item.fullname: label
        for members in groups.values()
        for item, label in zip(members, _labels(members), strict=True)
    }
    return tuple(
        Timing(
            group=visible(item.group or "", _NAME_LIMIT),
            label=visible(labels[item.fullname], _NAME_LIMIT),
            fullname=item.fullname,
            rounds=item.stats.rounds,
            low=item.stats.min,
            q1=item.stats.q1,
            median=item.stats.median,
            q3=item.stats.q3,
            high=item.stats.max,
            extra=_extra(item.extra_info),
        )
        for item in found
    )


def _labels(members: list[_Benchmark]) -> list[str]:
    """The shortest names that tell the benchmarks of a group apart."""
    last = [str(list((item.params or {"": ""}).values())[-1]) for item in members]
    names = [item.name.removeprefix("test_") for item in members]
    choices = [last, [item.param or "" for item in members], names]
    for labels in choices:
        if len(set(labels)) == len(labels) and all(labels):
            return labels
    return [item.fullname for item in members]


def _extra(given: Mapping[str, Any]) -> dict[str, Extra]:
    """Numbers and texts; lists and tables have no place in a cell."""
    found: dict[str, Extra] = {}
    for name, value in list(given.items())[:_MOST_FIELDS]:
        if isinstance(value, bool):
            found[visible(name, _TEXT_LIMIT)] = "yes" if value else "no"
        elif isinstance(value, str):
            found[visible(name, _TEXT_LIMIT)] = visible(value, _TEXT_LIMIT)
        elif isinstance(value, int | float):
            found[visible(name, _TEXT_LIMIT)] = value
    return found


def _machine(info: Mapping[str, Any], timed: list[_Benchmark]) -> Machine:
    processor = _table(info.get("cpu"))
    cores = _number(processor.get("count"))
    memory = _number(info.get("memory_mb"))
    return Machine(
        processor=_text(processor.get("brand_raw")) or _text(info.get("processor")),
        cores=f"{cores:.0f} cores" if cores else "",
        memory=f"{memory / 1000:.0f} GB" if memory else "",
        system=" ".join(filter(None, (_text(info.get("system")), _text(info.get("machine"))))),
        clock=" and ".join(sorted({_clock(item) for item in timed} - {""})),
        node=_text(info.get("node")),
    )


def _clock(timed: _Benchmark) -> str:
    name = _text(timed.options.get("timer"))
    return _CLOCKS.get(name, name)


def _setting(info: Mapping[str, Any]) -> dict[str, str]:
    found = {
        _text(info.get("python_implementation")) or "Python": _text(info.get("python_version")),
        _text(info.get("system")) or "Release": _text(info.get("release")),
    }
    found |= {visible(str(name), 30): _text(value) for name, value in _libraries(info)}
    found["BLAS"] = _text(info.get("blas"))
    return {name: value for name, value in found.items() if value}


def _libraries(info: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(_table(info.get("libraries")).items())[:_MOST_FIELDS]


def _commit(info: Mapping[str, Any]) -> str:
    commit = _text(info.get("id"))[:10]
    return f"{commit}, with changes" if commit and info.get("dirty") is True else commit


def _text(value: Any) -> str:
    return visible(value, _NAME_LIMIT) if isinstance(value, str) else ""


def _number(value: Any) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and 0 < value < 1e12 and math.isfinite(value) else 0.0


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
