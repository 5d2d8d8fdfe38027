"""What messages and pages advise to install is there to be installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ADVISED = re.compile(r"pip install (?:-e )?'(?:marginbench|\.)\[([\w,-]+)\]'")


def test_every_extra_that_is_advised_exists() -> None:
    sources = chain(
        *((ROOT / folder).rglob("*.py") for folder in ("data_loaders", "harness", "solvers")),
        *((ROOT / folder).rglob("*.py") for folder in ("reports", "benchmarks")),
        (ROOT / "docs").glob("*.md"),
        ROOT.glob("*.md"),
    )
    advised = {
        extra: path
        for path in sources
        for extras in ADVISED.findall(path.read_text("utf-8"))
        for extra in extras.split(",")
    }
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {"cloud", "dask", "dev", "peers", "regressions"} <= set(advised)
    missing = set(advised).difference(known["optional-dependencies"])
    assert not missing, {extra: str(advised[extra]) for extra in missing}
    for package in ("asv", "virtualenv"):
        assert any(
            requirement.startswith(package)
            for requirement in known["optional-dependencies"]["regressions"]
        )


def test_solving_imports_nothing_of_studies_and_pages() -> None:
    code = """
import sys
import marginbench

assert "numpy" not in sys.modules
model = marginbench.SMO().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
marginbench.to_svc(model)
print(*sys.modules, sep="\\n")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in found.stdout.split()}
    assert not imported & {
        "jinja2",
        "matplotlib",
        "pydantic",
        "requests",
        "seaborn",
        "typer",
    }
    assert not re.findall(r"^marginbench\.(?:harness|reports)\b", found.stdout, re.MULTILINE)
