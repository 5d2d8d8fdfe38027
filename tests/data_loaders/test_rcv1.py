"""The reader of RCV1-v2."""

import gzip
from pathlib import Path

import pytest

from marginbench.data_loaders import DataError, find
from marginbench.data_loaders.datasets import rcv1
from marginbench.data_loaders.files import LocalFile

# The layout of the published files: two blanks behind the document's number.
VECTORS = {
    rcv1.TRAIN[0]: b"2286  1:0.5 47236:0.25\n2287  3:1\n2288  2:1\n",
    rcv1.TEST[0]: b"26151  1:1\n",
    rcv1.TEST[1]: b"26152  2:1\n26153  1:1 2:1\n",
    rcv1.TEST[2]: b"26154  3:0.125\n",
    rcv1.TEST[3]: b"26155  4:2\n",
}
TOPICS = b"".join(
    b"%s %d 1\n" % (topic, document)
    for topic, document in [
        (b"C15", 2286),
        (b"CCAT", 2286),
        (b"GCAT", 2287),
        (b"CCAT", 2288),
        (b"E11", 2288),
        (b"CCAT", 26151),
        (b"MCAT", 26152),
        (b"CCAT", 26153),
        (b"GCAT", 26154),
        (b"GCAT", 26155),
    ]
)


def files(folder: Path, **changes: bytes) -> dict[str, LocalFile]:
    texts = VECTORS | {rcv1.TOPICS: TOPICS}
    texts |= {next(n for n in texts if key in n): text for key, text in changes.items()}
    for name, text in texts.items():
        (folder / name).write_bytes(gzip.compress(text))
    return {name: LocalFile(folder / name, name) for name in texts}


def read(folder: Path, topic: str = "CCAT", split: str = "published", **changes: bytes):
    return rcv1.read(files(folder, **changes), {"topic": topic, "split": split})


def refusal(folder: Path, topic: str = "CCAT", **changes: bytes) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, topic, **changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_topic_against_the_rest(tmp_path):
    content = read(tmp_path)
    assert content.train.y.tolist() == [1, -1, 1]
    assert content.test.y.tolist() == [1, -1, 1, -1, -1]
    assert content.train.X.shape == (3, 47236)
    assert content.train.X[0].indices.tolist() == [0, 47235]
    assert content.train.X[0].data.tolist() == [0.5, 0.25]
    assert content.test.X[:, :4].toarray().tolist() == [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 0.125, 0],
        [0, 0, 0, 2],
    ]
    assert read(tmp_path, "GCAT").train.y.tolist() == [-1, 1, -1]


def test_the_parts_can_be_swapped(tmp_path):
    swapped = read(tmp_path, split="swapped")
    assert swapped.train.y.tolist() == [1, -1, 1, -1, -1]
    assert swapped.test.y.tolist() == [1, -1, 1]
    assert swapped.train.X.shape == (5, 47236)


def test_errors_name_the_file_and_the_line(tmp_path):
    assert refusal(tmp_path, topics=TOPICS + b"CCAT 1\n") == (
        f"{rcv1.TOPICS}, line 11: 'CCAT 1' is not a topic, a document's number and a 1"
    )
    # More digits than int() takes.
    assert f"{rcv1.TOPICS}, line 11: 'CCAT 1111" in refusal(
        tmp_path, topics=TOPICS + b"CCAT " + b"1" * 5000 + b" 1\n"
    )
    assert refusal(tmp_path, pt1=b"26152  2:nan\n") == (
        f"{rcv1.TEST[1]}, line 1: the value of '2:nan' is not finite"
    )
    assert refusal(tmp_path, pt2=b"0.5 1:1\n") == (
        f"{rcv1.TEST[2]}, line 1: label '0.5' is not an integer"
    )
    assert "pt3.dat.gz: the file is empty" in refusal(tmp_path, pt3=b"")
    assert "document 26155 of " in refusal(tmp_path, topics=TOPICS[: TOPICS.rindex(b"GCAT")])


def test_an_unknown_topic_is_corrected(tmp_path):
    assert refusal(tmp_path, "CCATS") == (
        "rcv1: no document has the topic 'CCATS' (did you mean 'CCAT'?)"
    )


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"topic": "ccat"}, "rcv1: topic must be a code like 'CCAT' or 'C11', got 'ccat'"),
        ({"topic": 11}, "rcv1: topic must be a code like 'CCAT' or 'C11', got 11"),
        ({"topic": "A B\n"}, "rcv1: topic must be a code"),
        ({"split": "half"}, "rcv1: split must be one of 'published', 'swapped', got 'half'"),
    ],
)
def test_wrong_parameters_are_named(params, complaint):
    with pytest.raises(DataError) as caught:
        find("rcv1").resolve(params)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parameters_have_defaults():
    assert find("rcv1").resolve(None) == {"topic": "CCAT", "split": "published"}
