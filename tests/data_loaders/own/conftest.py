"""Small tables of one's own, and their expected values by other means."""

import numpy as np
import pandas as pd
import pytest

from marginbench.data_loaders import load

from ..conftest import refused


@pytest.fixture
def frame():
    """60 rows: two columns of numbers, two of texts, two classes."""
    generator = np.random.default_rng(5)
    n = 60
    income = generator.normal(40.0, 9.0, n).round(2)
    return pd.DataFrame(
        {
            "age": generator.integers(18, 80, n),
            "job": generator.choice(["clerk", "smith", "blue collar"], n),
            "income": income,
            "town": generator.choice(["Ålesund", "Bern"], n),
            "y": np.where(income + generator.normal(0, 5, n) > 42, "yes", "no"),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def loaded(here):
    """Load a table that consists of some text, by some options."""

    def load_text(text, **options):
        (here / "x.csv").write_text(text)
        return load("x.csv", options)

    return load_text


@pytest.fixture
def refusal(here):
    """The message with which a file of some content is refused: one line."""

    def load_refused(content, name="x.csv", **options):
        (here / name).write_bytes(content.encode() if isinstance(content, str) else content)
        message = refused(load, name, options)
        assert message.startswith(name)
        return message

    return load_refused
