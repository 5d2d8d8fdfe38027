"""Which points merging may pair: the test error of BSCA and BSGD for each ``pairing``.

``python -m benchmarks.compare.budget_pairing`` prints the tables of docs/budget.md: for each
dataset, budget and number of epochs the exact error (SMO), and the median and range of the errors
over five seeds, with the median CPU time of an epoch. Seeds are the same for each pairing, and so
are the draws. The pairings take turns in one process. Words on the command line select methods and
datasets: ``BSCA adult``. It takes 20 minutes; datasets without files are left out.
"""

import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from marginbench.data_loaders import DataError, load
from marginbench.solvers import BSCA, BSGD, SMO

PAIRINGS = ("label", "any", "sign")
SEEDS = range(5)
_METHODS = {"BSCA": BSCA, "BSGD": BSGD}
#: Budget and epochs.
_HORIZONS = ((200, 20), (500, 20), (500, 100))
#: MNIST has so many features that a part of it has to do, and no hundred epochs.
_MNIST_POINTS = 10_000
#: Name, dataset, its parameters, C and gamma. Those of BSCA18 table 1 for the first three.
_SETS = (
    ("adult", "adult", {}, 32.0, 2.0**-7),
    ("cod-rna", "cod-rna", {"scale": "unit"}, 32.0, 2.0**-3),
    ("ijcnn1", "ijcnn1", {}, 32.0, 2.0),
    ("covtype-sample", "covtype-sample", {"scale": "unit"}, 32.0, 2.0),
    ("checkers", "checkers", {"n_train": 10_000, "n_test": 20_000, "noise": 0.1}, 10.0, 5.0),
    ("mnist", "mnist", {"positive": "none"}, 1.0, 0.02),
)


def points_of(name, params):
    """Training points and labels, test points and labels; MNIST as odd against even digits."""
    data = load(name, params)
    parts = data.X_train, data.y_train, data.X_test, data.y_test
    if name != "mnist":
        return parts
    X, y, X_test, y_test = parts
    odd, odd_test = (np.where(digits % 2 == 1, 1, -1) for digits in (y, y_test))
    return X[:_MNIST_POINTS], odd[:_MNIST_POINTS], X_test, odd_test


def error(solver, X, y):
    """The error on these points, in percent."""
    return 100.0 * (1.0 - solver.score(X, y))


def measure(method, parts, budget, epochs, **params):
    """Errors, shape (pairings, seeds), and CPU seconds of an epoch, of the same shape."""
    X, y, X_test, y_test = parts
    errors, seconds = np.empty((2, len(PAIRINGS), len(SEEDS)))
    for seed in SEEDS:
        for k, pairing in enumerate(PAIRINGS):
            solver = method(
                budget=budget, max_epochs=epochs, pairing=pairing, random_state=seed, **params
            )
            started = time.process_time()
            solver.fit(X, y)
            seconds[k, seed] = (time.process_time() - started) / epochs
            errors[k, seed] = error(solver, X_test, y_test)
    return errors, seconds


def row(cells):
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def report(names, methods):
    """Print the table of each method, row by row as they are measured."""
    for method in methods:
        print(f"\n{method}\n")
        print(row(["data", "budget, epochs", "exact", *PAIRINGS, "ms per epoch"]), flush=True)
        for name, dataset, dataset_params, C, gamma in _SETS:
            if name not in names:
                continue
            try:
                parts = points_of(dataset, dataset_params)
            except DataError as problem:
                print(f"{name} is left out: {problem}", file=sys.stderr)
                continue
            X, y, X_test, y_test = parts
            params = {"C": C, "gamma": gamma}
            exact = error(SMO(cache_size=1000.0, **params).fit(X, y), X_test, y_test)
            _METHODS[method](budget=50, max_epochs=1, **params).fit(X[:2000], y[:2000])
            for budget, epochs in _HORIZONS:
                if epochs > 20 and (name == "mnist" or method == "BSGD"):
                    continue
                errors, seconds = measure(_METHODS[method], parts, budget, epochs, **params)
                shown = [f"{np.median(e):.2f} ({e.min():.2f}-{e.max():.2f})" for e in errors]
                times = " / ".join(f"{1000 * np.median(s):.0f}" for s in seconds)
                print(row([name, f"{budget}, {epochs}", f"{exact:.2f}", *shown, times]), flush=True)


def main():
    """Print the tables; names of methods and datasets as arguments select them."""
    chosen = set(sys.argv[1:])
    names = {name for name, *_ in _SETS}
    unknown = chosen - names - _METHODS.keys()
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    with threadpool_limits(1):
        report(names & chosen or names, [m for m in _METHODS if m in chosen] or list(_METHODS))


if __name__ == "__main__":
    main()
