"""Machine code is that of the sources, whatever is edited, damaged, removed or read-only."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import pytest

from marginbench.solvers.numeric import compiling

SOLVERS = Path(compiling.__file__).resolve().parents[1]
# A loop that takes a step of another module, in a package that takes a constant of a third one;
# and a function of a named tuple.
FILES = {
    "__init__.py": "",
    "step.py": (
        "from .numeric.compiling import njit\nfrom .sizes import (  # a comment\n    SIZE,\n)\n"
        "@njit()\ndef step(x):\n    return x + SIZE\n"
    ),
    "sizes/__init__.py": "from .small import SIZE\n",
    "sizes/small.py": "SIZE = 1.0\n",
    "loop.py": (
        "from . import step as steps\nfrom .numeric.compiling import njit\nstep = steps.step\n"
        "@njit()\ndef loop(x, n):\n    for _ in range(n):\n        x = step(x)\n    return x\n"
    ),
    "pair.py": (
        "from .numeric.compiling import njit\n"
        "@njit()\ndef difference(pair):\n    return pair.a - pair.b\n"
    ),
}
CALL = """
from solvers.loop import loop
value = loop(1.0, 10)
print(value, sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values()))
"""
PAIR = """
from pair_type import Pair
from solvers.pair import difference
print(difference(Pair(a=3.0, b=1.0)), sum(difference.stats.cache_hits.values()))
"""


def python(folder, cache, code):
    """What the code prints in a process of its own that imports from the folder."""
    environment = {
        **os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(cache),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.fixture
def call(tree, tmp_path, monkeypatch, capsys):
    """Runs code as a new process would: its modules are imported anew, only numba is not."""
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", "")
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tree)

    def forget():
        for name in [*sys.modules]:
            if name.partition(".")[0] in ("solvers", "pair_type", "mine"):
                del sys.modules[name]

    def run(code):
        forget()
        importlib.invalidate_caches()
        try:
            exec(code, {})
        finally:
            forget()
        return str(capsys.readouterr().out).strip()

    return run


@pytest.fixture
def tree(tmp_path):
    """The folder of a package ``solvers``."""
    package = tmp_path / "tree" / "solvers"
    for name, content in FILES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content)
    (package / "numeric").mkdir()
    shutil.copy(SOLVERS / "numeric" / "compiling.py", package / "numeric")
    return package.parent


def edit(file, old, new):
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_machine_code_follows_the_sources_that_a_function_reaches(tree, tmp_path, call):
    def stored():
        return len(list((tmp_path / "cache").rglob("*.nbi")))

    assert [call(CALL), call(CALL)] == ["11.0 0 1", "11.0 1 0"]
    edit(tree / "solvers" / "pair.py", "pair.a - pair.b", "pair.b - pair.a  # a comment")
    assert call(CALL) == "11.0 1 0"
    edit(tree / "solvers" / "step.py", "x + SIZE", "x + 2 * SIZE")
    assert call(CALL) == "21.0 0 1"
    assert stored() == 4  # recent files stay
    edit(tree / "solvers" / "step.py", "x + 2 * SIZE", "x + SIZE")
    assert call(CALL) == "11.0 1 0"
    for file in (tmp_path / "cache").rglob("*.nb?"):
        os.utime(file, (time.time() - 8 * 86_400, time.time() - 8 * 86_400))
    edit(tree / "solvers" / "sizes" / "small.py", "SIZE = 1.0", "SIZE = 2.0")
    assert call(CALL) == "21.0 0 1"
    assert stored() == 2
    compiler = tree / "solvers" / "numeric" / "compiling.py"
    edit(compiler, "numba.njit(", "numba.njit(inline='always', ")
    assert call(CALL) == "21.0 0 1"


def test_named_tuples_of_one_name_are_told_apart_by_their_fields(tree, call):
    definition = (
        "from typing import NamedTuple\nclass Pair(NamedTuple):\n    {}: float\n    {}: float\n"
    )
    (tree / "pair_type.py").write_text(definition.format("a", "b"))
    assert [call(PAIR), call(PAIR)] == ["2.0 0", "2.0 1"]
    (tree / "pair_type.py").write_text(definition.format("b", "a"))
    assert call(PAIR) == "2.0 0"


@pytest.mark.parametrize(("kind", "share"), [("nbi", 0.5), ("nbc", 0.5), ("nbi", 0.0)])
def test_damaged_files_are_compiled_and_written_again(tmp_path, call, kind, share):
    call(CALL)
    files = list((tmp_path / "cache").rglob(f"*.{kind}"))
    assert len(files) == 2
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[: int(share * len(content))])
    assert [call(CALL), call(CALL)] == ["11.0 0 1", "11.0 1 0"]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, call, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "file" / "below"))
    assert call(CALL) == "11.0 0 1"


@pytest.mark.posix
def test_a_full_disk_is_no_error(call):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        assert call(CALL) == "11.0 0 1"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [call(CALL), call(CALL)] == ["11.0 0 1", "11.0 1 0"]


def test_code_of_users_is_left_to_numba(tree, tmp_path, call):
    (tree / "mine.py").write_text(
        "from solvers.numeric import compiling\nfrom solvers.loop import loop\n"
        "@compiling.njit()\ndef theirs(x):\n    return loop(x, 10)\n"
        "print(theirs(1.0), len(theirs.stats.cache_hits))\n"
    )
    assert call("import mine") == "11.0 0"
    files = (tmp_path / "cache").rglob("*.nbi")
    assert {re.split("[.-]", file.name)[0] for file in files} == {"loop", "step"}


def test_processes_at_once_share_a_cache_that_needs_no_compiler(tree, tmp_path):
    values, cache = ("1.0, 10", "1, 10"), tmp_path / "cache"
    calls = [CALL.replace("1.0, 10", value) for value in values]
    with ThreadPoolExecutor() as pool:
        printed = list(pool.map(lambda code: python(tree, cache, code), calls))
    assert printed == ["11.0 0 1"] * 2
    # Neither has replaced what the other one kept for other types.
    both = CALL.replace("loop(1.0, 10)", "loop(1.0, 10) + loop(1, 10)")
    both += 'import sys\nprint("numba.typed.typedlist" in sys.modules)'
    assert python(tree, cache, both).split() == ["22.0", "2", "0", "False"]
    assert list((cache / "marginbench").glob("loop.loop-*.nbi"))


def test_the_sources_compile_and_import_in_the_way_that_the_cache_watches():
    """``numba.njit(cache=True)`` would keep machine code of functions that have been edited."""
    compilers = {"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil", "jit_module"}
    for file in SOLVERS.rglob("*.py"):
        if file == SOLVERS / "numeric" / "compiling.py":
            continue
        covered = {path for path in compiling._read(file)[1] if path.name != "__init__.py"}
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"):
                assert not {alias.name for alias in node.names} & compilers, file
            elif isinstance(node, ast.Import):
                assert "numba" not in {alias.name for alias in node.names}, file
            elif isinstance(node, ast.keyword):
                assert node.arg != "cache", file
            elif isinstance(node, ast.ImportFrom) and node.level and node.module:
                target = file.parents[node.level - 1].joinpath(*node.module.split("."))
                if target.is_relative_to(SOLVERS):
                    assert target.with_suffix(".py") in covered or target.is_dir(), (file, target)
