"""LinearSDCA against LIBLINEAR on text: time to the same stopping rule, and the objectives reached.

``python -m benchmarks.compare.linear_text [--tasks NAME ...] [--costs C ...] [--rounds N]``

The hinge loss without bias, and for the task named so with LIBLINEAR's bias, the weight of a
constant feature, on the same points in double precision. LIBLINEAR is that of scikit-learn and,
where it is installed, its present release, with and without the conversion of the points to its own
format. It gets tol = 1e-3, and the limit on passes that its present release has. LinearSDCA gets
the same. If its objective, in the mean of the rounds, is then above the lowest of LIBLINEAR's by
more than 1e-5 of it, tol is halved, or where a fit ended at its limit 10 % more passes are allowed,
until it is not. Objectives are primal ones, recomputed in double precision. Competitors take turns
in one process with one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numba import set_num_threads
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginbench.data_loaders import load
from marginbench.data_loaders.datasets.random_text import DEFAULTS, check_parameters, read
from marginbench.solvers import LinearSDCA

_TOL = 1e-3
#: Passes after which LIBLINEAR's present release stops.
_PASSES = 300
#: Generated documents: n, features, and the share of them in a document.
_SHAPES = {
    "text-2k": (2_000, 20_000, 0.004),
    "text-20k": (20_000, 50_000, 0.001),
    "text-20k-bias": (20_000, 50_000, 0.001),
    "text-62k": (62_369, 99_757, 0.0008),
    "text-300k": (300_000, 50_000, 0.001),
}
_TASKS = ("reuters_moneyfx", *_SHAPES)
_COSTS = (0.1, 1.0, 10.0, 100.0)
#: An objective above LIBLINEAR's by no more than this part of it is equal.
_EQUAL = 1e-5
_LEAST_TOL = 1e-6
_MOST_PASSES = 3000


class Fit(NamedTuple):
    """Seconds of the processor and of a clock, and what came of them."""

    cpu_s: float
    wall_s: float
    weights: np.ndarray
    passes: float


def points(name: str) -> tuple[Any, np.ndarray]:
    """Documents and labels, in double precision."""
    if name in _SHAPES:
        n, d, density = _SHAPES[name]
        shape = {"n_train": n, "n_features": d, "density": density, "n_test": 2}
        train = read({}, check_parameters(DEFAULTS | shape)).train
        X, y = train.X, train.y
    else:
        data = load(name)
        X, y = data.X_train, data.y_train
    X = sparse.csr_matrix(X, dtype=np.float64)
    if name.endswith("-bias"):
        X = sparse.csr_matrix(sparse.hstack([X, np.ones((X.shape[0], 1))]))
    return X, np.asarray(y, dtype=np.float64)


class Effort(NamedTuple):
    """When LinearSDCA stops."""

    tol: float = _TOL
    passes: int = _PASSES


def _ours(X: Any, y: np.ndarray, C: float, effort: Effort, seed: int) -> tuple[np.ndarray, float]:
    solver = _solver(C, effort, seed).fit(X, y)
    return solver.coef_[0], solver.n_iter_ / len(y)


def _solver(C: float, effort: Effort, seed: int) -> LinearSDCA:
    return LinearSDCA(C=C, tol=effort.tol, max_epochs=effort.passes, random_state=seed)


def _scikit_learn(X: Any, y: np.ndarray, C: float, seed: int) -> tuple[np.ndarray, float]:
    options = {"loss": "hinge", "fit_intercept": False, "tol": _TOL, "max_iter": _PASSES}
    solver = LinearSVC(C=C, random_state=seed, **options).fit(X, y)
    return solver.coef_[0], float(solver.n_iter_)


def _official(library: Any) -> Callable[..., tuple[np.ndarray, float]]:
    """LIBLINEAR's present release on points in its own format; it does not tell its passes."""
    from liblinear.liblinearutil import train

    def fit(data: Any, C: float, seed: int) -> tuple[np.ndarray, float]:
        library.liblinear.srand(seed)
        model = train(data, library.parameter(f"-s 3 -c {C!r} -e {_TOL!r} -q"))
        w = np.ctypeslib.as_array(model.w, (model.nr_feature,)) * model.get_labels()[0]
        return w.copy(), np.nan

    return fit


