"""LIBSVM on a part of the training points, the simplest way to make it faster."""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np

from ..interface.declaration import hyperparameters
from ..interface.monitor import Monitor
from ..interface.problem import Problem, Solution
from ..registration import register
from .libsvm import LIBSVM


@register("svm")
@hyperparameters
class LIBSVMSubsample(LIBSVM):
    """Soft-margin kernel SVM with bias by LIBSVM, on points drawn from the training set.

    The baseline that every approximation of the kernel SVM has to beat: m training points, drawn
    uniformly without replacement, are given to LIBSVM ([CL11]_), and the others are ignored. C is
    the weight of each loss, as for :class:`marginbench.LIBSVM`: with fewer losses the same C
    regularises more. Errors and objective are those of the model on all points.

    Parameters
    ----------
    n_samples : int >= 2, or float in (0, 1]
        Number m of points, all if there are fewer; or their share, rounded up.
    max_iter : int >= 1 or None
        Stop after this many iterations; None: max(1e7, 100 m), LIBSVM's own limit, which
        scikit-learn's copy leaves out.
    random_state
        Seeds the points. Those of a smaller m are among those of a larger one.

    Attributes
    ----------
    samples_ : ndarray of int64, shape (m,)
        Positions of the drawn points in the training set, ascending.

    Notes
    -----
    An external solver: it counts no kernel evaluations and shows no checkpoint before its end. If
    all drawn points are of one class, the model predicts that class. Returns the last alpha, which
    is feasible in the dual of all points, but whose gap does not close: it is no certificate.
    """

    certificate = None
    deterministic = False

    n_samples: int | float = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        m = self.n_samples
        whole = isinstance(m, Integral) and not isinstance(m, bool) and m >= 2
        share = isinstance(m, Real) and not isinstance(m, Integral) and 0 < m <= 1
        if not (whole or share):
            raise ValueError(
                f"n_samples must be a whole number >= 2 or a share in (0, 1], got {m!r}"
            )

    def _solve(self, problem: Problem, monitor: Monitor) -> Solution:
        n, m = problem.n, self.n_samples
        size = int(m) if isinstance(m, Integral) else math.ceil(m * n)
        drawn = np.arange(n) if size >= n else np.sort(problem.rng.permutation(n)[:size])
        self.samples_ = drawn
        labels = problem.y[drawn]
        if (labels == labels[0]).all():
            return Solution(problem.expansion(np.zeros(n), float(labels[0])), 0, "converged")
        return self._solve_on(problem, drawn)
