"""Public sites that several datasets are fetched from."""

from __future__ import annotations

LIBSVM_SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
TICK_SITE = "https://raw.githubusercontent.com/X-DataInitiative/tick-datasets/master/binary"
UCI_SITE = "https://archive.ics.uci.edu/ml/machine-learning-databases"
FIGSHARE = "https://ndownloader.figshare.com/files"
