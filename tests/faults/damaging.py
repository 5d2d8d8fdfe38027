"""Damage a record file, or a study.json, again and again; read each copy and count the outcomes.

A script, because the reader of damaged bytes may crash: ``python damaging.py FILE COUNT SEED``.
It prints a JSON object: outcome -> number of files, and the first reason of each outcome.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from marginbench import RecordError, UserError, read_record
from marginbench.harness.results.description import read_description

#: A damaged length must not make the reader ask for all of the machine's memory.
_ADDRESS_SPACE = 8 * 2**30


def flip_bit(content: bytearray, rng: random.Random) -> None:
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def flip_bits(content: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(2, 20)):
        flip_bit(content, rng)


def change_bytes(content: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 20)):
        content[rng.randrange(len(content))] = rng.randrange(256)


def flip_in_footer(content: bytearray, rng: random.Random) -> None:
    """Where the lengths and places of everything are."""
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[rng.randrange(max(start, 0), len(content))] ^= 1 << rng.randrange(8)


def cut(content: bytearray, rng: random.Random) -> None:
    del content[rng.randrange(len(content)) :]


def cut_out(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    del content[start : start + rng.randint(1, 2000)]


def zero_block(content: bytearray, rng: random.Random) -> None:
    size = rng.choice((16, 64, 512, 4096))
    start = rng.randrange(len(content)) // size * size
    content[start : start + size] = bytes(len(content[start : start + size]))


def swap_blocks(content: bytearray, rng: random.Random) -> None:
    size = rng.choice((16, 64, 512, 4096))
    first, second = (rng.randrange(max(len(content) // size, 1)) * size for _ in range(2))
    one, other = content[first : first + size], content[second : second + size]
    if len(one) == len(other):
        content[first : first + size], content[second : second + size] = other, one


def append(content: bytearray, rng: random.Random) -> None:
    content += rng.randbytes(rng.randint(1, 2000))


def append_itself(content: bytearray, rng: random.Random) -> None:
    """What ends like a whole file, as after a write that was done twice."""
    content += content[rng.choice((0, 4, rng.randrange(len(content)))) :]


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip_bit,
    flip_bit,
    flip_bits,
    change_bytes,
    flip_in_footer,
    cut,
    cut_out,
    zero_block,
    swap_blocks,
    append,
    append_itself,
)


def read(file: Path) -> object:
    return read_description(file.parent) if file.suffix == ".json" else read_record(file)


def campaign(file: Path, count: int, seed: int) -> dict[str, dict[str, int | str]]:
    """Read so many damaged copies of a file.

    Returns
    -------
    dict
        ``counts``: outcome -> files. "refused" is right; "same" is a file that damage left as it
        was, or whose record is equal in every column; "misread" is a record with other values;
        anything else is an exception that is no RecordError. ``first``: outcome -> an example.
    """
    rng = random.Random(seed)
    intact, content = repr(read(file)), file.read_bytes()
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        for number in range(count):
            damage = DAMAGES[number % len(DAMAGES)]
            damaged = bytearray(content)
            damage(damaged, rng)
            copy.write_bytes(damaged)
            try:
                outcome = "same" if repr(read(copy)) == intact else "misread"
                words = damage.__name__
            except (RecordError, UserError) as error:
                outcome, words = "refused", str(error)
                if not words.startswith(f"{copy}: ") or "\n" in words:
                    outcome = "badly worded"
            except Exception as error:  # noqa: BLE001 - that there is none is the point
                outcome, words = type(error).__name__, f"{damage.__name__}: {error}"
            counts[outcome] += 1
            first.setdefault(outcome, words)
    return {"counts": dict(counts), "first": dict(first)}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    print(json.dumps(campaign(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
