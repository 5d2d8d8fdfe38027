"""What the workflows run exists, and they ask for no more than they need."""

import configparser
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


def tox_sections():
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", "utf-8")
    return tox


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def check_exists(words):
    """Fail unless what a command names is there."""
    if words[:3] == ["tox", "run", "-e"]:
        named = {f"testenv:{name}" for name in words[3].split(",")} - {"testenv:py"}
        assert named <= set(tox_sections()), words
    elif words[0].startswith(".ci/"):
        assert os.access(ROOT / words[0], os.X_OK), words
    elif words[0] == "marginbench":
        app = build_app(lambda results, command: results)
        add_commands(app)
        command = typer.main.get_command(app).commands[words[1]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words
    else:
        # A step for which this test knows no rule belongs in a script.
        assert words[0] in ("python", "sphinx-build", "sudo"), words


def test_what_the_steps_run_exists(path):
    found = [
        words
        for step in steps(read(path))
        for line in re.split(r"\n|&&", step.get("run", ""))
        if (words := shlex.split(line))
    ]
    assert found
    for words in found:
        check_exists(words)


def test_they_ask_for_no_more_than_they_need(path):
    workflow = read(path)
    # Written into a script, the name of a branch would be run as a part of it: expressions reach
    # scripts through the environment.
    assert not [step for step in steps(workflow) if EXPRESSION in step.get("run", "")]
    assert workflow["permissions"] == {"contents": "read"}
    wider = {
        f"{permission}: {level}"
        for job in workflow["jobs"].values()
        for permission, level in job.get("permissions", {}).items()
    }
    nightly = {"contents: write", "pages: write", "id-token: write"}
    assert wider == (nightly if path.stem == "nightly" else set())
    assert "secrets." not in path.read_text("utf-8")
    # Actions are pinned.
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    assert all(re.search(r"@(v\d+|[0-9a-f]{40})$", name) for name in used), used


def test_the_versions_of_python_are_those_of_tox_and_of_the_package(path):
    found = "\n".join(project()["classifiers"])
    wanted = re.findall(r"Programming Language :: Python :: (3\.\d+)", found)
    numbers = ",".join(version.replace(".", "") for version in wanted)
    assert f"py{{{numbers}}}" in tox_sections()["tox"]["env_list"]
    workflow = read(path)
    if path.stem == "tests":
        assert workflow["jobs"]["quick"]["strategy"]["matrix"]["python"] == wanted
    for step in steps(workflow):
        version = step.get("with", {}).get("python-version", "3.11")
        assert version in wanted or version.startswith(EXPRESSION)
