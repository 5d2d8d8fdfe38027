"""Compile what studies need before it is needed, and keep it in the cache of machine code.

Compiled functions depend on the types of the points and on the variant of the solver. So every
solver is run, by the harness itself, on a few generated points of each type that datasets
have, with every kernel, and again with what the shipped studies set besides numbers. At last comes
the quickstart, with one seed.
"""

from __future__ import annotations

import inspect
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...solvers.numeric.compiling import cache_folder
from ...solvers.registration import kernel_entries, registry
from ..errors import UserError
from ..hashing import canonical_json
from ..study.feasibility import FeasibilityStudy
from ..study.model import SolverEntry, StudyBase
from ..study.svm import Study
from ..study.toml import load_study, study_names
from .progress import Progress
from .runner import run_study

_POINTS: dict[str, Any] = {"n_train": 40, "n_test": 40}
# One dataset of each type that points have: float64, float32 and CSR.
_DENSE32 = {"dataset": "quadric", "dataset_params": _POINTS | {"n_features": 4}}
_DENSE64 = {"dataset": "checkers", "dataset_params": _POINTS}
_CSR = {"dataset": "random-text", "dataset_params": _POINTS | {"n_features": 50, "density": 0.1}}
# Compilation counts towards this, not towards the time of solving.
_BUDGET = {"timeout": 30.0, "compile_timeout": 300.0}
# A run that fails is none of them: the solver refuses the kernel here, and so it will in a study.
_CUT_SHORT = ("timeout", "memory", "crashed")


class NotKeptError(UserError):
    """Machine code cannot be kept: the folder cannot be written."""


@dataclass(frozen=True)
class Warmed:
    """What was done: functions that were compiled now, for any types; those kept now."""

    folder: Path
    compiled: int
    kept: int
    solvers: int
    seconds: float
    cut_short: int


def warm(jobs: int, progress: Progress | None = None) -> Warmed:
    """Compile what studies need and is not in the cache, in so many processes at the same time."""
    started, folder = time.monotonic(), cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise NotKeptError(
            f"{folder}: machine code cannot be kept here ({os.strerror(error.errno or 0)}), so "
            "every process compiles for itself; set NUMBA_CACHE_DIR to a folder that can be written"
        ) from None

    def code() -> set[tuple[str, int]]:
        """The files of machine code, each with when it was written."""
        return {(path.name, path.stat().st_mtime_ns) for path in folder.glob("*.nbi")}

    studies, before, cut_short = list(_studies()), code(), 0
    names = {entry.name for study in studies for entry in study.solvers}
    with tempfile.TemporaryDirectory(prefix="marginbench-warm-") as scratch:
        for study in studies:
            results = Path(scratch) / study.name
            summary = run_study(study, results, jobs=jobs, progress=progress or Progress())
            cut_short += sum(summary.statuses.get(status, 0) for status in _CUT_SHORT)
    after, seconds = code(), time.monotonic() - started
    return Warmed(folder, len(after - before), len(after), len(names), seconds, cut_short)


def _studies() -> Iterator[StudyBase]:
    yield Study.model_validate(
        {
            "name": "warm",
            "seeds": 1,
            "budget": _BUDGET,
            "task": list(_tasks()),
            "solver": list(_entries()),
        }
    )
    cell = {"label": "columns", "generator": "ldfp", "m": 5, "n": 50, "tol": 1e-2, "instances": 1}
    yield FeasibilityStudy.model_validate(
        {
            "name": "warm-feasibility",
            "budget": _BUDGET,
            "cell": [cell],
            "method": [{"name": name} for name in registry("feasibility")],
        }
    )
    yield load_study("quickstart").with_seeds(1)


def _tasks() -> Iterator[dict[str, Any]]:
    fixed: dict[str, Any] = {"reference": False, "C": 1.0}
    for points in (_DENSE32, _DENSE64, _CSR):
        for kernel in ("rbf", "linear"):
            for bias in (False, True):
                label = f"{points['dataset']} {kernel}{' bias' if bias else ''}"
                own = {"label": label, "kernel": kernel, "fit_intercept": bias}
                yield points | fixed | own
    for kernel in kernel_entries():
        if kernel not in ("rbf", "linear", "precomputed"):
            yield _DENSE32 | fixed | {"label": f"quadric {kernel}", "kernel": kernel}


def _entries() -> Iterator[SolverEntry]:
    """Every solver as it is, and with the words and flags that shipped studies give it."""
    classes = registry()
    listed = [SolverEntry(name=name) for name in classes]
    for study in map(load_study, study_names()):
        if isinstance(study, Study):
            listed += [entry for entry in study.solver if entry.name in classes]
    variants: dict[str, SolverEntry] = {}
    for entry in listed:
        # Words and flags select code of a solver, numbers how far it goes.
        params: dict[str, Any] = {
            k: v for k, v in entry.params.items() if isinstance(v, str | bool)
        }
        if "nu" in inspect.signature(classes[entry.name]).parameters:
            # Studies take it from the reference optimum, which nothing is compared with here.
            params["nu"] = 0.1
        variant = f"{entry.name} {canonical_json(params)}"
        label = variant.removesuffix(" {}")
        variants.setdefault(variant, SolverEntry(name=entry.name, label=label, params=params))
    yield from variants.values()
