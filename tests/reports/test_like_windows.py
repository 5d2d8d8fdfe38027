"""What works where runs cannot: seen from a process that has only what Python has on Windows."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="this is Windows"),
]

_PLACES = ("cache", "results", "recorded", "paper", "site")
#: They import Dask, which on Windows takes modules that this Python does not have.
_WITH_DASK = ["marginbench.harness.execution.dask"]
PROGRAM = """
import contextlib, importlib, io, json, pkgutil, sys
sys.path.insert(0, {folder!r})
import like_windows
like_windows.pretend()

import marginbench
for name in ("data_loaders", "solvers", "harness", "reports"):
    package = importlib.import_module(f"marginbench.{{name}}")
    for module in pkgutil.walk_packages(package.__path__, f"{{package.__name__}}."):
        if module.name not in {with_dask!r}:
            importlib.import_module(module.name)
public = [getattr(marginbench, name) for name in dir(marginbench)]

digits = marginbench.load("digits")
model = marginbench.SMO(C=1.0).fit(digits.X_train[:100], digits.y_train[:100])
kept = {{"cache_dir": {cache!r}}}
marginbench.import_data("own", digits.X_train, digits.y_train, **kept)
own = marginbench.load("own", **kept)

from marginbench.reports.command import main
def command(*arguments):
    sys.argv = ["marginbench", *arguments]
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
    return [code, said.getvalue()]

print(json.dumps({{
    "public": len(public),
    "score": model.score(digits.X_train[:100], digits.y_train[:100]),
    "own": len(own.X_train) + len(own.X_test) - len(digits.X_train),
    "run": command("run", "quickstart", "--out", {results!r}),
    "export": command("export", {recorded!r}, "--out", {paper!r}, "--data", "columns"),
    "publish": command("publish", {recorded!r}, "--out", {site!r}),
}}))
"""


@pytest.fixture(scope="module")
def found(realistic: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program has seen, and where it was."""
    folder = tmp_path_factory.mktemp("windows")
    shutil.copytree(realistic, folder / "recorded")
    places = {name: str(folder / name) for name in _PLACES}
    program = PROGRAM.format(folder=str(HERE), with_dask=_WITH_DASK, **places)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) | {"folder": folder}


class TestLikeWindows:
    def test_everything_is_imported_and_solvers_fit(self, found: dict[str, Any]) -> None:
        assert found["public"] > 50
        assert found["score"] > 0.9

    def test_imported_data_are_kept(self, found: dict[str, Any]) -> None:
        assert found["own"] == 0

    def test_a_run_ends_with_one_line_and_leaves_nothing(self, found: dict[str, Any]) -> None:
        code, said = found["run"]
        assert code == 2
        assert said.strip().count("\n") == 0
        assert "win32: runs need Linux, macOS or WSL" in said
        assert not (found["folder"] / "results").exists()

    @pytest.mark.parametrize(
        ("command", "file"),
        [
            ("export", "paper/manifest.json"),
            ("publish", "site/index.html"),
        ],
    )
    def test_results_are_read(self, found: dict[str, Any], command: str, file: str) -> None:
        code, said = found[command]
        assert code == 0, said
        assert (found["folder"] / file).is_file()
