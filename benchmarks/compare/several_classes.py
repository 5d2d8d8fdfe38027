"""Ten classes at once against ten fits, and against scikit-learn's solvers.

Prints, for each data set and solver, the test error, the CPU seconds of the fit and of the
predictions, and the kernel entries that were computed.

    python -m benchmarks.compare.several_classes --data digits
    python -m benchmarks.compare.several_classes --data mnist --points 60000
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

from marginbench import SMO, BundleClassifier, Dataset, LinearSDCA, load
from marginbench.solvers import MPKFP, Nystrom, Solver

#: gamma and C of each data set.
PROBLEMS = {"digits": (0.02, 10.0), "mnist": (0.02, 1.0), "fashion-mnist": (0.02, 1.0)}


def entrants(gamma: float, C: float, cache: float) -> dict[str, Callable[[], Any]]:
    """Each solver by the name that the table has for it."""
    kernel = {"gamma": gamma, "C": C}
    return {
        "SMO": lambda: SMO(**kernel, cache_size=cache),
        "OneVsRestClassifier(SMO)": lambda: OneVsRestClassifier(SMO(**kernel, cache_size=cache)),
        "SVC (one-vs-one)": lambda: SVC(**kernel, cache_size=cache),
        "OneVsRestClassifier(SVC)": lambda: OneVsRestClassifier(SVC(**kernel, cache_size=cache)),
        "Nystrom": lambda: Nystrom(**kernel, random_state=0),
        "OneVsRestClassifier(Nystrom)": lambda: OneVsRestClassifier(
            Nystrom(**kernel, random_state=0)
        ),
        "MPKFP": lambda: MPKFP(gamma=gamma, max_iter=200),
        "OneVsRestClassifier(MPKFP)": lambda: OneVsRestClassifier(MPKFP(gamma=gamma, max_iter=200)),
        "LinearSDCA": lambda: LinearSDCA(C=C / 10, random_state=0),
        "BundleClassifier": lambda: BundleClassifier(C=C / 10),
        "LinearSVC": lambda: LinearSVC(C=C / 10, loss="hinge", fit_intercept=False),
    }


def computed(model: Any) -> float:
    """Kernel entries computed by a fitted model; NaN where nobody counted."""
    parts = [model] if isinstance(model, Solver) else getattr(model, "estimators_", [])
    if not parts or not all(isinstance(part, Solver) for part in parts):
        return np.nan
    return float(sum(part.counters_.kernel_evals_computed for part in parts))


def measure(make: Callable[[], Any], data: Dataset, rounds: int) -> tuple[float, ...]:
    """Error, CPU seconds of fit and predict (medians), entries computed."""
    fits, predictions = [], []
    for _ in range(rounds):
        started = process_time()
        model = make().fit(data.X_train, data.y_train)
        fits.append(process_time() - started)
        started = process_time()
        error = float(np.mean(model.predict(data.X_test) != data.y_test))
        predictions.append(process_time() - started)
    return error, statistics.median(fits), statistics.median(predictions), computed(model)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=PROBLEMS, default="digits")
    parser.add_argument("--points", type=int, help="training points (default: all)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cache", type=float, default=1024.0, help="kernel cache, MB")
    parser.add_argument("--only", nargs="*", default=[], help="solvers whose name contains this")
    given = parser.parse_args()
    data = load(given.data, {"positive": "none"})
    rows = slice(given.points)
    data = Dataset(**{**vars(data), "X_train": data.X_train[rows], "y_train": data.y_train[rows]})
    warnings.simplefilter("ignore", ConvergenceWarning)
    gamma, C = PROBLEMS[given.data]
    # Compilation is not what is compared.
    for make in entrants(gamma, C, given.cache).values():
        make().fit(data.X_train[:200], data.y_train[:200]).predict(data.X_test[:50])
    print(f"{given.data}, {len(data.y_train)} training points")
    print(f"{'solver':30s} {'error':>8s} {'fit, CPU s':>11s} {'predict':>9s} {'computed':>10s}")
    for name, make in entrants(gamma, C, given.cache).items():
        if given.only and not any(word in name for word in given.only):
            continue
        error, fit, predict, entries = measure(make, data, given.rounds)
        print(
            f"{name:30s} {100 * error:7.2f}% {fit:11.2f} {predict:9.2f} {entries:10.3g}", flush=True
        )


if __name__ == "__main__":
    main()
