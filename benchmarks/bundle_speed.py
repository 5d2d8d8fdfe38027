"""Bundle methods: what an iteration costs, time to 0.001 of the optimum, memory, and gamma_t.

``python -m benchmarks.bundle_speed [iteration] [time] [memory] [gamma]`` prints the tables asked
for; by default all of them. Competitors take turns in one process with one thread. Real data come
from the cache; ``text`` is a random sparse matrix of the shape of a collection of abstracts.
The ``track_`` numbers are deterministic up to rounding; ``time_`` only advise. Lower is better.
"""

import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from data_loaders import load
from solvers import BundleClassifier, LinearPegasos, LinearSDCA, minimize_risk

#: How far from the optimum, in units of lambda/2 ||w||^2 + mean loss, as in BMRM07 Figure 3.
_CLOSE = 1e-3
#: lambda of each data set, between the values of BMRM07 for text.
_LAMBDAS = {"reuters_moneyfx": 1e-4, "adult": 1e-3, "text": 2e-4}
_ROUNDS = 5


def random_text(n, d, density, seed=0):
    """A random sparse matrix with few frequent and many rare features, and labels.

    Parameters
    ----------
    n, d : int
        Points and features.
    density : float
        Share of the entries that are stored.
    seed : int

    Returns
    -------
    X : csr_matrix of float32, shape (n, d)
        Rows of length 1.
    y : ndarray of float64, shape (n,)
    """
    rng = np.random.default_rng(seed)
    per_row = max(1, round(density * d))
    indices = np.empty((n, per_row), dtype=np.int32)
    for start in range(0, n, 10_000):
        block = indices[start : start + 10_000]
        # Ranks with density 1 / rank, as of words.
        block[:] = np.minimum(d ** rng.random(block.shape), d - 1).astype(np.int32)
    data = np.full(n * per_row, per_row**-0.5, dtype=np.float32)
    indptr = np.arange(
        0, n * per_row + 1, per_row, dtype=np.int64 if n * per_row > 2e9 else np.int32
    )
    X = sparse.csr_matrix((data, indices.ravel(), indptr), shape=(n, d))
    scores = X @ rng.standard_normal(d)
    noise = 0.5 * scores.std() * rng.standard_normal(n)
    return X, np.where(scores + noise > np.median(scores), 1.0, -1.0)


def _data(name):
    if name == "text":
        return random_text(62_369, 99_757, 0.0008)
    data = load(name)
    return data.X_train, np.asarray(data.y_train, dtype=np.float64)


def _objective(X, y, w, lam):
    slack = np.maximum(0, 1 - y * (X @ w))
    return 0.5 * lam * w @ w + slack.mean()


class BundleIterations:
    """Iterations to fixed gaps on a small random text collection."""

    params = (("qp", "line_search"), ("hinge", "logistic"))
    param_names = ("inner", "loss")
    timeout = 120

    def setup(self, inner, loss):
        self.X, self.y = random_text(2000, 1000, 0.02)
        self.options = {"loss": loss, "inner": inner, "lam": 1e-3, "tol": 1e-2, "max_epochs": 3000}
        minimize_risk(self.X, self.y, **self.options)

    def time_minimize(self, inner, loss):
        minimize_risk(self.X, self.y, **self.options)

    def track_iterations(self, inner, loss):
        found = minimize_risk(self.X, self.y, **self.options)
        if found.status != "converged":
            raise RuntimeError(f"the gap was not reached in {found.n_iter} iterations")
        return found.n_iter


def print_iteration_costs():
    """The time of an iteration over that of its two products by scipy, median of rounds."""
    print("| data | loss | inner | ms per iteration | ms of X w and X'g | ratio |")
    print("|---|---|---|---|---|---|")
    for name, lam in _LAMBDAS.items():
        X, y = _data(name)
        # scipy would convert single precision at each product.
        X = X.astype(np.float64)
        rng = np.random.default_rng(0)
        w, g, transposed = rng.standard_normal(X.shape[1]), rng.standard_normal(len(y)), X.T
        for loss in ("hinge", "squared_hinge", "logistic"):
            for inner in ("qp", "line_search"):
                options = {"lam": lam, "inner": inner, "tol": 0.0, "max_epochs": 60}
                costs = []
                minimize_risk(X, y, loss, **options)
                for _ in range(_ROUNDS):
                    start = time.perf_counter()
                    found = minimize_risk(X, y, loss, **options)
                    middle = time.perf_counter()
                    for _ in range(found.n_iter):
                        X @ w
                        transposed @ g
                    end = time.perf_counter()
                    costs.append(((middle - start) / found.n_iter, (end - middle) / found.n_iter))
                costs = 1e3 * np.array(costs)
                iteration, product = np.median(costs, axis=0)
                ratio = np.median(costs[:, 0] / costs[:, 1])
                print(
                    f"| {name} | {loss} | {inner} | {iteration:.2f} | {product:.2f} | {ratio:.2f} |"
                )


