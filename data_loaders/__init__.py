"""Datasets for large-margin solvers: sources, formats, generators and the cache.

A name is imported when it is first asked for, from the file that ``__init__.pyi`` gives.

>>> from marginbench.data_loaders import load
>>> digits = load("digits")
>>> digits.X_train.shape
(1198, 64)
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
