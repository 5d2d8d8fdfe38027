"""Parts of a study: by names, by numbers, and by expressions about its runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

from pydantic import ValidationError

from ...data_loaders import suggest
from ...data_loaders.sources import unknown
from ...solvers.registration import solver_names
from ..errors import StudyError
from ..hashing import hash_json
from ..words import shown, visible
from .grid import label_of
from .model import (
    MAX_LABEL,
    MAX_RUNS,
    Selection,
    SolverEntry,
    StudyBase,
    StudyFile,
    TaskEntry,
)
from .names import (
    find,
    is_foreign,
    offered_solver,
    resolve_solver_name,
    split_names,
    unknown_solver,
)

StudyT = TypeVar("StudyT", bound=StudyBase)
EntryT = TypeVar("EntryT", bound=TaskEntry | SolverEntry)
#: Characters of an expression of ``--where``.
MAX_LENGTH = 2_000
_MAX_DEPTH = 50
# Names whose values are names: a misspelt one can only be a mistake.
_NAMING = ("task", "dataset", "solver", "class", "kernel", "generator")
# "class" is a word of Python; texts in quotes are left as they are.
_CLASS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\bclass\b""")
_OPERATORS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
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
    own = study.model_copy(update=defaults | {"name": name, "title": title})
    return own.read_from(StudyFile("study")).with_tasks(tasks).with_solvers(entries)


def _chosen_runs(study: StudyBase, text: str) -> Selection:
    """The runs for which an expression holds, by pandas on a frame of all runs."""
    import pandas as pd

    pairs = [
        (_cells(task, entry), study.seeds_of(task, entry))
        for task in study.tasks
        for entry in study.solvers
    ]
    values: dict[str, dict[Any, None]] = {"seed": {}}
    for cells, _ in pairs:
        for name, value in cells.items():
            values.setdefault(name, {})[value] = None
    where = _Where(text, {name: list(each) for name, each in values.items()})
    columns: dict[str, list[Any]] = {
        name: [cells.get(name) for cells, seeds in pairs for _ in seeds]
        for name in {"task", "solver", *where.columns} - {"seed"}
    }
    columns["seed"] = [seed for _, seeds in pairs for seed in seeds]
    frame = pd.DataFrame(columns, dtype=object)
    query = frame.rename(columns=where.columns)
    try:
        chosen = query.query(where.query, engine="python", local_dict=where.constants).index
    except TypeError:
        raise where.error("texts and numbers have no order") from None
    runs = frozenset(
        frame.loc[chosen, ["task", "solver", "seed"]].itertuples(index=False, name=None)
    )
    if not runs:
        raise StudyError(f"--where {text!r}: no run of the study is chosen")
    return Selection(text, runs)


def _cells(task: TaskEntry, entry: SolverEntry) -> dict[str, Any]:
    """What is known of the runs of a solver on a task, by the names in expressions."""
    cells = {
        **entry.params,
        **task.facets,
        **{f"solver.{name}": value for name, value in entry.params.items()},
        **{f"task.{name}": value for name, value in task.facets.items()},
        "task": task.label,
        "solver": entry.label,
        "class": entry.class_name,
    }
    scalar = str | int | float | None
    return {name: v if isinstance(v, scalar) else repr(v) for name, v in cells.items()}


