"""The language of ``--where``: which runs of a study to choose, by what they are.

An expression is parsed by Python's ``ast`` and evaluated here; only comparisons of names with
constants, ``and``, ``or``, ``not`` and parentheses mean anything, and nothing is ever executed.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...data_loaders import suggest
from ..errors import StudyError
from .places import shown

#: Characters of an expression.
MAX_LENGTH = 2_000
_MAX_DEPTH = 50
#: Names whose values are names: a misspelt one can only be a mistake.
_NAMING = ("task", "dataset", "solver", "class", "kernel", "generator")
# Words that Python reserves, and what stands for them while it parses.
_RESERVED = {"class": "class_"}
_CONSTANTS = {"true": True, "false": False}
_ORDERED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_MISSING = object()


@dataclass(frozen=True)
class Selection:
    """Some runs of a study that need not be a product of tasks, solvers and seeds.

    Attributes
    ----------
    text : str
        The expression that chose them.
    runs : frozenset of tuple
        Labels of task and solver, and the seed.
    """

    text: str
    runs: frozenset[tuple[str, str, int]]


class Where:
    """An expression such as ``C == 10 and solver != "SBP"``.

    Parameters
    ----------
    text : str

    Raises
    ------
    StudyError
        If it is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = self._parsed()
        self._check(self._tree, depth=0)

    def check_names(self, known: Mapping[str, Iterable[Any]]) -> None:
        """Check the names against those of a study.

        Parameters
        ----------
        known : mapping
            Each name -> the values that it has in the study.

        Raises
        ------
        StudyError
            For a name that no run has, and for a task, dataset, solver, class or kernel that the
            study does not have.
        """
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Compare):
                names = {self._name(side) for side in _sides(node) if _is_name(side)}
                for name in sorted(names):
                    if name not in known:
                        raise self._error(f"unknown name {name!r}{suggest(name, list(known))}")
                for name in names.intersection(_NAMING):
                    self._check_values(name, _texts(node), list(known[name]))

    def __call__(self, facets: Mapping[str, Any]) -> bool:
        """Whether a run with these properties is chosen; what it does not have compares as false.

        Raises
        ------
        StudyError
            If a text is compared with a number by ``<`` and the like.
        """
        return self._holds(self._tree, facets)

    def _parsed(self) -> ast.expr:
        if len(self.text) > MAX_LENGTH:
            raise StudyError(f"--where: an expression may have {MAX_LENGTH} characters")
        if not self.text.strip():
            raise StudyError('--where: the expression is empty; write one such as "C == 10"')
        try:
            tree = ast.parse(_without_reserved(self.text.strip()), mode="eval")
        except SyntaxError as error:
            raise self._error(f"not an expression ({error.msg})") from None
        except (ValueError, MemoryError, RecursionError, tokenize.TokenError):
            raise self._error("not an expression") from None
        return tree.body

    def _check(self, node: ast.expr, depth: int) -> None:
        """Refuse all that the language does not have."""
        if depth > _MAX_DEPTH:
            raise self._error("nested too deeply")
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                self._check(part, depth + 1)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._check(node.operand, depth + 1)
        elif isinstance(node, ast.Compare):
            self._check_comparison(node)
        else:
            raise self._error(
                f"{_source(node)} is no comparison; write one such as C == 10, joined by and, or, "
                "not"
            )

    def _check_comparison(self, node: ast.Compare) -> None:
        for operator in node.ops:
            if type(operator) not in _ORDERED:
                raise self._error("only ==, !=, <, <=, >, >=, in and not in compare")
        listed = [False, *(isinstance(operator, ast.In | ast.NotIn) for operator in node.ops)]
        for takes_list, side in zip(listed, _sides(node), strict=True):
            if isinstance(side, ast.List | ast.Tuple) != takes_list:
                raise self._error("'in' takes a list, such as C in [1, 10]; no other takes one")
            if not _is_name(side):
                self._constant(side)
        if not any(_is_name(side) for side in _sides(node)):
            raise self._error(f"{_source(node)} compares no property of a run")

    def _holds(self, node: ast.expr, facets: Mapping[str, Any]) -> bool:
        if isinstance(node, ast.BoolOp):
            parts = (self._holds(part, facets) for part in node.values)
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.UnaryOp):
            return not self._holds(node.operand, facets)
        assert isinstance(node, ast.Compare)
        values = [self._value(side, facets) for side in _sides(node)]
        if any(value is _MISSING for value in values):
            return False
        pairs = zip(node.ops, values, values[1:], strict=False)
        return all(self._compared(operator, left, right) for operator, left, right in pairs)

    def _compared(self, operator: ast.cmpop, left: Any, right: Any) -> bool:
        try:
            return bool(_ORDERED[type(operator)](left, right))
        except TypeError:
            raise self._error(f"{shown(left)} and {shown(right)} have no order") from None

    def _value(self, node: ast.expr, facets: Mapping[str, Any]) -> Any:
        return facets.get(self._name(node), _MISSING) if _is_name(node) else self._constant(node)

    def _name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._name(node.value)}.{node.attr}"
        assert isinstance(node, ast.Name)
        return next((word for word, safe in _RESERVED.items() if safe == node.id), node.id)

    def _constant(self, node: ast.expr) -> Any:
        if isinstance(node, ast.List | ast.Tuple):
            return [self._constant(item) for item in node.elts]
        if isinstance(node, ast.Name) and node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._constant(node.operand)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value
        raise self._error(f"{_source(node)} is neither a name nor a number, text, true or false")

    def _check_values(self, name: str, texts: Iterable[str], known: list[Any]) -> None:
        for text in texts:
            if text not in known:
                hint = suggest(text, [str(value) for value in known])
                raise self._error(f"no {name} of the study is {text!r}{hint}")

    def _error(self, message: str) -> StudyError:
        return StudyError(f"--where {shown(self.text)}: {message}")


def _without_reserved(text: str) -> str:
    """The expression with other words for those that Python reserves; texts in it stay."""
    tokens = [
        (token.type, _RESERVED.get(token.string, token.string))
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    ]
    return tokenize.untokenize(tokens).strip()


def _is_name(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return _is_name(node.value)
    return isinstance(node, ast.Name) and node.id not in _CONSTANTS


def _sides(node: ast.Compare) -> list[ast.expr]:
    return [node.left, *node.comparators]


def _texts(node: ast.Compare) -> list[str]:
    """The texts that a comparison for equality names."""
    if not all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops):
        return []
    constants = (item for side in _sides(node) for item in ast.walk(side))
    return [
        item.value
        for item in constants
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]


def _source(node: ast.expr) -> str:
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "it"
    for word, safe in _RESERVED.items():
        text = text.replace(safe, word)
    return shown(text)
