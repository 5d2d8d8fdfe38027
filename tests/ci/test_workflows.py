"""The workflows ask for no more than they need, and know the versions of Python."""

import configparser
import re
import tomllib
from pathlib import Path

import pytest

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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = "\n".join(project["classifiers"])
    wanted = re.findall(r"Programming Language :: Python :: (3\.\d+)", found)
    numbers = ",".join(version.replace(".", "") for version in wanted)
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", "utf-8")
    assert f"py{{{numbers}}}" in tox["tox"]["env_list"]
    workflow = read(path)
    if path.stem == "tests":
        assert workflow["jobs"]["quick"]["strategy"]["matrix"]["python"] == wanted
    for step in steps(workflow):
        version = step.get("with", {}).get("python-version", "3.11")
        assert version in wanted or version.startswith(EXPRESSION)
