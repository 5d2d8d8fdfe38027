"""What the workflows run exists, and they ask for no more than they need."""

import configparser
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from marginbench.reports.command import add_commands, build_app, write_report

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text("utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
TOX = configparser.ConfigParser(interpolation=None)
TOX.read(ROOT / "tox.ini", "utf-8")

pytestmark = pytest.mark.parametrize("name", WORKFLOWS)


def steps(name):
    return [step for job in WORKFLOWS[name]["jobs"].values() for step in job["steps"]]


def test_what_the_steps_run_exists(name):
    app = build_app(write_report)
    add_commands(app)
    commands = typer.main.get_command(app).commands
    found = [
        words
        for step in steps(name)
        for line in re.split(r"\n|&&", step.get("run", ""))
        if (words := shlex.split(line))
    ]
    assert found
    for words in found:
        if words[:3] == ["tox", "run", "-e"]:
            named = {f"testenv:{each}" for each in words[3].split(",")} - {"testenv:py"}
            assert named <= set(TOX), words
        elif words[0].startswith(".ci/"):
            assert os.access(ROOT / words[0], os.X_OK), words
        elif words[0] == "marginbench":
            known = {option for each in commands[words[1]].params for option in each.opts}
            assert {word for word in words if word.startswith("--")} <= known, words
        else:
            # A step for which this test knows no rule belongs in a script.
            assert words[0] in ("python", "sphinx-build", "sudo"), words


def test_they_ask_for_no_more_than_they_need(name):
    workflow = WORKFLOWS[name]
    # Written into a script, the name of a branch would be run as a part of it: expressions reach
    # scripts through the environment.
    assert not [step for step in steps(name) if "${{" in step.get("run", "")]
    assert workflow["permissions"] == {"contents": "read"}
    wider = {
        f"{permission}: {level}"
        for job in workflow["jobs"].values()
        for permission, level in job.get("permissions", {}).items()
    }
    nightly = {"contents: write", "pages: write", "id-token: write"}
    assert wider == (nightly if name == "nightly" else set())
    assert "secrets." not in str(workflow)
    # Actions are pinned.
    used = [step["uses"] for step in steps(name) if "uses" in step]
    assert used
    assert all(re.search(r"@(v\d+|[0-9a-f]{40})$", each) for each in used), used


def test_the_versions_of_python_are_those_of_tox_and_of_the_package(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = "\n".join(project["classifiers"])
    wanted = re.findall(r"Programming Language :: Python :: (3\.\d+)", found)
    numbers = ",".join(version.replace(".", "") for version in wanted)
    assert f"py{{{numbers}}}" in TOX["tox"]["env_list"]
    if name == "tests":
        assert WORKFLOWS[name]["jobs"]["quick"]["strategy"]["matrix"]["python"] == wanted
    for step in steps(name):
        version = step.get("with", {}).get("python-version", "3.11")
        assert version in wanted or version.startswith("${{")
