"""Machine code is that of the sources, whatever is edited, damaged, removed or read-only."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marginbench.solvers.numeric import compiling

SOLVERS = Path(compiling.__file__).parents[1]
# Two modules: a step, and a loop that takes it.
STEP = """
from solvers.numeric.compiling import njit

@njit(error_model="numpy")
def step(x):
    return x + 1.0
"""
LOOP = """
from solvers.numeric.compiling import njit
from solvers.step import step

@njit(error_model="numpy")
def loop(x, n):
    for _ in range(n):
        x = step(x)
    return x
"""
CALL = """
from solvers.loop import loop
value = loop(1.0, 10)
print(value, sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values()))
"""
FIT = """
import numpy as np
from marginbench.solvers import SMO
rng = np.random.default_rng(0)
X = rng.standard_normal((100, 3))
y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
model = SMO(working_set="textbook", C=1.0, gamma=1.0, fit_intercept=True).fit(X, y)
print(model.n_iter_, repr(float(model.dual_coef_.sum())), repr(float(abs(model.dual_coef_).sum())))
"""


def python(folder: Path, code: str, **environment: str) -> str:
    """What the code prints in a process of its own that imports from the folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "MARGINBENCH_CACHE")
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package ``solvers`` of a step and a loop."""
    package = tmp_path / "tree" / "solvers"
    (package / "numeric").mkdir(parents=True)
    shutil.copy(SOLVERS / "numeric" / "compiling.py", package / "numeric")
    (package / "numeric" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "step.py").write_text(STEP)
    (package / "loop.py").write_text(LOOP)
    return package.parent


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_stored_machine_code_runs_without_what_only_the_compiler_needs(tree, tmp_path):
    code = CALL + 'import sys\nprint("numba.typed.typedlist" in sys.modules)'
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert python(tree, code, **cache).split() == ["11.0", "0", "1", "True"]
    assert python(tree, code, **cache).split() == ["11.0", "1", "0", "False"]


def test_an_edit_of_an_inlined_function_reaches_the_callers_of_other_files(
    tree: Path, tmp_path: Path
) -> None:
    cache = {"MARGINBENCH_CACHE": str(tmp_path / "cache")}
    assert python(tree, CALL, **cache) == "11.0 0 1"
    assert python(tree, CALL, **cache) == "11.0 1 0"
    edit(tree / "solvers" / "step.py", "x + 1.0", "x + 2.0")
    assert python(tree, CALL, **cache) == "21.0 0 1"
    edit(tree / "solvers" / "step.py", "x + 2.0", "x + 1.0")
    assert python(tree, CALL, **cache) == "11.0 1 0"
    assert len(list((tmp_path / "cache" / "compiled").iterdir())) == 2


@pytest.mark.slow
def test_an_edit_of_the_step_of_smo_changes_its_fit_and_a_comment_does_not(tmp_path: Path) -> None:
    package = tmp_path / "marginbench"
    shutil.copytree(SOLVERS, package / "solvers", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text("")
    cache = {"MARGINBENCH_CACHE": str(tmp_path / "cache")}
    first = python(tmp_path, FIT, **cache)
    inner = package / "solvers" / "smo" / "inner.py"
    inner.write_text(inner.read_text() + "\n# A comment.\n")
    assert python(tmp_path, FIT, **cache) == first
    edit(inner, "step = min((F[i] - F[j]) /", "step = min(0.5 * (F[i] - F[j]) /")
    assert python(tmp_path, FIT, **cache) != first


def test_a_process_whose_sources_were_edited_under_it_keeps_nothing(
    tree: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    late = (
        "import solvers.loop, pathlib\n"
        "file = pathlib.Path('solvers/step.py')\n"
        "file.write_text(file.read_text().replace('1.0', '2.0'))\n" + CALL
    )
    assert python(tree, late, MARGINBENCH_CACHE=str(cache)) == "11.0 0 1"
    assert list(cache.rglob("*.code")) == []


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def zeroed(content: bytes) -> bytes:
    return bytes(len(content))


def flipped(content: bytes) -> bytes:
    changed = bytearray(content)
    changed[2 * len(content) // 3] ^= 1
    return bytes(changed)


def flipped_first(content: bytes) -> bytes:
    return bytes([content[0] ^ 128]) + content[1:]


def emptied(content: bytes) -> bytes:
    return b""


def replaced(content: bytes) -> bytes:
    return b"not machine code at all\n" * 9


def test_damaged_files_are_compiled_and_written_again(tree: Path, tmp_path: Path) -> None:
    cache = {"MARGINBENCH_CACHE": str(tmp_path / "cache")}
    python(tree, CALL, **cache)
    files = list((tmp_path / "cache").rglob("*.code"))
    assert len(files) == 2
    for damage in (truncated, zeroed, flipped, flipped_first, emptied, replaced):
        whole = {file: file.read_bytes() for file in files}
        for file, content in whole.items():
            file.write_bytes(damage(content))
        assert python(tree, CALL, **cache) == "11.0 0 1"
        for file, content in whole.items():
            assert len(file.read_bytes()) == pytest.approx(len(content), rel=0.01)
    assert python(tree, CALL, **cache) == "11.0 1 0"


def test_a_cache_that_cannot_be_written_is_no_error(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = str(tmp_path / "file" / "below")
    environment = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere}
    assert python(tree, CALL, **environment) == "11.0 0 1"
    assert python(tree, CALL, **environment, MARGINBENCH_CACHE=nowhere) == "11.0 0 1"
    assert python(tree, CALL, **environment, NUMBA_CACHE_DIR=nowhere) == "11.0 0 1"
    assert python(tree, "import solvers.loop", **environment, MARGINBENCH_CACHE="/proc/1/x") == ""


@pytest.mark.posix
def test_a_full_disk_is_no_error(tree: Path, tmp_path: Path) -> None:
    full = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    )
    cache = tmp_path / "cache"
    assert python(tree, full + CALL, MARGINBENCH_CACHE=str(cache)) == "11.0 0 1"
    assert list(cache.rglob("*.code*")) == []
    assert python(tree, CALL, MARGINBENCH_CACHE=str(cache)) == "11.0 0 1"
    assert python(tree, CALL, MARGINBENCH_CACHE=str(cache)) == "11.0 1 0"


def test_code_of_users_is_left_to_numba(tree: Path, tmp_path: Path) -> None:
    (tree / "mine.py").write_text(
        "import numba\nfrom solvers.numeric import compiling\nfrom solvers.loop import loop\n"
        "@numba.njit(cache=True)\ndef mine(x):\n    return 2.0 * x\n"
        "@compiling.njit()\ndef theirs(x):\n    return loop(x, 10)\n"
        "print(mine(1.0), theirs(1.0), len(theirs.stats.cache_hits))\n"
    )
    cache = tmp_path / "cache"
    assert python(tree, "import mine", MARGINBENCH_CACHE=str(cache)) == "2.0 11.0 0"
    assert list((tree / "__pycache__").glob("mine.mine-*.nbc"))
    assert {file.name.partition("-")[0] for file in cache.rglob("*.code")} == {
        "loop.loop",
        "step.step",
    }
    chosen = tmp_path / "chosen"
    python(tree, CALL, NUMBA_CACHE_DIR=str(chosen))
    assert len(list(chosen.glob("marginbench-*/*.code"))) == 2


@pytest.mark.parametrize(
    ("days", "kept"),
    [
        ([2, 3, 4, 5, 6, 7], [2, 3, 4, 5]),  # a few stay, however old
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 2], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),  # all that are in use
    ],
)
def test_old_folders_are_removed_and_recent_ones_never(
    tree: Path, tmp_path: Path, days: list[float], kept: list[float]
) -> None:
    cache = tmp_path / "cache"
    now = time.time()
    folders = {day: cache / "compiled" / f"marginbench-{n:032x}" for n, day in enumerate(days)}
    notes = cache / "compiled" / "marginbench-notes"
    for day, folder in {**folders, 99: notes}.items():
        folder.mkdir(parents=True)
        (folder / "old.code").write_text("")
        os.utime(folder, (now - 86_400 * day, now - 86_400 * day))
    python(tree, CALL, MARGINBENCH_CACHE=str(cache))
    assert [day for day, folder in folders.items() if folder.is_dir()] == kept
    assert notes.is_dir()


def test_a_process_that_only_reads_marks_the_folder_as_used(tree: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    python(tree, CALL, MARGINBENCH_CACHE=str(cache))
    (folder,) = (cache / "compiled").iterdir()
    os.utime(folder, (0, 0))
    assert python(tree, CALL, MARGINBENCH_CACHE=str(cache)) == "11.0 1 0"
    assert folder.stat().st_mtime > time.time() - 3600


def test_processes_at_once_share_a_cache(tree: Path, tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(tree), "MARGINBENCH_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    environment.pop("NUMBA_CACHE_DIR", None)
    calls = [CALL.replace("1.0, 10", value) for value in ("1.0, 10", "1, 10")] * 2
    running = [
        subprocess.Popen(
            [sys.executable, "-c", call],
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for call in calls
    ]
    printed = [process.communicate(timeout=120)[0].split()[0] for process in running]
    assert printed == ["11.0"] * 4
    # None has replaced what another one kept for other types.
    cache = str(tmp_path / "cache")
    for call in calls[:2]:
        assert python(tree, call, MARGINBENCH_CACHE=cache) == "11.0 1 0"


def test_every_compiled_function_goes_through_the_decorator() -> None:
    """``numba.njit(cache=True)`` would keep machine code of functions that have been edited."""
    compilers = {"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil", "jit_module"}
    for file in SOLVERS.rglob("*.py"):
        if file == SOLVERS / "numeric" / "compiling.py":
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"):
                assert not {alias.name for alias in node.names} & compilers, file
            if isinstance(node, ast.Import):
                assert "numba" not in {alias.name for alias in node.names}, file
            if isinstance(node, ast.keyword):
                assert node.arg != "cache", file
