"""Hyper-parameters of an estimator, declared as the fields of a keyword-only dataclass."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, dataclass, field, fields
from typing import TypeVar, dataclass_transform

from ..bibliography import references

Estimator = TypeVar("Estimator")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def hyperparameters(cls: type[Estimator]) -> type[Estimator]:
    """Make a class attribute with a type a hyper-parameter: class decorator.

    The class gets an ``__init__`` that takes the parameters of its bases and its own by keyword
    and stores them, as scikit-learn asks. ``field(default=..., kw_only=False)`` declares one that
    is also taken by position. A ``ClassVar`` and an attribute without a type are no parameters.

    The sections "Parameters" and "Attributes" of the docstring are completed: what the class does
    not document has the description of the base that does, and the defaults are those declared. An
    entry that leaves out the type has that of the base. The papers that the docstring cites, as in
    ``[SBP12]_``, are listed at its end, from ``papers.bib``.

    Parameters
    ----------
    cls : type
        An estimator, or a class that only declares parameters, for estimators to inherit.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    TypeError
        For a base whose ``__init__`` is written by hand.
    """
    for base in cls.__mro__[:-1]:
        if "__dataclass_fields__" in vars(base):
            break
        if "__init__" in vars(base):
            raise TypeError(
                f"{cls.__name__}: {base.__name__}.__init__ is written by hand; declare its "
                "parameters with @hyperparameters, too, or leave the decorator out"
            )
    doc = cls.__doc__
    dataclass(kw_only=True, eq=False, repr=False)(cls)
    for item in fields(cls):  # type: ignore[arg-type]
        if item.default is not MISSING:
            # A base that only has an attribute of this name may come earlier among the bases.
            setattr(cls, item.name, item.default)
    # None without docstrings (python -OO), where dataclass writes one of its own.
    cls.__doc__ = None if doc is None else _completed(cls, doc)
    return cls


def _completed(cls: type, doc: str) -> str:
    """The docstring with an entry for each parameter, in the order of the signature."""
    lines = inspect.cleandoc(doc).splitlines()
    signature = inspect.signature(cls).parameters
    for title in ("Attributes", "Parameters"):
        start, stop = _section(lines, title)
        documented = [_entries(lines[start:stop])]
        for base in cls.__mro__[1:]:
            if "__dataclass_fields__" in vars(base) and base.__doc__:
                inherited = base.__doc__.splitlines()
                documented.append(_entries(inherited[slice(*_section(inherited, title))]))
        # What the class documents but does not have stays, for a check of docstrings to find.
        names = [*signature] if title == "Parameters" else []
        of_class = documented[:1] if title == "Parameters" else documented
        names += dict.fromkeys(n for entries in of_class for n in entries if n not in names)
        section = []
        for name in names:
            matches = [entries[name] for entries in documented if name in entries]
            kind = next((kind for kind, _ in matches if kind), "")
            section.append(_header(name, kind, signature.get(name)))
            section += next((description for _, description in matches if description), [])
        if section:
            before = "\n".join(lines[:start]).rstrip().splitlines()
            after = ["", *lines[stop:]] if lines[stop:] else []
            lines = [*before, "", title, "-" * len(title), *section, *after]
    if cited := references("\n".join(lines)):
        lines += ["", "References", "----------", *cited]
    return "\n".join(lines) + "\n"


def _header(name: str, kind: str, parameter: inspect.Parameter | None) -> str:
    """``name : type, default=value``, omitting what is missing."""
    kind = kind.partition(", default")[0]
    parts = [kind] if kind else []
    if parameter is not None and (default := parameter.default) is not parameter.empty:
        parts.append(
            f"default={json.dumps(default) if isinstance(default, str) else repr(default)}"
        )
    return f"{name} : {', '.join(parts)}" if parts else name


def _section(lines: list[str], title: str) -> tuple[int, int]:
    """Where the section of this title begins and ends; where it should stand if there is none."""
    titles = [i for i in range(len(lines) - 1) if lines[i] and set(lines[i + 1]) == {"-"}]
    for i, at in enumerate(titles):
        if lines[at] == title:
            return at, titles[i + 1] if i + 1 < len(titles) else len(lines)
    others = [at for at in titles if title == "Parameters" or lines[at] != "Parameters"]
    start = others[0] if others else len(lines)
    return start, start


def _entries(section: list[str]) -> dict[str, tuple[str, list[str]]]:
    """The type of each entry of a section and the lines of its description, by name."""
    entries: dict[str, tuple[str, list[str]]] = {}
    description: list[str] = []
    for line in filter(None, section[2:]):
        if line.startswith(" "):
            description.append(line)
        else:
            names, _, kind = line.partition(" : ")
            description = []
            entries |= {name.strip(): (kind, description) for name in names.split(",")}
    return entries