def peers(X: Any, y: np.ndarray, C: float) -> dict[str, Callable[[int], Any]]:
    """Name -> a fit with this seed."""
    found: dict[str, Callable[[int], Any]] = {
        "scikit-learn": lambda seed: _scikit_learn(X, y, C, seed),
    }
    if find_spec("liblinear") is None:
        return found
    from liblinear import liblinear

    fit, data = _official(liblinear), liblinear.problem(y, X)
    found["official"] = lambda seed: fit(liblinear.problem(y, X), C, seed)
    found["official, converted before"] = lambda seed: fit(data, C, seed)
    return found


def _timed(fit: Callable[[int], Any], seed: int) -> Fit:
    wall, cpu = time.perf_counter(), time.process_time()
    weights, passes = fit(seed)
    return Fit(time.process_time() - cpu, time.perf_counter() - wall, weights, passes)


def objective(X: Any, y: np.ndarray, C: float, w: np.ndarray) -> float:
    """``1/2 ||w||^2 + C sum of hinge losses``."""
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum())


def least_effort(
    X: Any, y: np.ndarray, C: float, rounds: int, target: float
) -> tuple[Effort, float]:
    """The least effort by which LinearSDCA reaches the target, and what it reaches."""
    effort = Effort()
    while True:
        fits = [_solver(C, effort, seed).fit(X, y) for seed in range(rounds)]
        reached = float(np.mean([objective(X, y, C, fit.coef_[0]) for fit in fits]))
        if reached <= target * (1.0 + _EQUAL):
            return effort, reached
        if effort.tol < _LEAST_TOL or effort.passes > _MOST_PASSES:
            raise SystemExit(f"C = {C:g}: LinearSDCA does not reach {target:.8g}: {reached:.8g}")
        if all(fit.status_ == "converged" for fit in fits):
            effort = effort._replace(tol=effort.tol / 2.0)
        else:
            effort = effort._replace(passes=round(1.1 * effort.passes))


def print_task(name: str, costs: list[float], rounds: int) -> list[tuple[float, str]]:
    """Measure one set of documents; gives ratios to LIBLINEAR's CPU time with their cases."""
    X, y = points(name)
    ratios = []
    for C in costs:
        fits = peers(X, y, C)
        values = {
            label: float(np.mean([objective(X, y, C, fit(seed)[0]) for seed in range(rounds)]))
            for label, fit in fits.items()
        }
        effort, reached = least_effort(X, y, C, rounds, min(values.values()))
        fits["LinearSDCA"] = partial(_ours, X, y, C, effort)
        done: dict[str, list[Fit]] = {label: [] for label in fits}
        for seed in range(rounds):
            for label, fit in fits.items():
                done[label].append(_timed(fit, seed))
        ours = done.pop("LinearSDCA")
        print(
            f"| {name} | {C:g} | LinearSDCA, tol = {effort.tol:.1e} | "
            f"{_median(ours, 'cpu_s'):.4f} | {_median(ours, 'passes'):.1f} | {reached:.8g} | | | |"
        )
        for label, those in done.items():
            cpu, wall = (_ratio(ours, those, what) for what in ("cpu_s", "wall_s"))
            print(
                f"| {name} | {C:g} | {label} | {_median(those, 'cpu_s'):.4f} | "
                f"{_median(those, 'passes'):.0f} | {values[label]:.8g} | {cpu:.2f} | {wall:.2f} | "
                f"{reached / values[label] - 1.0:.1e} |",
                flush=True,
            )
            ratios.append((cpu, f"{name}, C = {C:g}, {label}"))
    return ratios


def _ratio(ours: list[Fit], those: list[Fit], what: str) -> float:
    pairs = zip(ours, those, strict=True)
    return float(np.median([getattr(a, what) / getattr(b, what) for a, b in pairs]))


def _median(fits: list[Fit], what: str) -> float:
    return float(np.median([getattr(fit, what) for fit in fits]))


def main() -> None:
    """Print the table and its worst case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=_TASKS, default=_TASKS)
    parser.add_argument("--costs", nargs="+", type=float, default=_COSTS)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| documents | C | solver | CPU s | passes | objective | ours / CPU | wall | above |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in asked.tasks:
        ratios += print_task(name, asked.costs, asked.rounds)
    worst, case = max(ratios)
    mean = np.exp(np.mean(np.log([ratio for ratio, _ in ratios])))
    print(
        f"\nCPU time of LinearSDCA over LIBLINEAR's: geometric mean {mean:.2f}, "
        f"worst {worst:.2f} ({case})"
    )


if __name__ == "__main__":
    set_num_threads(1)
    with threadpool_limits(1):
        main()
