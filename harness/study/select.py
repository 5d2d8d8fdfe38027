"""Parts of a study: by names, by numbers, and by expressions about its runs."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, TypeVar

from pydantic import ValidationError

from ...data_loaders import suggest
from ...data_loaders.sources import unknown
from ..errors import StudyError
from ..hashing import hash_json
from ..loading import offered
from ..words import shown, visible
from .grid import free_label, label_of
from .model import (
    MAX_LABEL,
    MAX_RUNS,
    Selection,
    SolverEntry,
    StudyBase,
    StudyFile,
    TaskEntry,
    is_foreign,
    resolve_solver_name,
)

StudyT = TypeVar("StudyT", bound=StudyBase)
EntryT = TypeVar("EntryT", bound=TaskEntry | SolverEntry)
#: Characters of an expression of ``--where``.
MAX_LENGTH = 2_000
# Names whose values are names: a misspelt one can only be a mistake.
_NAMING = ("task", "dataset", "solver", "class", "kernel", "generator")
# "class" is a word of Python; texts in quotes are left as they are.
_CLASS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\bclass\b""")
_OPERATORS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
# Characters of a name that is too long for a message.
_SHOWN = 100


def select(
    study: StudyT,
    *,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
    where: str | None = None,
) -> StudyT:
    """The same study with only some tasks and solvers, or with others in their place."""
    if seeds is not None:
        if not 1 <= seeds <= MAX_RUNS:
            raise StudyError(f"the number of seeds must be from 1 to {MAX_RUNS}, not {seeds}")
        study = study.with_seeds(seeds)
    if timeout is not None:
        if not 0 < timeout < float("inf"):
            raise StudyError(f"the timeout must be a number of seconds > 0, not {timeout:g}")
        budget = study.budget.model_copy(update={"timeout": float(timeout)})
        study = study.model_copy(update={"budget": budget})
    if datasets is not None:
        study = study.with_tasks(_select_tasks(study, datasets))
    if solvers is not None:
        study = study.with_solvers(_select_solvers(study, solvers))
    study.check_size()
    if where is not None:
        study = study.restricted(_chosen_runs(study, where))
    return study


def of_its_own(study: StudyT, tasks: Sequence[TaskEntry], solvers: Sequence[str] | None) -> StudyT:
    """A study of these tasks alone, named after its tasks and solvers; all else is the default."""
    entries = study.solvers
    if solvers is not None:
        entries = tuple(_select_solvers(study.with_solvers(()), solvers))
    data = [task.label for task in tasks]
    methods = [entry.label for entry in entries]
    words = [PurePath(name).stem for name in data] + (methods if solvers is not None else [])
    plain = [re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip(".-_") or "data" for word in words]
    name = "-".join(plain)
    if len(name) > MAX_LABEL:
        name = f"{name[: MAX_LABEL - 9]}-{hash_json(name)[:8]}"
    defaults = {
        key: field.get_default(call_default_factory=True)
        for key, field in type(study).model_fields.items()
        if not field.is_required()
    }
    title = f"{', '.join(methods)} on {', '.join(data)}"
    chosen = study.model_copy(update=defaults | {"name": name, "title": title})
    return chosen.read_from(StudyFile("study")).with_tasks(tasks).with_solvers(entries)


def _chosen_runs(study: StudyBase, text: str) -> Selection:
    """The runs for which an expression holds."""
    properties = [
        (task, entry, _properties(task, entry)) for task in study.tasks for entry in study.solvers
    ]
    values: dict[str, dict[Any, None]] = {"seed": {}}
    for _, _, each in properties:
        for name, value in each.items():
            values.setdefault(name, {})[value] = None
    expression = _Expression(text, {name: list(each) for name, each in values.items()})
    runs = frozenset(
        (task.label, entry.label, seed)
        for task, entry, each in properties
        for seed in study.seeds_of(task, entry)
        if expression.holds({**each, "seed": seed})
    )
    if not runs:
        raise StudyError(f"--where {text!r}: no run of the study is chosen")
    return Selection(text, runs)


def _properties(task: TaskEntry, entry: SolverEntry) -> dict[str, Any]:
    """The properties of the runs of a solver on a task, by the names in expressions."""
    properties = {
        **entry.params,
        **task.facets,
        **{f"solver.{name}": value for name, value in entry.params.items()},
        **{f"task.{name}": value for name, value in task.facets.items()},
        "task": task.label,
        "solver": entry.label,
        "class": entry.class_name,
    }
    scalar = str | int | float | None
    return {name: v if isinstance(v, scalar) else repr(v) for name, v in properties.items()}