def _competitors(n, lam):
    """Name -> (effort -> estimator), for efforts 1, 2, 3, ... of iterations or epochs."""
    C = 1 / (n * lam)
    bundle = {"C": C, "tol": 0.0}
    return {
        "bundle, QP": lambda k: BundleClassifier(inner="qp", max_epochs=k, **bundle),
        "bundle, QP, primal search": lambda k: BundleClassifier(
            inner="qp", primal_search=True, max_epochs=k, **bundle
        ),
        "bundle, line search": lambda k: BundleClassifier(
            inner="line_search", max_epochs=k, **bundle
        ),
        "Pegasos, k = 1": lambda k: LinearPegasos(C=C, max_epochs=k, random_state=0),
        "Pegasos, all points": lambda k: LinearPegasos(C=C, batch_size=None, max_epochs=k),
        "LinearSDCA": lambda k: LinearSDCA(C=C, tol=0.0, max_epochs=k, random_state=0),
        "LIBLINEAR (LinearSVC)": lambda k: LinearSVC(
            loss="hinge", C=C, fit_intercept=False, tol=1e-12, max_iter=k, random_state=0
        ),
        "SGDClassifier": lambda k: SGDClassifier(
            alpha=lam, fit_intercept=False, tol=None, max_iter=k, random_state=0
        ),
    }


def _least_effort(make, X, y, lam, target, most=4096):
    """The least effort, to 10 %, that brings the estimator to the target; None if none does."""
    low, high = 0, 1
    while _objective(X, y, make(high).fit(X, y).coef_[0], lam) > target:
        low, high = high, 2 * high
        if high > most:
            return None
    while high - low > max(1, high // 10):
        middle = (low + high) // 2
        reached = _objective(X, y, make(middle).fit(X, y).coef_[0], lam) <= target
        low, high = (low, middle) if reached else (middle, high)
    return high


def print_times():
    """Seconds and iterations to 0.001 of the optimum, competitors in turn, median of rounds."""
    print(f"| data | lambda | method | iterations | seconds to J* + {_CLOSE} |")
    print("|---|---|---|---|---|")
    # LIBLINEAR is stopped on purpose.
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, lam in _LAMBDAS.items():
        X, y = _data(name)
        # LIBLINEAR works in double precision: it shall not have to convert.
        X = X.astype(np.float64)
        best = minimize_risk(X, y, lam=lam, tol=1e-6, max_epochs=5000)
        makers = _competitors(len(y), lam)
        efforts = {
            label: _least_effort(make, X, y, lam, best.objective + _CLOSE)
            for label, make in makers.items()
        }
        times = {label: [] for label, effort in efforts.items() if effort}
        for _ in range(_ROUNDS):
            for label in times:
                estimator = makers[label](efforts[label])
                start = time.perf_counter()
                estimator.fit(X, y)
                times[label].append(time.perf_counter() - start)
        for label, effort in efforts.items():
            seconds = f"{np.median(times[label]):.3f}" if effort else "not in 4096"
            print(f"| {name} | {lam:g} | {label} | {effort or ''} | {seconds} |")


def _print_memory_of(n):
    """In a fresh process: peak memory of a fit over the size of the data."""
    X, y = random_text(n, 47_236, 0.0016)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    small, signs = random_text(100, 47_236, 0.0016)
    for inner in ("line_search", "qp"):
        options = {"C": 1e4 / n, "inner": inner, "tol": 0.0, "max_epochs": 50}
        BundleClassifier(**options).fit(small, signs)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.perf_counter()
        solver = BundleClassifier(**options).fit(X, y)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"| {n} | {X.nnz} | {size / 2**20:.0f} | {inner} | {before:.0f} | {peak:.0f} | "
            f"{seconds / solver.n_iter_:.3f} |"
        )


def print_memory(sizes=(50_000, 200_000, 804_414)):
    """Peak memory of fits on random text of the shape of RCV1: 47 236 features, 0.16 % stored."""
    print("| points | stored | data, MB | inner | peak before, MB | peak, MB | s per iteration |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for n in sizes:
        command = f"from benchmarks.bundle_speed import _print_memory_of as f; f({n})"
        subprocess.run([sys.executable, "-c", command], check=True)


def print_gamma():
    """gamma_t at growing t, hinge loss, for several lambda."""
    marks = (1, 3, 10, 30, 100, 300, 1000)
    print("| data | lambda | inner |" + "".join(f" gamma_{t} |" for t in marks))
    print("|---|---|---|" + "---|" * len(marks))
    for name in ("reuters_moneyfx", "adult"):
        X, y = _data(name)
        for lam in (1e-2, 1e-3, 1e-4, 1e-5):
            for inner in ("qp", "line_search"):
                found = minimize_risk(X, y, lam=lam, inner=inner, tol=1e-6, max_epochs=1000)
                gamma = found.trace.gamma
                row = "".join(f" {gamma[t]:.1e} |" if t < len(gamma) else " |" for t in marks)
                print(f"| {name} | {lam:g} | {inner} |{row}", flush=True)


if __name__ == "__main__":
    tables = {
        "iteration": print_iteration_costs,
        "time": print_times,
        "memory": print_memory,
        "gamma": print_gamma,
    }
    with threadpool_limits(1):
        for table in sys.argv[1:] or tables:
            tables[table]()
            print(flush=True)
