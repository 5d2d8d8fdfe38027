"""Parts of a study: by names, by numbers, and by expressions about its runs."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, TypeVar

from ...data_loaders import suggest
from ...data_loaders.sources import unknown
from ..errors import StudyError
from ..hashing import hash_json
from ..words import shown
from .grid import free_label, label_of
from .model import (
    MAX_LABEL,
    MAX_RUNS,
    Selection,
    SolverEntry,
    StudyBase,
    TaskEntry,
    dataset_names,
    find,
    is_users_file,
    resolve_solver_name,
)
from .svm import Study, Task

StudyT = TypeVar("StudyT", bound=StudyBase)
EntryT = TypeVar("EntryT", bound=TaskEntry | SolverEntry)
# Words that Python knows otherwise, outside texts in quotes.
_WORDS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(class|true|false)\b""")
_IN_PYTHON = {"class": "class_", "true": "True", "false": "False"}


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
    study.check_size()  # type: ignore[operator]
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
    (table,) = study.task_tables
    values: dict[str, Any] = {table: tasks, study.solver_table: entries}
    made = type(study)(name=name, title=f"{', '.join(methods)} on {', '.join(data)}", **values)
    # The same objects, which know where their files are.
    return made.with_tasks(tasks).with_solvers(entries)


def _chosen_runs(study: StudyBase, text: str) -> Selection:
    """The runs for which an expression holds."""
    pairs = [
        (task, entry, _properties(task, entry)) for task in study.tasks for entry in study.solvers
    ]
    every = dict.fromkeys(chain(["seed"], *(properties for _, _, properties in pairs)))
    holds = _predicate(text, every)
    try:
        runs = frozenset(
            (task.label, entry.label, seed)
            for task, entry, properties in pairs
            for seed in study.seeds_of(task, entry)
            if holds(every | properties | {"seed": seed})
        )
    except TypeError:
        raise StudyError(f"--where {shown(text)}: texts and numbers have no order") from None
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


def _predicate(text: str, known: Collection[str]) -> Callable[[Mapping[str, Any]], bool]:
    """Whether an expression is true of a run: comparisons with constants, and, or, not.

    What Python's grammar allows beyond these is refused, and so is a name that no run has.
    """

    def error(message: str) -> StudyError:
        return StudyError(f"--where {shown(text)}: {message}")

    def side(node: ast.expr) -> ast.Name | ast.Constant:
        words = _text(node)
        if isinstance(node, ast.Name | ast.Attribute):
            if words not in known:
                raise error(f"unknown name {words!r}{suggest(words, known)}")
            return ast.Name(words, ast.Load())
        value: Any = None
        with contextlib.suppress(ValueError, TypeError):
            value = ast.literal_eval(node)
        value = tuple(value) if isinstance(value, list) else value
        items = value if isinstance(value, tuple) else [value]
        if not all(isinstance(item, str | int | float) for item in items):
            raise error(f"{shown(words)} is no name, number, text, true or false")
        return ast.Constant(value)

    def checked(node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            return ast.BoolOp(node.op, [*map(checked, node.values)])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, checked(node.operand))
        words = shown(_text(node))
        if not isinstance(node, ast.Compare):
            raise error(f"{words} is no comparison; write one such as C == 10")
        if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            raise error("only ==, !=, <, <=, >, >=, in and not in compare")
        sides = [side(each) for each in (node.left, *node.comparators)]
        names = [each for each in sides if isinstance(each, ast.Name)]
        listed = [False, *(isinstance(op, ast.In | ast.NotIn) for op in node.ops)]
        if [isinstance(getattr(each, "value", None), tuple) for each in sides] != listed:
            raise error("'in' takes a list, such as C in [1, 10]; no other takes one")
        if not names:
            raise error(f"{words} compares no property of a run")
        # What a run does not have compares as false.
        none = ast.Constant(None)
        present = [ast.Compare(name, [ast.IsNot()], [none]) for name in names]
        return ast.BoolOp(ast.And(), [*present, ast.Compare(sides[0], node.ops, [*sides[1:]])])

    python = _WORDS.sub(lambda word: word[1] or _IN_PYTHON[word[2]], text.strip())
    try:
        tree = ast.Expression(checked(ast.parse(python, mode="eval").body))
        code = compile(ast.fix_missing_locations(tree), "--where", "eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as problem:
        raise error(f"not an expression ({getattr(problem, 'msg', 'too long')})") from None
    return lambda run: bool(eval(code, {"__builtins__": {}}, dict(run)))


def _text(node: ast.expr) -> str:
    return re.sub(r"\bclass_\b", "class", ast.unparse(node))


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

    def found(key: str) -> list[TaskEntry]:
        return [task for task in study.tasks if key in map(str.casefold, task.names)]

    def made(name: str, taken: Collection[str]) -> list[TaskEntry]:
        others = dataset_names() if isinstance(study, Study) else []
        dataset = find(name, others) or name
        if dataset in others or (isinstance(study, Study) and is_users_file(name, None)):
            label = free_label(label_of(dataset)[: MAX_LABEL - 4], taken)
            return [Task(dataset=dataset, label=label).completed()]
        own = [text for task in study.tasks for text in task.names]
        raise StudyError(unknown(name, [*dict.fromkeys([*own, *_stems(study.tasks), *others])]))

    return _chosen("dataset", study.tasks, names, found, made)


def _select_solvers(study: StudyBase, names: Iterable[str]) -> list[SolverEntry]:
    """The solvers with one of these labels or names; others that there are run with defaults."""

    def found(key: str) -> list[SolverEntry]:
        labelled = [each for each in study.solvers if key == each.label.casefold()]
        return labelled or [
            each
            for each in study.solvers
            if key in (each.name.casefold(), each.class_name.casefold())
        ]

    def made(name: str, taken: Collection[str]) -> list[SolverEntry]:
        labels = [*(solver.label for solver in study.solvers), *_stems(study.solvers)]
        target = resolve_solver_name(name, study.kind, labels=labels)
        label = free_label(target.rsplit(":", 1)[-1], taken)
        same = [solver for solver in study.solvers if solver.name == target]
        return same or [SolverEntry(name=target, label=label)]

    return _chosen("solver", study.solvers, names, found, made)


def _chosen(
    what: str,
    entries: Sequence[EntryT],
    names: Iterable[str],
    found: Callable[[str], list[EntryT]],
    made: Callable[[str, Collection[str]], list[EntryT]],
) -> list[EntryT]:
    """The entries of some names, the labels of grids included, or new ones with free labels."""
    chosen: list[EntryT] = []
    for name in split_names(names, [entry.label for entry in entries]):
        key = name.casefold()
        named = found(key) or [e for e in entries if e.label.casefold().startswith(f"{key}, ")]
        # A label of the study stays that of the study's own entry, chosen or not.
        named = named or made(name, {entry.label.casefold() for entry in (*chosen, *entries)})
        chosen += [entry for entry in named if entry not in chosen]
    if not chosen:
        raise StudyError(f"no {what} is selected")
    return chosen


def _stems(entries: Iterable[TaskEntry | SolverEntry]) -> list[str]:
    """The labels of grids that some of these may be of."""
    return [entry.label.partition(", ")[0] for entry in entries if ", " in entry.label]
