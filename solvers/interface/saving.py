"""Fitted solvers in files without pickle: the class by name, parameters, the model, labels."""

from __future__ import annotations

import json
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...data_loaders.atomic import replacing
from ..models import Model
from ..models.expansions import packed, unpacked
from ..numeric.counters import Counters, FeasibilityCounters
from ..registration import entries

_FORMAT, _VERSION = "marginbench solver", 1
#: Fitted attributes that are plain values; a solver without names of features lacks the last.
_PLAIN = ("n_features_in_", "n_iter_", "status_", "feature_names_in_")


def save_solver(solver: Any, path: str | Path) -> None:
    """Write a fitted solver; see :meth:`Solver.save`."""
    check_is_fitted(solver)
    arrays: dict[str, np.ndarray] = {}
    model, parameters = packed(solver.model_, "model.", arrays), {}
    for name, value in solver.get_params(deep=False).items():
        try:
            parameters[name] = packed(value, f"parameter.{name}.", arrays)
        except ValueError:
            raise ValueError(
                f"{name}={value!r} cannot be stored, only numbers, text, arrays and registered "
                f"kernels: set_params({name}=...) before saving, if predictions do not need it"
            ) from None
    classes, counters = solver.classes_, solver.counters_
    fitted = {name: getattr(solver, name) for name in _PLAIN if hasattr(solver, name)}
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "marginbench": metadata.version("marginbench"),
        "class": type(solver).__name__,
        "parameters": parameters,
        "model": model,
        "classes": {"values": classes.tolist(), "dtype": classes.dtype.str},
        "fitted": {name: np.asarray(value).tolist() for name, value in fitted.items()},
        "counters": None if counters is None else counters.as_dict(),
    }
    try:
        text = json.dumps(header)
    except TypeError:
        raise ValueError(
            f"classes of type {classes.dtype} cannot be stored: fit with text or numbers as labels"
        ) from None
    with replacing(Path(path)) as sink:
        contents: dict[str, Any] = {"header": np.array(text), **arrays}
        np.savez(sink, **contents)


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
        return _restored(_class_of(header, cls), header, arrays)
    except Exception as error:  # noqa: BLE001 - of a damaged file, whatever reading it raises
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"{path} is not a saved solver ({reason})") from None


def _class_of(header: dict[str, Any], cls: type[Any] | None) -> type[Any]:
    name = header["class"]
    if header["version"] != _VERSION:
        raise ValueError(
            f"it is in format {header['version']!r} of marginbench {header['marginbench']!r}, and "
            f"this version reads format {_VERSION}: save the solver again with it"
        )
    if cls is not None:
        if cls.__name__ != name:
            raise ValueError(f"it holds a {name}, not a {cls.__name__}")
        return cls
    if name not in entries():
        raise ValueError(
            f"it holds a {name}, which is no solver of marginbench: give its class, "
            f"load_solver(path, {name})"
        )
    solver: type[Any] = getattr(import_module(entries()[name].module), name)
    return solver


def _restored(cls: type[Any], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    parameters = header["parameters"].items()
    solver = cls(
        **{name: unpacked(value, f"parameter.{name}.", arrays) for name, value in parameters}
    )
    model: Model = unpacked(header["model"], "model.", arrays)
    solver.model_ = model
    solver.classes_ = np.array(header["classes"]["values"], dtype=header["classes"]["dtype"])
    for name, value in {**header["fitted"], **model.attributes()}.items():
        setattr(solver, name, np.array(value, dtype=object) if isinstance(value, list) else value)
    counts, kinds = header["counters"], (Counters, FeasibilityCounters)
    solver.counters_ = counts and next(
        kind(**counts) for kind in kinds if kind().as_dict().keys() == counts.keys()
    )
    return solver
