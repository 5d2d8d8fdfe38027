"""Lines of keys in any form that TOML allows, and messages about spoilt study files."""

from __future__ import annotations

import random
import time
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from marginbench.harness.errors import SolverError, StudyError
from marginbench.harness.study.model import KeyPath, StudyFile
from marginbench.harness.study.toml import _shipped, key_lines, parse_study
from marginbench.harness.words import MESSAGE_LIMIT

FORMS = '''# a comment with [brackets] = "and quotes
title = "a # is no comment"
"quoted key" = 1
'literal.key' = 2
dotted.a.b = 3
dotted."a".c = 4
text = """
[not.a.table]
x = 1 \\"""
"""
raw = \'\'\'
[[nor.this]]\'\'\'
quotes = """""two at the end"""""
inline = { a = 1, b = { c = "}" }, "d" = [1, { e = 2 }] }
list = [ # a comment ]
  "]", # another
  [ 1,
    2 ],
]
date = 1979-05-27 07:32:00

[table]
key = true
[table.sub]
key = 0x_F
[[task]]
C = 1.0
[task.params]
x = 1
[[task.runs]]
seed = 1
[[task.runs]]
seed = 2
[[task]]
  C = 2.0
  "\\u0043x" = 3
'''.replace("0x_F", "0xF")


def paths_of(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths of all keys, tables and entries of lists of what the standard library reads."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths_of(item, (*path, key))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_every_key_has_its_line_and_nothing_else_has_one(ends: str) -> None:
    text = FORMS.replace("\n", ends)
    lines = key_lines(text)
    assert set(lines) == set(paths_of(tomllib.loads(text)))
    for path, start in {
        ("quoted key",): '"quoted key"',
        ("literal.key",): "'literal.key'",
        ("dotted", "a", "c"): 'dotted."a".c',
        ("quotes",): "quotes",
        ("inline", "d", 1, "e"): "inline",
        ("list", 1, 1): "list",
        ("table", "sub"): "[table.sub]",
        ("task", 1): "[[task]]",
        ("task", 0, "params", "x"): "x = 1",
        ("task", 0, "runs", 1, "seed"): "seed = 2",
        ("task", 1, "Cx"): '  "\\u0043x"',
    }.items():
        assert text.split(ends)[lines[path] - 1].startswith(start), path
    tasks = [number for number, line in enumerate(text.split(ends), 1) if line == "[[task]]"]
    assert [lines["task", 0], lines["task", 1]] == tasks


def test_a_key_that_is_not_written_has_the_line_of_its_table() -> None:
    file = StudyFile("study.toml", "[[task]]\nC = 1\n")
    assert file.line(("task", 0, "gamma")) == 1
    assert file.at(("task", 0, "C", "x")) == "study.toml:2"
    assert file.at(("solver", 0)) == "study.toml"


def test_lines_of_a_long_file_are_given_up_and_not_waited_for() -> None:
    rows = "".join("  [1, 2],\n" for _ in range(20_000))
    started = time.process_time()
    lines = key_lines(f"a = 1\nb = [\n{rows}]\nc = 2\n")
    assert lines["a",] == 1
    assert time.process_time() - started < 10


def shipped_texts() -> list[str]:
    return [item.read_text() for _, item in sorted(_shipped().items())]


def test_every_key_of_the_shipped_studies_has_a_line() -> None:
    for text in shipped_texts():
        assert set(key_lines(text)) == set(paths_of(tomllib.loads(text)))


#: What replaces or joins pieces of a study: keys and values that are nearly right, and noise.
PIECES = (
    *("[", "]", "[[", "]]", "{", "}", "=", ",", ".", "#", "\n", '"', "'", '"""', "'''", "\\", "\0"),
    *("-1", "0", "1e999", "nan", "true", "9" * 30, "0x" + "f" * 5000, "9" * 5000, "1979-05-27"),
    *("[1, 2]", "[]", "{}", "[[1], [2]]", "{ value = [1] }", '"reference"', '"\\u202e"', "é", "\r"),
    *("C", "zip", "zip = ['C']\n", "label = ''\n", "params = [1]\n", "seeds = [1, 2]\n"),
    *("[task]\n", "[[task]]\n", "[solver.params]\n", "[[solver]]\n", "[budget]\n", "[tuning]\n"),
    *("C = [0.1, 1]\n", "gamma = [1.0, 'x']\n", 'kind = "feasibility"\n', "[" * 3000),
)


def mutated(text: str, draw: random.Random) -> str:
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(text) + 1)
        stop = min(len(text), start + draw.choice((0, 0, 1, 3, 20)))
        if draw.random() < 0.5:  # at the beginning of a line, where whole keys stand
            start = stop = text.rfind("\n", 0, start) + 1
        text = text[:start] + draw.choice(PIECES) + text[stop:]
    return text


def refusal(content: bytes) -> str | None:
    """What is wrong with a study file; None if nothing is."""
    try:
        parse_study(content, where="study.toml")
    except (StudyError, SolverError) as error:
        return str(error)
    return None


def test_a_spoilt_study_is_read_or_refused_in_a_line_for_each_mistake() -> None:
    draw, texts = random.Random(1), shipped_texts()
    read = refused = 0
    for _ in range(100):
        text = mutated(draw.choice(texts), draw)
        content = text.encode("utf-8", "surrogatepass")
        if draw.random() < 0.05:
            content = content[: draw.randrange(len(content))] + b"\xff"
        message = refusal(content)
        if message is None:
            read += 1
        else:
            refused += 1
            for line in message.split("\n"):
                assert line.startswith("study.toml")
                assert line.isprintable()
                assert len(line) <= MESSAGE_LIMIT
    assert read > 0
    assert refused > 50


def test_keys_have_lines_in_all_that_the_standard_library_reads() -> None:
    draw, texts = random.Random(3), [FORMS, *shipped_texts()]
    read = 0
    for _ in range(200):
        text = mutated(draw.choice(texts), draw)
        try:
            values = tomllib.loads(text)
        except (ValueError, RecursionError):
            continue
        assert set(key_lines(text)) == set(paths_of(values)), text
        read += 1
    assert read > 10
