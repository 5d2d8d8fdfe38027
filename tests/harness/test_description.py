"""``study.json`` as it is read: by whom it was written, and whether it can be one at all."""

import random

import pytest

from marginbench.harness.errors import UserError
from marginbench.harness.results.description import (
    SCHEMA_VERSION,
    DamagedDescriptionError,
    read_description,
    write_description,
)

from .test_journal import cut_out, flip


def test_that_of_another_release_is_not_taken_for_one_of_this(tmp_path):
    write_description(tmp_path, {"schema_version": SCHEMA_VERSION + 1, "name": "a"})
    message = rf"study\.json: written by another release of marginbench .*{SCHEMA_VERSION + 1}"
    with pytest.raises(UserError, match=message) as told:
        read_description(tmp_path)
    # It is whole: no command may move it aside.
    assert not isinstance(told.value, DamagedDescriptionError)


def test_no_damage_shows_another_description(tmp_path):
    values = {"schema_version": SCHEMA_VERSION, "name": "é", "tasks": [{"C": 0.1}] * 9}
    write_description(tmp_path, values)
    path, rng = tmp_path / "study.json", random.Random(3)
    content = path.read_bytes()
    for number in range(400):
        damaged = bytearray(content)
        (flip, flip, flip, cut_out)[number % 4](damaged, rng)
        path.write_bytes(damaged)
        try:
            found = read_description(tmp_path)
        except DamagedDescriptionError:
            assert write_description(tmp_path, values)
            assert path.read_bytes() == content
            continue
        assert found == values  # only white space was changed
        assert not write_description(tmp_path, values)
