"""Large arrays in small pages."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

# numpy advises huge pages for arrays from this size on.
_LARGE = 2**22


def scratch(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array for intermediate results, of any content, without advice for huge pages.

    numpy gives that advice for large arrays. A virtual machine whose host finds memory only when
    it is touched pays for each huge page several times what its small pages cost, in the kernel:
    more than half of the time of a first fit.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _LARGE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.empty(shape, dtype)
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    except OSError as error:
        raise MemoryError(f"no room for an array of {size / 2**20:.0f} MiB: {error}") from None
    return np.frombuffer(pages, dtype).reshape(shape)
