"""The examples of docs/your-data.md run, and say what the page says."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

from marginbench.data_loaders import load
from marginbench.data_loaders.own.options import Options
from marginbench.harness.study.toml import parse_study

PAGE = (Path(__file__).parents[3] / "docs" / "your-data.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_run(here, capsys):
    names = {}
    for code in blocks("python"):
        exec(compile(code, "docs/your-data.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    shown = re.findall(r"^    (\S.*)$", PAGE.partition("report keep it:")[2], re.MULTILINE)[:5]
    assert printed[1:6] == shown
    assert printed[6:] == ["280 120", "13"]
    (study,) = blocks("toml")
    (task,) = parse_study(study.encode(), where="mine.toml", folder=str(here)).tasks
    params = tomllib.loads(study)["task"][0]["dataset_params"]
    assert task.label == "bank.csv"
    assert load("bank.csv", params).decided == tuple(shown)


def test_the_table_has_every_option_with_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE))
    defaults = {item.name: item.default for item in fields(Options)}
    assert set(defaults) <= set(rows)
    for name in ("test_fraction", "split_seed", "version"):
        assert rows[name] == f"`{defaults[name]}`"
    assert rows["missing"] == f'`"{defaults["missing"]}"`'
    assert rows["missing_words"] == f'`"" {" ".join(map(str, defaults["missing_words"])).strip()}`'
