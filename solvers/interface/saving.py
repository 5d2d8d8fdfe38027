"""Fitted solvers in files without pickle: the class by name, parameters, the model, labels."""

from __future__ import annotations

import json
from difflib import get_close_matches
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...data_loaders.atomic import replacing
from ..kernels import Kernel, is_registered, kernel_of
from ..models import Model
from ..numeric.counters import Counters, FeasibilityCounters
from ..registration import entries

_FORMAT, _VERSION = "marginbench solver", 1
# Arrays of the file by what they belong to.
_MODEL, _PARAMETER = "model.", "parameter."
#: Fitted attributes that are plain values; a solver without names of features lacks the last.
_PLAIN = ("n_features_in_", "n_iter_", "status_", "feature_names_in_")


def save_solver(solver: Any, path: str | Path) -> None:
    """Write a fitted solver; see :meth:`Solver.save`."""
    check_is_fitted(solver)
    description, of_model = solver.model_._stored()
    arrays = {_MODEL + name: array for name, array in of_model.items()}
    parameters = {}
    for name, value in solver.get_params(deep=False).items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            arrays[_PARAMETER + name] = value
        else:
            parameters[name] = _stored(name, value)
    classes, counters = solver.classes_, solver.counters_
    fitted = {name: _listed(getattr(solver, name)) for name in _PLAIN if hasattr(solver, name)}
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "marginbench": metadata.version("marginbench"),
        "class": type(solver).__name__,
        "parameters": parameters,
        "model": description,
        "classes": {"values": classes.tolist(), "dtype": classes.dtype.str},
        "fitted": fitted,
        "counters": None if counters is None else counters.as_dict(),
    }
    try:
        text = json.dumps(header)
    except TypeError:
        raise ValueError(
            f"classes of type {classes.dtype} cannot be stored: fit with text or numbers as labels"
        ) from None
    with replacing(Path(path)) as sink:
        np.savez(sink, allow_pickle=False, header=np.array(text), **arrays)


def load_solver(path: str | Path, cls: type[Any] | None = None) -> Any:
    """Read a fitted solver that :meth:`Solver.save` wrote.

    Nothing that a file names is imported or run: its class is one of marginbench, or ``cls``.

    Parameters
    ----------
    path : str or Path
    cls : type, optional
        The class of a solver of your own.

    Returns
    -------
    Solver
        Fitted: it predicts what the saved one predicts, to the last bit. Attributes that only
        describe the run, such as ``trace_``, are not in the file.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no file of a solver, is damaged, or holds another class.
    """
    with open(path, "rb"):
        pass  # a file that cannot be read says so itself
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != _FORMAT:
            raise ValueError(f"it says that it is a {header['format']!r}")
        found = _class_of(header, cls)
        return _restored(found, header, arrays)
    except Exception as error:  # noqa: BLE001 - of a damaged file, whatever reading it raises
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"{path} is not a saved solver ({reason})") from None


def _class_of(header: dict[str, Any], cls: type[Any] | None) -> type[Any]:
    name, known = header["class"], entries()
    if header["version"] != _VERSION:
        raise ValueError(
            f"it is in format {header['version']!r} of marginbench {header['marginbench']!r}, and "
            f"this version reads format {_VERSION}: save the solver again with it"
        )
    if cls is not None and cls.__name__ != name:
        raise ValueError(f"it holds a {name}, not a {cls.__name__}")
    if cls is not None:
        return cls
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}? Otherwise " if near else ""
        raise ValueError(
            f"it holds a {name}, which is no solver of marginbench: {hint}"
            f"give its class, load_solver(path, {name})"
        )
    found: type[Any] = getattr(import_module(known[name].module), name)
    return found


def _restored(cls: type[Any], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    def own(prefix: str) -> dict[str, np.ndarray]:
        return {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }

    parameters = {name: _revived(value) for name, value in header["parameters"].items()}
    solver = cls(**parameters, **own(_PARAMETER))
    model = Model._restored(header["model"], own(_MODEL))
    solver.model_ = model
    solver.classes_ = np.array(header["classes"]["values"], dtype=header["classes"]["dtype"])
    for name in _PLAIN:
        if name in header["fitted"]:
            value = header["fitted"][name]
            value = np.array(value, dtype=object) if isinstance(value, list) else value
            setattr(solver, name, value)
    for name, value in model.attributes().items():
        setattr(solver, name, value)
    counts, kinds = header["counters"], (Counters, FeasibilityCounters)
    solver.counters_ = counts and next(
        kind(**counts) for kind in kinds if kind().as_dict().keys() == counts.keys()
    )
    return solver


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _stored(name: str, value: Any) -> Any:
    """A parameter as JSON values; what JSON lacks is an object with one key, its kind."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Kernel) and is_registered(value):
        return {"kernel": value.describe()}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_stored(name, item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_stored(name, key), _stored(name, value[key])] for key in value]}
    raise ValueError(
        f"{name}={value!r} cannot be stored, only numbers, text, arrays and registered kernels: "
        f"set_params({name}=...) before saving, if predictions do not need it"
    )


def _revived(value: Any) -> Any:
    """The parameter that :func:`_stored` made this of."""
    if not isinstance(value, dict):
        return value
    kind, content = next(iter(value.items()))
    if kind == "kernel":
        return kernel_of(content)
    if kind == "dict":
        return {_revived(key): _revived(item) for key, item in content}
    return {"list": list, "tuple": tuple}[kind](_revived(item) for item in content)
