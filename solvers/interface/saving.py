"""Fitted solvers in files without pickle: the class by name, parameters, the model, labels."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from .restored import check_classes, check_restored

_FORMAT = "marginbench solver"
_VERSION = 1
# Arrays of the file by what they belong to.
_MODEL, _PARAMETER = "model.", "parameter."
#: How an archive begins; anything else NumPy would take for an array or for a pickle.
_ARCHIVE = (b"PK\x03\x04", b"PK\x05\x06")
#: Fitted attributes that are plain values; a solver without names of features lacks the last.
_PLAIN = ("n_features_in_", "n_iter_", "status_", "feature_names_in_")
#: What reading a damaged file raises, on the way from its bytes to a model.
_DAMAGE = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, RecursionError),
    *(StopIteration, SyntaxError),
    *(OverflowError, NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error),
)


def save_solver(solver: Any, path: str | Path) -> None:
    """Write a fitted solver; see :meth:`Solver.save`."""
    check_is_fitted(solver)
    arrays: dict[str, np.ndarray] = {}
    description, of_model = solver.model_._stored()
    arrays.update({_MODEL + name: array for name, array in of_model.items()})
    parameters = {}
    for name, value in solver.get_params(deep=False).items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            arrays[_PARAMETER + name] = value
        else:
            parameters[name] = _stored(name, value)
    counters = solver.counters_
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "marginbench": _installed(),
        "class": type(solver).__name__,
        "parameters": parameters,
        "model": {"kind": solver.model_.kind, **description},
        "classes": _stored_classes(solver.classes_),
        "fitted": {
            name: _listed(getattr(solver, name)) for name in _PLAIN if hasattr(solver, name)
        },
        "counters": None if counters is None else counters.as_dict(),
    }
    text = json.dumps(header, allow_nan=True)
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
    with _explained(path), open(path, "rb") as source:
        if source.read(4) not in _ARCHIVE:
            raise ValueError("it is no .npz archive")
    with _explained(path), np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != _FORMAT:
            raise ValueError(f"it says that it is a {header['format']!r}")
        version, writer = header["version"], str(header["marginbench"])
    if version != _VERSION:
        raise ValueError(
            f"{path} holds a solver in format {version!r} of marginbench {writer!r}, and this "
            f"version reads format {_VERSION}: save the solver again with it"
        )
    found = _class_of(path, str(header["class"]), cls)
    with _explained(path):
        # The base class imports this module.
        if not hasattr(found, "_solve"):
            raise ValueError(f"a {found.__name__} cannot be saved")
        return _restored(found, header, arrays)


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """Say of any error in the content which file it is in."""
    try:
        yield
    except _DAMAGE as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"{path} is not a saved solver ({reason})") from None


def _class_of(path: str | Path, name: str, cls: type[Any] | None) -> type[Any]:
    if cls is not None:
        if cls.__name__ != name:
            raise ValueError(f"{path} holds a {name}, not a {cls.__name__}")
        return cls
    known = entries()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}? Otherwise " if near else ""
        raise ValueError(
            f"{path} holds a {name}, which is no solver of marginbench: {hint}"
            f"give its class, load_solver(path, {name})"
        )
    found: type[Any] = getattr(import_module(known[name].module), name)
    return found


def _restored(cls: type[Any], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    parameters = {name: _revived(value) for name, value in header["parameters"].items()}
    parameters |= _with_prefix(arrays, _PARAMETER)
    solver = cls(**parameters)
    description = dict(header["model"])
    kind = description.pop("kind")
    model = Model.of_kind(kind)._restored(description, _with_prefix(arrays, _MODEL))
    solver.model_ = model
    labels = header["classes"]["values"]
    solver.classes_ = np.array(labels, dtype=header["classes"]["dtype"])
    check_classes(solver.classes_, labels)
    for name in header["fitted"]:
        if name not in _PLAIN:
            raise ValueError(f"it has an attribute {name!r}")
        value = header["fitted"][name]
        setattr(solver, name, np.array(value, dtype=object) if isinstance(value, list) else value)
    check_restored(solver)
    for name, value in model.attributes().items():
        setattr(solver, name, value)
    counters = header["counters"]
    solver.counters_ = None if counters is None else _counters(counters)
    return solver


def _counters(counts: dict[str, int]) -> Counters:
    kinds = (Counters, FeasibilityCounters)
    return next(kind(**counts) for kind in kinds if kind().as_dict().keys() == counts.keys())


def _installed() -> str:
    """The version of marginbench that writes a file, for whoever cannot read it."""
    try:
        return metadata.version("marginbench")
    except metadata.PackageNotFoundError:
        return "unknown"


def _with_prefix(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _stored_classes(classes: np.ndarray) -> dict[str, Any]:
    if classes.dtype == object and not all(isinstance(label, str) for label in classes):
        raise ValueError(f"classes of mixed types cannot be stored: {classes.tolist()!r}")
    labels = classes.tolist()
    try:
        json.dumps(labels)
    except TypeError:
        raise ValueError(
            f"classes of type {classes.dtype} cannot be stored: fit with text or numbers as labels"
        ) from None
    return {"values": labels, "dtype": classes.dtype.str}


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
