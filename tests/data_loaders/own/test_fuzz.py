"""Damaged files of every format: loaded, or refused in one line, and nothing else."""

import os
import random
import warnings
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st
from sklearn.datasets import dump_svmlight_file

from marginbench.data_loaders import DataError, load

LONG = os.environ.get("MARGINBENCH_FAULTS") == "long"
#: Bytes that mean something in some format.
SPICE = b"\x00\n\r\t\"',;:{}%?@ +-.eE0129\xff\xef\xbb\xbf\\ainf#"


def samples(frame):
    """A whole file of each format."""
    frame = frame.head(24)
    X = np.column_stack([frame["age"], frame["income"]])
    y = np.arange(24) % 2
    frame.to_csv("s.csv", index=False)
    frame.to_csv("s.tsv", index=False, sep="\t", quoting=1)
    frame.to_parquet("s.parquet")
    np.savez("s.npz", X=X, y=y)
    np.savez_compressed("z.npz", X=X, y=y)
    dump_svmlight_file(X, y, "s.txt", zero_based=False)
    Path("s.arff").write_text(
        "@relation r\n@attribute 'a b' numeric\n@attribute y {no, yes}\n@data\n"
        + "".join(f"{k},{'yes' if k % 2 else 'no'}\n" for k in range(12))
        + "{0 3, 1 yes}\n"
    )
    return {path.name: path.read_bytes() for path in Path().iterdir()}


def damaged(raw, draw):
    """The bytes after one to four edits: cut out, cut off, put in, written over or repeated."""
    content = bytearray(raw)
    for _ in range(draw.randint(1, 4)):
        place, size = draw.randrange(len(content) + 1), draw.choice((1, 1, 2, 8, 40))
        spice = bytes(draw.choices(SPICE, k=size))
        new = draw.choice((b"", spice, 2 * content[place : place + size]))
        content[place : draw.choice((place, place + size, place + size, len(content)))] = new
    return bytes(content)


def check(name, content, **options):
    """Whether a file is loaded; what it is refused with must be one line with its name."""
    Path(name).write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = load(name, options, cache_dir="cache")
    except DataError as error:
        message = str(error)
        assert len(message.splitlines()) == 1
        assert message.startswith(name)
        return False
    values = data.X_train.data if hasattr(data.X_train, "indptr") else data.X_train
    assert np.isfinite(values).all()
    assert len(np.unique(data.y_train)) > 1
    return True


def test_damaged_files(frame, here):
    for name, raw in samples(frame).items():
        assert check(name, raw)
        draw = random.Random(name)
        for _ in range(250 if LONG else 12):
            check(name, damaged(raw, draw), missing=draw.choice(("error", "drop", "median")))


TEXT = st.text(alphabet='ab01.,;"\n\r\t -+e?é', max_size=80)


@settings(
    max_examples=300 if LONG else 15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(text=TEXT, name=st.sampled_from(["f.csv", "f.tsv", "f.txt", "f.arff"]))
def test_any_text(here, text, name):
    check(name, text.encode())
