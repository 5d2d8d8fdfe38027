"""What messages and pages advise to install is there to be installed."""

from __future__ import annotations

import re
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
