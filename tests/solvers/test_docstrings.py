"""Public docstrings name exactly the parameters that the code takes."""

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

CLASSES = [member for name in solvers.__all__ if inspect.isclass(member := getattr(solvers, name))]
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
def test_a_class_docstring_names_the_parameters_with_their_types_and_defaults(cls):
    doc = ClassDoc(cls)
    assert doc["Summary"]
    if inspect.isabstract(cls) or cls.__init__ is object.__init__:
        return
    documented = names(doc["Parameters"])
    if dataclasses.is_dataclass(cls) and not documented:
        documented = names(doc["Attributes"])[: len(dataclasses.fields(cls))]
    assert documented == signature_names(cls.__init__)
    signature = inspect.signature(cls).parameters
    for entry in doc["Parameters"] if issubclass(cls, BaseEstimator) else ():
        kind, found, default = entry.type.partition(", default=")
        assert kind, entry.name
        assert "".join(entry.desc).strip(), entry.name
        expected = ast.literal_eval(default) if found else inspect.Parameter.empty
        assert signature[entry.name].default == expected, entry.name


def test_function_docstrings_name_the_parameters():
    for function in FUNCTIONS:
        # An override may leave it to the base class's docstring.
        assert inspect.getdoc(function), f"{function.__qualname__} has no docstring"
        documented = names(FunctionDoc(function)["Parameters"]) if function.__doc__ else []
        assert documented in ([], signature_names(function)), function.__qualname__


def test_solver_docstrings_say_what_they_cost_and_where_they_come_from():
    for cls in solvers.registry().values():
        doc = ClassDoc(cls)
        assert doc["References"], cls.__name__
        assert "Kernel evaluations" in " ".join(doc["Notes"]) or not cls.instrumented, cls.__name__
