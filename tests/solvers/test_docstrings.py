"""Public docstrings name exactly the parameters that the code takes."""

from __future__ import annotations

import ast
import dataclasses
import inspect

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc
from sklearn.base import BaseEstimator

from marginbench import solvers
from marginbench.solvers import kernels
from marginbench.solvers.models import objectives
from marginbench.solvers.numeric.water_level import water_level

CLASSES = [
    getattr(solvers, name) for name in solvers.__all__ if inspect.isclass(getattr(solvers, name))
]
FUNCTIONS = [
    kernels.make_kernel,
    water_level.py_func,
    solvers.registry,
    *(f for _, f in inspect.getmembers(objectives, inspect.isfunction)),
    *(
        method
        for cls in CLASSES
        for name, method in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_") and method.__module__.startswith("marginbench.solvers")
    ),
]


def names(entries):
    return [name.strip().lstrip("*") for entry in entries for name in entry.name.split(",")]


def signature_names(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_class_docstring_names_the_parameters(cls):
    doc = ClassDoc(cls)
    assert doc["Summary"], "no summary line"
    if inspect.isabstract(cls) or cls.__init__ is object.__init__:
        return
    documented = names(doc["Parameters"])
    if dataclasses.is_dataclass(cls) and not documented:
        documented = names(doc["Attributes"])[: len(dataclasses.fields(cls))]
    assert documented == signature_names(cls.__init__)


@pytest.mark.parametrize(
    "cls",
    [cls for cls in CLASSES if issubclass(cls, BaseEstimator) and not inspect.isabstract(cls)],
    ids=lambda cls: cls.__name__,
)
def test_every_parameter_of_an_estimator_has_a_type_a_default_and_a_description(cls):
    signature = inspect.signature(cls).parameters
    for entry in ClassDoc(cls)["Parameters"]:
        kind, found, default = entry.type.partition(", default=")
        assert kind, entry.name
        assert "".join(entry.desc).strip(), entry.name
        if found:
            assert ast.literal_eval(default) == signature[entry.name].default
        else:
            assert signature[entry.name].default is inspect.Parameter.empty


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_function_docstring_names_the_parameters(function):
    if not function.__doc__:
        # An override: the base class's docstring holds.
        assert inspect.getdoc(function), "no docstring"
        return
    documented = names(FunctionDoc(function)["Parameters"])
    assert documented in ([], signature_names(function))


@pytest.mark.parametrize("cls", solvers.registry().values(), ids=lambda cls: cls.__name__)
def test_solver_docstring_says_what_it_costs_and_where_it_comes_from(cls):
    doc = ClassDoc(cls)
    notes, references = " ".join(doc["Notes"]), " ".join(doc["References"])
    assert "BibTeX key" in references
    if cls.instrumented:
        assert "Kernel evaluations" in notes
