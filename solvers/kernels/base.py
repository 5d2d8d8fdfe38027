"""The interface of a kernel, and points as kernels want them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import scipy

from ..numeric.matrices import Matrix, better_dense, scratch
from .parameters import Resolve

# OpenBLAS has kernels of another order for up to 10^6 multiplications; with so many numbers in the
# points two rows are more already.
_SMALL = 2**19
# Blocks of entries are about this large: BLAS is as fast as for larger ones (with a quarter of it
# predictions take 1.2 times as long), they stay in a cache of the processor between the steps
# of their computation, and memory does not grow with the number of points.
BLOCK_BYTES = 2**22
_FEWEST_ROWS = 64
# BLAS works on tiles of so many rows, and sums what is left over in another order, as einsum does
# for a single row. With whole tiles a score does not depend on those that are asked for with it,
# except that BLAS may take another order for large products, and OpenBLAS for AVX2 takes another
# one at other places of a tile.
TILE = 16
# Below so many entries a thread costs more than it saves.
_FEWEST_ENTRIES = 2**16


@dataclass(frozen=True)
class Points:
    """Points as one kernel wants them.

    Attributes
    ----------
    values : ndarray or csr_matrix, shape (n_points, width)
        The features, in the kernel's own layout.
    norms : ndarray, shape (n_points,), or None
        ``gamma ||x||^2`` for the Gaussian kernel, whose values are scaled by ``sqrt(2 gamma)``.
    frame : Frame or None
        How dense points of the Gaussian kernel were shifted and which features were kept.
    columns : ndarray of int, shape (n_points,), or None
        For a precomputed kernel, the columns of these points in the Gram matrix.
    dtype : numpy.dtype or None
        Of the entries, where the values have another one (a callable kernel).
    """

    values: Matrix
    norms: np.ndarray | None = None
    frame: Frame | None = None
    columns: np.ndarray | None = None
    dtype: np.dtype[Any] | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def take(self, index: np.ndarray | slice) -> Points:
        """The points at these positions."""
        return Points(
            self.values[index],
            None if self.norms is None else self.norms[index],
            self.frame,
            None if self.columns is None else self.columns[index],
            self.dtype,
        )


@dataclass(frozen=True)
class Frame:
    """Where the training points put the origin, and what tells them apart.

    Attributes
    ----------
    shift : ndarray of float64, shape (n_features,)
        The mean of the training points.
    features : ndarray of int, shape (n_kept,)
        The features that are not the same in every training point; with the others SMO takes 1.2
        times as long on mnist.
    """

    shift: np.ndarray
    features: np.ndarray


class Kernel(ABC):
    """A kernel function, with all that anybody needs to know of it. Frozen.

    A new kernel is one file of this folder: a frozen dataclass under
    ``@register_kernel("its name")`` whose fields are declared by
    :func:`marginbench.solvers.kernels.parameters.parameter`.
    """

    #: What estimators and study files call it; set by ``register_kernel``.
    name: ClassVar[str] = ""
    #: What people call it.
    words: ClassVar[str] = ""
    #: k(x, x) = 1 for every x, so the diagonal needs no evaluation.
    unit_diagonal: ClassVar[bool] = False
    #: Entries are computed on demand; ``False`` if they are given (a precomputed Gram matrix).
    evaluates: ClassVar[bool] = True
    #: Entries come from a product of matrices, whose sums depend on the number of its rows.
    by_products: ClassVar[bool] = False

    @classmethod
    def parameters(cls) -> dict[str, Resolve]:
        """The parameters by name."""
        return {
            item.name: item.metadata["resolve"]
            for item in fields(cls)  # type: ignore[arg-type]
            if "resolve" in item.metadata
        }

    @classmethod
    def of(
        cls, values: Mapping[str, Any], X: Matrix | None = None, weights: np.ndarray | None = None
    ) -> Self:
        """The kernel with these parameters; those left out have the defaults of the class.

        Values may depend on the training points X and on how often each counts, its weight.
        ValueError for a parameter that the kernel does not have, or one out of range.
        """
        declared = cls.parameters()
        for name in values:
            if name not in declared:
                having = ", ".join(declared) or "no parameters"
                raise ValueError(f"the {cls.name} kernel has no {name}; it has {having}")
        return cls(**{name: declared[name](name, values[name], X, weights) for name in values})

    @abstractmethod
    def prepare(self, X: Matrix, dtype: Any, like: Points | None = None) -> Points:
        """Bring points into the form of :meth:`block`.

        Parameters
        ----------
        X : ndarray or csr_matrix, shape (n_points, n_features)
        dtype : data-type
            float32 or float64, the type of the entries.
        like : Points, optional
            The training points against which these will be evaluated.
        """

    @abstractmethod
    def block(self, A: Points, B: Points, out: np.ndarray | None = None) -> np.ndarray:
        """Entries k(a, b), C-contiguous, shape (len(A), len(B)).

        Parameters
        ----------
        A, B : Points
        out : ndarray, shape (len(A), len(B)), optional
            Where to put them; a fresh array by default.
        """

    def weighted_sums(self, A: Points, B: Points, coef: np.ndarray, sums: np.ndarray) -> None:
        """``sums_ki = sum_j coef_kj k(a_i, b_j)`` for the first points of A, as many as fit.

        ``coef`` has the shape (n_outputs, len(B)), ``sums`` (n_outputs, at most len(A)).
        """
        # Here, since numba takes long to import, and kernels are also there for their names.
        from ..numeric.rows import weighted_sums

        for part, own, room in row_blocks(A, B, sums):
            in_row_parts(weighted_sums, own.shape[1], self.block(part, B, room), coef, own)

    def weights(self, B: Points, coef: np.ndarray) -> np.ndarray | None:
        """The w_k with ``sum_j coef_kj k(b_j, z) = <w_k, z>``; None unless the kernel is linear.

        Float64, shape (n_outputs, n_features), for ``coef`` of shape (n_outputs, len(B)).
        """
        return None

    @abstractmethod
    def diag(self, A: Points) -> np.ndarray:
        """Entries k(a, a), float64, shape (len(A),)."""

    def describe(self) -> dict[str, Any]:
        """Name and parameters, as plain JSON values; see ``kernel_of``."""
        return {"name": self.name, **{name: getattr(self, name) for name in self.parameters()}}

    def entry_noise(self, points: Points, dtype: str = "float32") -> float:
        """A bound on the absolute error of an entry between points like these.

        Infinite unless a kernel knows better: of a function that is a black box nothing is known.
        The points are prepared; ``dtype`` is that of the entry.
        """
        return math.inf

    def same_in_every_block(self, points: Points, dtype: Any) -> bool:
        """Whether an entry does not depend on which others are computed with it.

        To the last bit, if BLAS rounds alike at every place of a block: OpenBLAS does for AVX-512,
        not for AVX2, where it is the same up to rounding. False unless a kernel knows better.
        """
        return False


def row_blocks(
    A: Points, B: Points, sums: np.ndarray
) -> Iterator[tuple[Points, np.ndarray, np.ndarray]]:
    """Blocks of A, their columns of the sums, and the same room for the entries of each of them."""
    dtype = B.values.dtype if B.dtype is None else B.dtype
    step = max(_FEWEST_ROWS, BLOCK_BYTES // max(1, len(B) * dtype.itemsize))
    step -= step % TILE
    room = scratch((min(step, len(A)), len(B)), dtype)
    for start in range(0, sums.shape[1], step):
        part = A if len(A) <= step else A.take(slice(start, start + step))
        yield part, sums[:, start : start + step], room[: len(part)]


def in_row_parts(
    function: Callable[..., None], n_rows: int, block: np.ndarray, *arguments: Any
) -> None:
    """Call ``function(block, *arguments, start, stop)`` for parts of the rows, side by side."""
    from ..numeric.threads import in_parts

    smallest = max(1, _FEWEST_ENTRIES // max(1, block.shape[1]))
    in_parts(function, n_rows, block, *arguments, smallest=smallest)


def rounding_unit(dtype: str) -> float:
    """A few units of rounding: what an inner product is off, relative to its largest terms."""
    return 8 * float(np.finfo(dtype).eps)


def products_are_steady(points: Points, dtype: Any) -> bool:
    """Whether inner products with these points are the same in every block.

    Not in float64 and not on small data, where BLAS changes the order of its sums with the number
    of rows on every processor.
    """
    values = points.values
    return scipy.sparse.issparse(values) or (
        np.dtype(dtype) == np.float32 and values.size >= _SMALL
    )


def placed(entries: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """The entries in ``out``, if they are to be there and are not yet."""
    if out is None or entries is out:
        return entries
    out[...] = entries
    return out


def kept_dense(X: Matrix, dtype: Any, like: Points | None) -> bool:
    """Whether points are kept dense: as those they meet, else as is better for them."""
    return better_dense(X, dtype) if like is None else not scipy.sparse.issparse(like.values)


def check_range(kernel: Kernel, bound: float, norms: np.ndarray, dtype: Any) -> None:
    """Raise ValueError if entries could be infinite or NaN; no entry needs a check after this."""
    dtype = np.dtype(dtype)
    if np.isfinite(norms).all() and bound <= np.finfo(dtype).max:
        return
    hint = " or use dtype='float64'" if dtype == np.float32 else ""
    raise ValueError(
        f"the {kernel.name} kernel of these points overflows {dtype.name}: scale the features{hint}"
    )
