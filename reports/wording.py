"""Tasks and parameters in words, and the words that kinds of studies have of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..solvers.kernels import kernel_class, kernel_names
from . import formatting
from .described import Study, SvmTask


@dataclass(frozen=True)
class KindWords:
    """What a kind of studies calls its tasks, its solvers, and the seeds of its runs."""

    task: str
    solver: str
    seed: str


@dataclass(frozen=True)
class Finding:
    """What the data say on one question.

    Attributes
    ----------
    question : str
        The target and the cost, or what is compared.
    answer : str
        Who won.
    detail : str
        By how much and how surely; empty where the answer says it.
    """

    question: str
    answer: str
    detail: str = ""

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        return f"{self.question}: {self.answer}{self.detail}."


_DEFAULT_WORDS = KindWords("task", "solver", "seed")
_KIND_WORDS: Mapping[str, KindWords] = MappingProxyType(
    {"feasibility": KindWords("problem", "method", "instance")}
)


def kind_words(kind: str) -> KindWords:
    """The words of a kind of studies."""
    return _KIND_WORDS.get(kind, _DEFAULT_WORDS)


def capitalised(words: str) -> str:
    """The words with a capital at their beginning; the others as they are."""
    return words[:1].upper() + words[1:]


def part_of_study(study: Study, words: KindWords) -> list[str]:
    """A sentence where only a part of the study was ever run, else none."""
    if study.of is None:
        return []
    parts = [
        f"{len(shown)} of {formatting.plural(total, word)}"
        for shown, total, word in (
            ({run.task for run in study.planned}, study.of.tasks, words.task),
            ({run.solver for run in study.planned}, study.of.solvers, words.solver),
        )
        if len(shown) < total
    ]
    if parts:
        return [f"Only a part of the study was run: {' and '.join(parts)}."]
    if len(study.planned) < study.of.runs:
        return [f"Only a part of the study was run: {len(study.planned)} of {study.of.runs} runs."]
    return []


def kernel_words(task: SvmTask, total: float | None = None) -> list[str]:
    """The kernel, its parameters, C and the bias of a task, as parts of a list.

    With ``total``, that of tasks which share this C n and not C.
    """
    name = str(task.kernel.get("name", ""))
    words, symbols = f"{name} kernel", {}
    # Records may name a kernel that this version does not have.
    if name in kernel_names():
        kernel = kernel_class(name)
        words = kernel.words
        symbols = {key: known.symbol for key, known in kernel.parameters().items() if known.symbol}
    given = {key: value for key, value in task.kernel.items() if key != "name"}
    given |= {"C": task.C} if total is None else {"C n": total}
    values = [
        f"{symbols.get(key, key)} tuned over {', '.join(map(_value, task.tune[key]))}"
        if key in task.tune
        else f"{symbols.get(key, key)} = {_value(value)}"
        for key, value in given.items()
        # A width that follows from the data is not known where they could not be loaded.
        if value is not None
    ]
    bias = "with bias" if task.fit_intercept else "no bias"
    return [words, *values, bias]


def parameters(values: Mapping[str, Any]) -> str:
    """Parameters as "name = value", separated by commas."""
    return ", ".join(f"{name} = {_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, float):
        return formatting.plain(value)
    return value if isinstance(value, str) else json.dumps(value)


def with_unit(name: str, value: Any) -> str:
    """A limit of the budget with the unit that its name implies."""
    if isinstance(value, Mapping):
        return parameters(value)
    unit = "s" if name.endswith("timeout") else "MB" if name == "memory" else ""
    return f"{_value(value)}{formatting.THIN}{unit}" if unit else _value(value)