class _Expression:
    """An expression of ``--where``: comparisons of properties with constants, and, or, not.

    What Python's grammar allows beyond these is refused, and so is a name or a label that no run
    has. ``values`` are those of each property that there are.
    """

    def __init__(self, text: str, values: Mapping[str, Sequence[Any]]) -> None:
        self.text, self.values = text, values
        if len(text) > MAX_LENGTH:
            raise StudyError(f"--where: an expression may have {MAX_LENGTH} characters")
        if not text.strip():
            raise StudyError('--where: the expression is empty; write one such as "C == 10"')
        spelled = _CLASS.sub(lambda match: match[1] or "class_", text.strip())
        try:
            self.tree = ast.parse(spelled, mode="eval").body
        except SyntaxError as error:
            raise self._error(f"not an expression ({error.msg})") from None
        except (ValueError, MemoryError, RecursionError):
            raise self._error("not an expression") from None
        self._check(self.tree)

    def holds(self, properties: Mapping[str, Any]) -> bool:
        """Whether it is true of a run."""
        try:
            return self._holds(self.tree, properties)
        except TypeError:
            raise self._error("texts and numbers have no order") from None

    def _holds(self, node: ast.expr, properties: Mapping[str, Any]) -> bool:
        """What a run does not have compares as false."""
        if isinstance(node, ast.BoolOp):
            parts = [self._holds(part, properties) for part in node.values]
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.UnaryOp):
            return not self._holds(node.operand, properties)
        assert isinstance(node, ast.Compare)
        names = map(_name, (node.left, *node.comparators))
        sides = [
            properties.get(name) if name else self._constant(side)
            for name, side in zip(names, (node.left, *node.comparators), strict=True)
        ]
        return None not in sides and all(
            _OPERATORS[type(op)](left, right)
            for op, left, right in zip(node.ops, sides, sides[1:], strict=False)
        )

    def _check(self, node: ast.expr) -> None:
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                self._check(part)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._check(node.operand)
        elif isinstance(node, ast.Compare):
            self._check_comparison(node)
        else:
            raise self._error(
                f"{_source(node)} is no comparison; write one such as C == 10, joined by and, or, "
                "not"
            )

    def _check_comparison(self, node: ast.Compare) -> None:
        if not all(type(op) in _OPERATORS for op in node.ops):
            raise self._error("only ==, !=, <, <=, >, >=, in and not in compare")
        sides = [node.left, *node.comparators]
        listed = [False, *(isinstance(op, ast.In | ast.NotIn) for op in node.ops)]
        if [isinstance(side, ast.List | ast.Tuple) for side in sides] != listed:
            raise self._error("'in' takes a list, such as C in [1, 10]; no other takes one")
        names = [name for name in map(_name, sides) if name]
        for name in names:
            if name not in self.values:
                raise self._error(f"unknown name {name!r}{suggest(name, list(self.values))}")
        constants = [self._constant(side) for side in sides if not _name(side)]
        if not names:
            raise self._error(f"{_source(node)} compares no property of a run")
        if any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
            return
        for text in (
            each for side in constants for each in (side if isinstance(side, list) else [side])
        ):
            for name in set(names).intersection(_NAMING) if isinstance(text, str) else ():
                if text not in self.values[name]:
                    hint = suggest(text, [str(value) for value in self.values[name]])
                    raise self._error(f"no {name} of the study is {text!r}{hint}")

    def _constant(self, node: ast.expr) -> Any:
        if isinstance(node, ast.List | ast.Tuple):
            return [self._constant(item) for item in node.elts]
        if isinstance(node, ast.Name) and node.id in ("true", "false"):
            return node.id == "true"
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._constant(node.operand)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value
        raise self._error(f"{_source(node)} is neither a name nor a number, text, true or false")

    def _error(self, message: str) -> StudyError:
        return StudyError(f"--where {shown(self.text)}: {message}")


def _name(node: ast.expr) -> str:
    """The name that a side of a comparison is, such as "C" or "solver.C"; empty if it is none."""
    if isinstance(node, ast.Attribute):
        before = _name(node.value)
        return f"{before}.{node.attr}" if before else ""
    if isinstance(node, ast.Name) and node.id not in ("true", "false"):
        return "class" if node.id == "class_" else node.id
    return ""


