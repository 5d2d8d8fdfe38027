"""Checks of the constructor and of what the class declares; nothing is fitted."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.base import clone

from ...solvers.kernels import Kernel
from ..errors import first_line
from .findings import MendError
from .subject import Subject, raised


class _Anything:
    """A value that no parameter expects; a constructor must store it as it is."""

    def __repr__(self) -> str:
        return "<anything>"


def method_constructor(subject: Subject) -> None:
    """Parameters can be listed; a method need not be an estimator."""
    for name, item in inspect.signature(subject.cls).parameters.items():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            raise MendError(f"__init__ takes *{name}; list every parameter by name")
        if item.default is item.empty:
            raise MendError(f"{name} has no default; give it one, so that the class can be built")
    subject.cls()


def constructor(subject: Subject) -> None:
    """Parameters follow scikit-learn: listed, with defaults, stored unchanged, cloned."""
    method_constructor(subject)
    cls, defaults = subject.cls, subject.defaults
    found = cls().get_params(deep=False)
    for name, default in defaults.items():
        value = found.get(name, inspect.Parameter.empty)
        if value is not default and repr(value) != repr(default):
            raise MendError(
                f"get_params()[{name!r}] is {value!r:.60}, but the default is {default!r:.60}; "
                "store parameters under their own names, unchanged"
            )
    for name in defaults:
        _check_stored(subject, name)
    error = raised(clone, cls())
    if error is not None:
        raise MendError(f"clone() raises {first_line(error)}; let __init__ only store parameters")
    if not isinstance(raised(cls().set_params, no_such_parameter=1), ValueError):
        raise MendError("set_params accepts a name that is no parameter; do not override it")


def _check_stored(subject: Subject, name: str) -> None:
    anything = _Anything()
    try:
        kept = getattr(subject.cls(**{name: anything}), name, None)
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything
        raise MendError(
            f"__init__ looks at {name} ({first_line(error)}); check values in _check_parameters"
        ) from None
    if kept is not anything:
        raise MendError(f"__init__ changes {name}; store it unchanged and convert it in _solve")


def traits(subject: Subject) -> None:
    """Class attributes have values that the harness knows, and parameters to go with them."""
    cls, known = subject.cls, subject.defaults
    for name, values in (("scalarization", ("C", "R", "S", None)), ("certificate", ("dual", None))):
        _check_one_of(cls, name, values)
    flags = ("supports_bias", "supports_no_bias", "supports_sparse", "supports_callable_kernel")
    for name in (*flags, "instrumented"):
        _check_one_of(cls, name, (True, False))
    if not (cls.supports_bias or cls.supports_no_bias):
        raise MendError("supports_bias and supports_no_bias are both False; no task fits")
    if cls.supports_bias and "fit_intercept" not in known:
        raise MendError(
            "supports_bias is True, but there is no parameter fit_intercept by which the harness "
            "could ask for a bias; inherit SolverParameters"
        )
    if cls.scalarization in ("C", "R") and "C" not in known:
        raise MendError(
            f"scalarization is {cls.scalarization!r}, but there is no parameter C, so every task's "
            "C is ignored; inherit SoftMarginParameters, or set scalarization = None"
        )
    if cls.scalarization == "S" and "nu" not in known:
        raise MendError("scalarization is 'S', but there is no parameter nu; declare it")
    own = getattr(cls, "kernel", None)
    if "kernel" not in known and not isinstance(own, str | Kernel):
        raise MendError("there is no parameter kernel; inherit KernelParameters")
    if "monitor" not in inspect.signature(cls.fit).parameters:
        raise MendError("fit takes no monitor; override _solve instead of fit")


def _check_one_of(cls: type[Any], name: str, values: tuple[Any, ...]) -> None:
    value = getattr(cls, name)
    if not any(
        value is known or (type(value) is type(known) and value == known) for known in values
    ):
        shown = ", ".join(map(repr, values))
        raise MendError(f"{name} is {value!r:.60}; it must be one of {shown}")
