"""Hyper-parameters that the cutting-plane estimators have in common."""

from __future__ import annotations

import numpy as np

from ..interface.declaration import hyperparameters
from ..interface.parameters import CachedKernelParameters, SoftMarginParameters
from ..kernels.oracle import KernelOracle
from ..numeric.validation import (
    check_one_of,
    check_positive,
    check_whole,
)
from .finders import FINDERS, CutFinder
from .loop import make_cuts
from .structure import Examples, StructuredProblem
from .working_set import WorkingSet

# Fewer rows than this part of all would hardly ever hold the one that is wanted.
_FEWEST_ROWS = 0.1


@hyperparameters
class CutParameters(SoftMarginParameters, CachedKernelParameters):
    """How cuts are found and kept.

    Parameters
    ----------
    cache_size
        Bound on what "exact" and "linear" keep, MB: the scores of all points for each cut, and up
        to half of it kernel rows of points that cuts are made of, if a tenth of all rows finds room
        there. Cuts whose scores find no room have them computed anew for each cut, with a warning.
    oracle : {"exact", "linear", "constant"}
        How a cut is found; see :class:`CuttingPlane`.
    n_samples : int >= 1
        Number of inputs that a sampled cut is made of.
    patience : int >= 1
        "constant": end when so many samples in a row make no violated cut.
    max_idle : int >= 1
        Drop a cut when its multiplier has been 0 for so many iterations in a row.
    stopping : {"auto", "relative", "violation"}
        When the run ends; the violation is how far the next cut lies above the model, in units of
        the mean loss. "relative": when C1 times the violation is at most ``tol`` times the primal
        objective; for "exact" that is the duality gap. "violation": when the violation is at most
        ``tol``, as in [CUTS08]_, which says little where the optimal mean loss is not much larger.
        "auto": "violation" for "constant", whose samples do not know the objective, otherwise
        "relative".
    tol : float >= 0
        See ``stopping``. 0 runs to ``max_iter``.
    max_iter : int >= 1
        Stop after this many cuts; for "exact" and "linear" each is a pass over all points.
    """

    cache_size: float = 1000.0
    oracle: str = "linear"
    n_samples: int = 400
    patience: int = 4
    max_idle: int = 20
    stopping: str = "auto"
    tol: float = 1e-3
    max_iter: int = 10_000

    def _check_cut_parameters(self) -> None:
        """Raise ValueError for a parameter that is out of range."""
        check_positive("C", self.C)
        check_one_of("oracle", self.oracle, tuple(FINDERS))
        check_whole("n_samples", self.n_samples, at_least=1)
        check_whole("patience", self.patience, at_least=1)
        check_whole("max_idle", self.max_idle, at_least=1)
        check_one_of("stopping", self.stopping, ("auto", "relative", "violation"))
        if self.stopping == "relative" and self.oracle == "constant":
            raise ValueError(
                "stopping='relative' needs the mean loss of all points, got oracle='constant': set "
                "stopping='violation'"
            )
        check_whole("max_iter", self.max_iter, at_least=1)

    def _make_cuts(
        self,
        oracle: KernelOracle,
        structure: StructuredProblem,
        examples: Examples,
        rng: np.random.Generator,
        mass: float,
    ) -> tuple[CutFinder, WorkingSet]:
        """The two parts of a run, for losses that have the weight C each, ``C mass`` together."""
        usual = "violation" if self.oracle == "constant" else "relative"
        n_bytes = int(self.cache_size * 2**20)
        if self.oracle != "constant":
            n_bytes -= _leave_rows(oracle, n_bytes)
        return make_cuts(
            oracle,
            structure,
            examples,
            rng,
            finder=self.oracle,
            total=float(self.C) * mass,
            tol=float(self.tol),
            stopping=usual if self.stopping == "auto" else self.stopping,
            n_samples=int(self.n_samples),
            patience=int(self.patience),
            max_idle=int(self.max_idle),
            score_bytes=n_bytes,
        )


def _leave_rows(oracle: KernelOracle, n_bytes: int) -> int:
    """Leave the oracle its part of these bytes for kernel rows; returns how many that is."""
    all_rows = oracle.n**2 * oracle.dtype.itemsize
    row_bytes = min(n_bytes // 2, all_rows)
    if row_bytes < _FEWEST_ROWS * all_rows or not oracle.kernel.evaluates:
        row_bytes = 0
    oracle.set_aside(oracle.cache_bytes - row_bytes)
    return row_bytes
