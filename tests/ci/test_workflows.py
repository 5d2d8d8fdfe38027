"""What the workflows run exists, and they ask for no more than they need."""

import configparser
import functools
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from marginbench.harness.cli.app import build_app
from marginbench.reports.command import add_commands

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXPRESSION = "${{"

pytestmark = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def read(path):
    return yaml.safe_load(path.read_text("utf-8"))


def steps(workflow):
    for job in workflow["jobs"].values():
        yield from job["steps"]


def commands(workflow):
    """The words of each command of each step."""
    for step in steps(workflow):
        for line in re.split(r"\n|&&", step.get("run", "")):
            words = shlex.split(line)
            yield from [words] if words else []


def braced(text):
    """``py{311,312}`` written out."""
    before, opening, rest = text.partition("{")
    if not opening:
        return [text]
    inner, _, after = rest.partition("}")
    return [f"{before}{part}{after}" for part in inner.split(",")]


def tox_environments():
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", "utf-8")
    named = {name.partition(":")[2] for name in tox.sections() if name.startswith("testenv:")}
    listed = re.split(r",\s*(?![^{]*\})", tox["tox"]["env_list"])
    return named | {"py"} | {name for text in listed for name in braced(text)}


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def option(words, name):
    assert name in words, words
    return words[words.index(name) + 1]


@functools.cache
def command_options():
    """The options of each command of marginbench."""
    app = build_app(lambda results, command: results)
    add_commands(app)
    group = typer.main.get_command(app)
    return {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in group.commands.items()
    }


def check_exists(words):
    """Fail unless what a command names is there."""
    program = words[0]
    if program == "tox":
        assert set(option(words, "-e").split(",")) <= tox_environments()
    elif program.startswith(".ci/"):
        assert os.access(ROOT / program, os.X_OK), f"{program} cannot be run"
    elif words[:4] == ["python", "-m", "pip", "install"]:
        extras = re.findall(r"\[(.*)\]", words[-1])
        assert set(extras) <= set(project()["optional-dependencies"])
    elif program == "sphinx-build":
        assert (ROOT / words[-2] / "conf.py").is_file()
    elif program == "marginbench":
        options = command_options()[words[1]]
        assert {word for word in words if word.startswith("--")} <= options
    else:
        # A step for which this test knows no rule belongs in a script.
        assert words[:2] == ["sudo", "apt-get"], words


def test_what_the_steps_run_exists(path):
    found = list(commands(read(path)))
    assert found
    for words in found:
        check_exists(words)


def test_expressions_reach_scripts_through_the_environment(path):
    # Written into a script, the name of a branch would be run as a part of it.
    assert not [step for step in steps(read(path)) if EXPRESSION in step.get("run", "")]


def test_permissions_are_those_that_are_needed(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    wider = {
        f"{permission}: {level}"
        for job in workflow["jobs"].values()
        for permission, level in job.get("permissions", {}).items()
    }
    nightly = {"contents: write", "pages: write", "id-token: write"}
    assert wider == (nightly if path.stem == "nightly" else set())
    assert "secrets." not in path.read_text("utf-8")


def test_actions_are_pinned(path):
    used = [step["uses"] for step in steps(read(path)) if "uses" in step]
    assert used
    assert [name for name in used if not re.search(r"@(v\d+|[0-9a-f]{40})$", name)] == []


def test_the_versions_of_python_are_those_of_tox_and_of_the_package(path):
    wanted = {
        found.group(1)
        for text in project()["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text))
    }
    numbered = {name for name in tox_environments() if re.fullmatch(r"py3\d+", name)}
    assert numbered == {"py" + version.replace(".", "") for version in wanted}
    workflow = read(path)
    if path.stem == "tests":
        assert set(workflow["jobs"]["quick"]["strategy"]["matrix"]["python"]) == wanted
    for step in steps(workflow):
        version = step.get("with", {}).get("python-version", "3.11")
        assert version in wanted or version.startswith(EXPRESSION)