def _source(node: ast.expr) -> str:
    try:
        return shown(ast.unparse(node).replace("class_", "class"))
    except (RecursionError, ValueError):
        return "it"


def split_names(names: Iterable[str], labels: Iterable[str] = ()) -> list[str]:
    """Names given one by one or separated by commas, without repetitions.

    A comma that is part of one of the ``labels``, or of the path of a file, separates nothing.
    """
    whole = {label.casefold() for label in labels}
    parts: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        if not isinstance(name, str):
            raise StudyError(
                f"{shown(name)} is no name; give a text, such as 'SMO' or 'file.py:Class'"
            )
        is_one = name.strip().casefold() in whole or ("," in name and Path(name.strip()).exists())
        parts += [name] if is_one else name.split(",")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _select_tasks(study: StudyBase, names: Iterable[str]) -> list[TaskEntry]:
    """The tasks with one of these names; a dataset that has none gets one where the kind can."""
    chosen: list[TaskEntry] = []
    for name in split_names(names, [task.label for task in study.tasks]):
        key = name.casefold()
        tasks = [task for task in study.tasks if key in map(str.casefold, task.names)]
        tasks = tasks or _of_grid(study.tasks, key)
        if not tasks:
            # A label of the study stays that of the study's own task, chosen or not.
            label = label_of(name)[: MAX_LABEL - 4]
            new = study.new_task(name, free_label(label, _taken([*chosen, *study.tasks])))
            if new is None:
                own = [text for task in study.tasks for text in task.names]
                hints = dict.fromkeys([*own, *_stems(study.tasks), *study.other_tasks()])
                raise StudyError(unknown(name, list(hints)))
            tasks = [new]
        chosen.extend(task for task in tasks if task not in chosen)
    if not chosen:
        raise StudyError("no dataset is selected")
    return chosen


def _select_solvers(study: StudyBase, names: Iterable[str]) -> list[SolverEntry]:
    """The solvers with one of these labels or names; others that there are run with defaults."""
    chosen: list[SolverEntry] = []
    for name in split_names(names, [solver.label for solver in study.solvers]):
        entries = (
            [solver for solver in study.solvers if name.casefold() == solver.label.casefold()]
            or [s for s in study.solvers if name.casefold() in _names(s)]
            or _of_grid(study.solvers, name.casefold())
        )
        if not entries:
            labels = [*(solver.label for solver in study.solvers), *_stems(study.solvers)]
            target = resolve_solver_name(name, study.kind, labels=labels)
            entries = [solver for solver in study.solvers if solver.name == target]
        if not entries:
            offer = None if target == name or is_foreign(name) else offered(name)
            label = offer.name if offer else target.rsplit(":", 1)[-1]
            # A label of the study stays that of the study's own solver, chosen or not.
            entries = [_new_solver(target, free_label(label, _taken([*chosen, *study.solvers])))]
        chosen.extend(solver for solver in entries if solver not in chosen)
    if not chosen:
        raise StudyError("no solver is selected")
    return chosen


def _names(solver: SolverEntry) -> tuple[str, str]:
    return solver.name.casefold(), solver.class_name.casefold()


def _of_grid(entries: Sequence[EntryT], stem: str) -> list[EntryT]:
    """The entries whose labels a grid has made of this one, in lower case."""
    return [entry for entry in entries if entry.label.casefold().startswith(f"{stem}, ")]


def _stems(entries: Iterable[TaskEntry | SolverEntry]) -> list[str]:
    """The labels of grids that some of these may be of."""
    return [entry.label.partition(", ")[0] for entry in entries if ", " in entry.label]


def _taken(entries: Iterable[TaskEntry | SolverEntry]) -> set[str]:
    return {entry.label.casefold() for entry in entries}


def _new_solver(name: str, label: str) -> SolverEntry:
    """A solver that the study does not have, with its defaults."""
    try:
        return SolverEntry.model_validate({"name": name, "label": label})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field, words = problem["loc"][0], problem["msg"].removeprefix("Value error, ")
        raise StudyError(
            f"--solver {visible(name, _SHOWN)}: its {field} {words}; rename it, or give it a label "
            "in a study file"
        ) from None
