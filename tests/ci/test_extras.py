"""What messages and pages advise to install is there to be installed."""

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADVISED = re.compile(r"pip install (?:-e )?'(?:marginbench|\.)\[([\w,-]+)\]'")


def test_every_extra_that_is_advised_exists():
    folders = ("data_loaders", "harness", "solvers", "reports", "benchmarks")
    modules = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    advised = {
        extra: str(path)
        for path in chain(modules, (ROOT / "docs").glob("*.md"), ROOT.glob("*.md"))
        for extras in ADVISED.findall(path.read_text("utf-8"))
        for extra in extras.split(",")
    }
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = known["optional-dependencies"]
    assert {"cloud", "dask", "dev", "peers", "regressions"} <= set(advised)
    assert {extra: path for extra, path in advised.items() if extra not in known} == {}


ABSENT = """
import importlib
import pkgutil
import sys


def absent(*names):
    found = [name for name in sys.modules if any(f".{word}." in f".{name}." for word in names)]
    assert not found, found


import marginbench

absent("numpy")
"""
SOLVING = """
model = marginbench.SMO().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
marginbench.to_svc(model)
absent("harness", "reports", "jinja2", "matplotlib", "pydantic", "requests")
absent("typer", "solvers.sbp", "solvers.bundle")

from marginbench.harness.loading import load_class

load_class("SMO")
absent("solvers.sbp", "solvers.bundle")

import marginbench.harness.execution.cluster
import marginbench.harness.execution.runner

absent("dask", "distributed", "tornado", "reports")
"""
COMMANDS = """
import marginbench.harness.cli.app

marginbench.harness.cli.app.build_app(lambda results, command: results)
absent("numpy", "numba", "sklearn", "pyarrow", "pydantic")

import marginbench.reports.command

marginbench.report
absent("pandas", "matplotlib", "jinja2", "pyarrow", "pydantic")

import marginbench.reports.statistics as package

for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
    importlib.import_module(found.name)
absent("scipy.stats", "matplotlib")
"""


@pytest.mark.parametrize("script", [SOLVING, COMMANDS], ids=["solving", "commands"])
def test_nothing_is_imported_before_it_is_needed(script):
    """Solving needs no package of studies and pages, one solver no other, running no Dask.

    What a small report does not need takes longer to import than the report to write.
    """
    done = subprocess.run([sys.executable, "-c", ABSENT + script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
