"""Loading from the cache, and reading LIBSVM text.

Loads are the second and later ones, which find the cached file verified. A dataset with files is
skipped unless MARGINBENCH_MIRROR names a folder that has them.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

from marginbench.data_loaders import fetch, libsvm, load
from marginbench.data_loaders.files import LocalFile
from marginbench.data_loaders.sources import find, sources

#: Parameters by dataset, where the whole would take too long; others are loaded as they are.
_PARAMS = {
    "random-text": {"n_train": 10_000, "n_test": 1000, "n_features": 10_000, "density": 0.002},
    "quadric": {"n_train": 500_000, "n_test": 50_000},
}
#: Their files take minutes to convert.
_LARGE = {"susy", "covtype", "kdd99", "rcv1"}
#: Values as text, by how they are written.
_FORMS = {"binary": "1", "short": "%.6g", "exact": "%r"}
_LINES, _PAIRS, _WIDTH = 20_000, 40, 4000


class Load:
    params = ([source.name for source in sources()],)
    param_names = ("dataset",)
    rounds = 1
    repeat = (3, 5, 2.0)
    number = 1
    warmup_time = 0

    def setup_cache(self):
        # In asv's folder for this class, which asv removes.
        cache = Path("cache").absolute()
        for source in filter(_at_hand, sources()):
            fetch(source.name, _PARAMS.get(source.name), cache_dir=cache)
            load(source.name, _PARAMS.get(source.name), cache_dir=cache)
        return str(cache)

    setup_cache.timeout = 900

    def setup(self, cache, dataset):
        if not _at_hand(find(dataset)):
            raise NotImplementedError("MARGINBENCH_MIRROR does not have its files")
        load(dataset, _PARAMS.get(dataset), cache_dir=cache)  # imports

    def time_load(self, cache, dataset):
        load(dataset, _PARAMS.get(dataset), cache_dir=cache)

    def peakmem_load(self, cache, dataset):
        load(dataset, _PARAMS.get(dataset), cache_dir=cache)


class LibsvmText:
    params = (list(_FORMS),)
    param_names = ("values",)
    rounds = 1
    repeat = (3, 5, 2.0)
    number = 1
    warmup_time = 0

    def setup(self, values):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "text"
        path.write_text(_text(_FORMS[values]))
        self.file = LocalFile(path, path.name)
        libsvm.read_file(self.file, _WIDTH, (-1, 1))  # compiles

    def teardown(self, values):
        self.folder.cleanup()

    def time_read(self, values):
        libsvm.read_file(self.file, _WIDTH, (-1, 1))

    def peakmem_read(self, values):
        libsvm.read_file(self.file, _WIDTH, (-1, 1))


def _at_hand(source):
    """Whether a dataset can be made here without a download, and soon."""
    if not source.files:
        return True
    folder = Path(os.environ.get("MARGINBENCH_MIRROR", "")) / (source.mirror_folder or source.name)
    return source.name not in _LARGE and all(
        (folder / file.name).is_file() for file in source.files
    )


def _text(form):
    rng = np.random.default_rng(0)
    step = _WIDTH // _PAIRS
    indices = rng.integers(1, step + 1, (_LINES, _PAIRS)) + step * np.arange(_PAIRS)
    values = rng.standard_normal((_LINES, _PAIRS))
    written = (lambda value: form) if form == "1" else (lambda value: form % value)
    lines = []
    for row, (columns, numbers) in enumerate(zip(indices, values.tolist(), strict=True)):
        pairs = (f"{i}:{written(value)}" for i, value in zip(columns, numbers, strict=True))
        lines.append(f"{1 - 2 * (row % 2)} {' '.join(pairs)}\n")
    return "".join(lines)