class _Where:
    """An expression of ``--where`` as a query of pandas, which sees only names and operators.

    What Python's grammar allows beyond comparisons of names with constants, ``and``, ``or`` and
    ``not`` is refused.
    """

    def __init__(self, text: str, values: Mapping[str, Sequence[Any]]) -> None:
        self.text, self.values = text, values
        self.columns: dict[str, str] = {}
        self.constants: dict[str, Any] = {}
        if len(text) > MAX_LENGTH:
            raise StudyError(f"--where: an expression may have {MAX_LENGTH} characters")
        if not text.strip():
            raise StudyError('--where: the expression is empty; write one such as "C == 10"')
        spelled = _CLASS.sub(lambda match: match[1] or "class_", text.strip())
        try:
            tree = ast.parse(spelled, mode="eval")
        except SyntaxError as error:
            raise self.error(f"not an expression ({error.msg})") from None
        except (ValueError, MemoryError, RecursionError):
            raise self.error("not an expression") from None
        self.query = self._translated(tree.body)

    def error(self, message: str) -> StudyError:
        """The error that this expression is wrong."""
        return StudyError(f"--where {shown(self.text)}: {message}")

    def _translated(self, node: ast.expr, depth: int = 0) -> str:
        if depth > _MAX_DEPTH:
            raise self.error("nested too deeply")
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return f"({word.join(self._translated(part, depth + 1) for part in node.values)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"(not {self._translated(node.operand, depth + 1)})"
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        raise self.error(
            f"{_source(node)} is no comparison; write one such as C == 10, joined by and, or, not"
        )

    def _comparison(self, node: ast.Compare) -> str:
        """The comparison; what a run does not have compares as false."""
        if not all(type(operator) in _OPERATORS for operator in node.ops):
            raise self.error("only ==, !=, <, <=, >, >=, in and not in compare")
        nodes = [node.left, *node.comparators]
        listed = [False, *(isinstance(operator, ast.In | ast.NotIn) for operator in node.ops)]
        if [isinstance(side, ast.List | ast.Tuple) for side in nodes] != listed:
            raise self.error("'in' takes a list, such as C in [1, 10]; no other takes one")
        names = [name for name in map(_name, nodes) if name]
        for name in names:
            if name not in self.values:
                raise self.error(f"unknown name {name!r}{suggest(name, list(self.values))}")
        sides = [self._side(side) for side in nodes]
        if not names:
            raise self.error(f"{_source(node)} compares no property of a run")
        if all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops):
            self._check_values(names, node)
        parts = [
            f"({left} {_OPERATORS[type(operator)]} {right})"
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        parts += [f"({self.columns[name]} == {self.columns[name]})" for name in names]
        return f"({' and '.join(parts)})"

    def _side(self, node: ast.expr) -> str:
        name = _name(node)
        if name:
            return self.columns.setdefault(name, f"column_{len(self.columns)}")
        constant = f"constant_{len(self.constants)}"
        self.constants[constant] = self._constant(node)
        return f"@{constant}"

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
        raise self.error(f"{_source(node)} is neither a name nor a number, text, true or false")

    def _check_values(self, names: Iterable[str], node: ast.Compare) -> None:
        texts = [
            item.value
            for item in ast.walk(node)
            if isinstance(item, ast.Constant) and isinstance(item.value, str)
        ]
        for name in set(names).intersection(_NAMING):
            known = self.values[name]
            for text in texts:
                if text not in known:
                    hint = suggest(text, [str(value) for value in known])
                    raise self.error(f"no {name} of the study is {text!r}{hint}")


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


def _select_tasks(study: StudyBase, names: Iterable[str]) -> list[TaskEntry]:
    """The tasks with one of these names; a dataset that has none gets one where the kind can."""
    chosen: list[TaskEntry] = []
    for name in split_names(names, [task.label for task in study.tasks]):
        key = name.casefold()
        tasks = [task for task in study.tasks if key in map(str.casefold, task.names)]
        tasks = tasks or _of_grid(study.tasks, key)
        if not tasks:
            # A label of the study stays that of the study's own task, chosen or not.
            label = _free(label_of(name)[: MAX_LABEL - 4], [*chosen, *study.tasks])
            new = study.new_task(name, label)
            if new is None:
                names_of_tasks = [text for task in study.tasks for text in task.names]
                hints = dict.fromkeys([*names_of_tasks, *_stems(study.tasks), *study.other_tasks()])
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
        entries = _solvers_named(study, name)
        if not isinstance(entries, list):
            target, label = entries
            # A label of the study stays that of the study's own solver, chosen or not.
            entries = [_new_solver(target, label, [*chosen, *study.solvers])]
        chosen.extend(solver for solver in entries if solver not in chosen)
    if not chosen:
        raise StudyError("no solver is selected")
    return chosen


def _solvers_named(study: StudyBase, name: str) -> list[SolverEntry] | tuple[str, str]:
    """The solvers of a study that a name means, or the name and label of one that it lacks.

    Labels come first, then names and classes, grids, and what installed packages offer.
    """
    key = name.casefold()
    entries = [solver for solver in study.solvers if key == solver.label.casefold()]
    if entries:
        return entries
    if is_foreign(name):
        target = resolve_solver_name(name, study.kind)
        entries = [solver for solver in study.solvers if solver.name == target]
        return entries or _of_grid(study.solvers, key) or (target, "")
    entries = [
        solver
        for solver in study.solvers
        if key in (solver.name.casefold(), solver.class_name.casefold())
    ]
    entries = entries or _of_grid(study.solvers, key)
    if entries:
        return entries
    registered = find(name, solver_names(study.kind))
    if registered is not None:
        return registered, ""
    offer = offered_solver(name, study.kind)
    if offer is None:
        labels = [solver.label for solver in study.solvers]
        raise StudyError(unknown_solver(name, study.kind, [*labels, *_stems(study.solvers)]))
    entries = [solver for solver in study.solvers if solver.name == offer.target]
    return entries or (offer.target, offer.name)


def _of_grid(entries: Sequence[EntryT], stem: str) -> list[EntryT]:
    """The entries whose labels a grid has made of this one, in lower case."""
    return [entry for entry in entries if entry.label.casefold().startswith(f"{stem}, ")]


def _stems(entries: Iterable[TaskEntry | SolverEntry]) -> list[str]:
    """The labels of grids that some of these may be of."""
    return [entry.label.partition(", ")[0] for entry in entries if ", " in entry.label]


def _new_solver(name: str, label: str, taken: Sequence[SolverEntry]) -> SolverEntry:
    """A solver that the study does not have, with its defaults and a label of its own.

    Without a ``label`` it is made of the name of the class.
    """
    label = _free(label or name.rsplit(":", 1)[-1], taken)
    try:
        return SolverEntry.model_validate({"name": name, "label": label})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        what, words = problem["loc"][0], problem["msg"].removeprefix("Value error, ")
        raise StudyError(
            f"--solver {visible(name, _SHOWN)}: its {what} {words}; rename it, or give it a label "
            "in a study file"
        ) from None


def _free(label: str, taken: Sequence[Any]) -> str:
    """A label that no entry has yet: "SMO", else "SMO-2" and so on."""
    labels = {entry.label.casefold() for entry in taken}
    number, candidate = 1, label
    while candidate.casefold() in labels:
        number += 1
        candidate = f"{label}-{number}"
    return candidate
