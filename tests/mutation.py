"""Do the tests notice a wrong operator? Change one at a time, and run the tests of its folder.

    python tests/mutation.py --seed 1 --count 30 --module solvers/kernels/oracle.py data_loaders

Draws single changes of the pure-Python code (a comparison, a sum or product, ``and``/``or``,
``not``, 0 and 1, ``True``, ``min`` and ``max``), makes each in a copy of the checkout in a
temporary folder, and runs the quick tests of the module's folder there. A change is found if they
fail or run out of time. Prints a line for each change and the percentage that was found; the exit
code is 1 if some were not. The same seed draws the same changes of the same code.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The folders that install as parts of the package ``marginbench``. ``tests/`` mirrors them.
PACKAGES = ("data_loaders", "solvers", "harness", "reports")
#: Functions with these decorators are compiled: another operator there costs a compilation.
COMPILED = {"njit", "jit", "vectorize", "guvectorize", "compiled", "intrinsic", "overload"}

#: What stands instead of an operator, a constant, and a function that is called.
OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is": "is not",
    "is not": "is", "in": "not in", "not in": "in", "and": "or", "or": "and", "&": "|", "|": "&",
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*",
}  # fmt: skip
OPERATORS |= {f"{old}=": f"{new}=" for old, new in OPERATORS.items() if old in "+-*/"}
CONSTANTS = {"0": "1", "1": "0", "0.0": "1.0", "1.0": "0.0", "True": "False", "False": "True"}
CALLS = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all"}
CALLS |= {new: old for old, new in CALLS.items()}


@dataclass(frozen=True)
class Change:
    """One token of a module and what stands there instead; rows count from 1."""

    path: Path
    place: tuple[int, int]
    old: str
    new: str

    def apply(self, text: str) -> str:
        """The text of the module with the change."""
        lines, (row, column) = text.splitlines(keepends=True), self.place
        before, after = lines[row - 1][:column], lines[row - 1][column:]
        assert after.startswith(self.old)
        lines[row - 1] = before + self.new + after.removeprefix(self.old)
        return "".join(lines)

    def __str__(self) -> str:
        where = self.path.relative_to(ROOT).as_posix()
        return f"{where}:{self.place[0]}:{self.place[1] + 1}  {self.old} -> {self.new or 'nothing'}"


class Finder(ast.NodeVisitor):
    """Collects the changes of a module: code that runs as Python, without texts and types."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.changes: list[Change] = []
        kinds = (tokenize.OP, tokenize.NAME, tokenize.NUMBER)
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self.tokens = [(token.start, token.string) for token in tokens if token.type in kinds]

    def _add(self, start: tuple[int, int], end: tuple[int, int], swaps: dict[str, str]) -> None:
        """Replace what stands between two places, parentheses apart."""
        found = [token for token in self.tokens if start <= token[0] < end and token[1] not in "()"]
        if found and (old := " ".join(text for _, text in found)) in swaps:
            self.changes.append(Change(self.path, found[0][0], old, swaps[old]))

    def visit(self, node: ast.AST) -> None:
        """Note the changes of a node and look into its parts."""
        operands: list[ast.expr] = []
        match node:
            case ast.FunctionDef() if any(_name(d) in COMPILED for d in node.decorator_list):
                return
            # Messages are left alone, and so are texts, types and decorators below.
            case ast.JoinedStr() | ast.Raise():
                return
            case ast.Compare():
                operands = [node.left, *node.comparators]
            case ast.BoolOp():
                operands = node.values
            case ast.BinOp() if not (_is_text(node.left) or _is_text(node.right)):
                operands = [node.left, node.right]
            case ast.AugAssign():
                operands = [node.target, node.value]
            case ast.UnaryOp():
                self._add(_start(node), _start(node.operand), {"not": "", "-": ""})
            case ast.Constant():
                self._add(_start(node), _end(node), CONSTANTS)
            case ast.Call():
                row, column = _end(node.func)
                self._add((row, column - len(_name(node))), (row, column), CALLS)
        for left, right in pairwise(operands):
            self._add(_end(left), _start(right), OPERATORS)
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list"):
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, ast.AST):
                        self.visit(part)


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def changes_of(path: Path) -> list[Change]:
    """Every change of one module. Places count characters, so lines are ASCII up to them."""
    text = path.read_text(encoding="utf-8")
    finder = Finder(path, text)
    finder.visit(ast.parse(text))
    return finder.changes


def tests_of(path: Path) -> str:
    """The folder with the tests of a module: that of its own folder, or of the next one above."""
    above = (Path("tests") / folder for folder in path.relative_to(ROOT).parents)
    return next(folder.as_posix() for folder in above if (ROOT / folder).is_dir())


def copy_checkout(folder: Path) -> None:
    """The tracked files, and new ones that git does not ignore, as they stand.

    Beside them is a folder in which the folders of the copy are the package ``marginbench``.
    """
    words = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    package = folder / ".house" / "marginbench"
    shutil.copytree(folder / "src" / "marginbench", package)
    for name in (*PACKAGES, "studies"):
        (package / name).symlink_to(folder / name, target_is_directory=True)


def passes(copy: Path, tests: list[str], timeout: float) -> bool:
    """Whether these tests pass in the copy, whose modules come before those of the checkout."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(copy / ".house"), str(copy)]),
        "NUMBA_CACHE_DIR": str(copy / ".numba"),
    }
    options = ("-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-seed=0")
    words = [sys.executable, "-m", "pytest", *options, *tests]
    given = {"cwd": copy, "env": environment, "capture_output": True, "timeout": timeout}
    try:
        return subprocess.run(words, **given).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main() -> int:
    """Draw, try and tell; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20, help="number of changes")
    parser.add_argument("--module", nargs="+", default=PACKAGES, help="modules or folders")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each change")
    options = parser.parse_args()

    paths = [ROOT / name for name in options.module]
    if missing := [str(path) for path in paths if not path.exists()]:
        parser.error(f"no module or folder {', '.join(missing)}")
    modules = [found for path in paths for found in (sorted(path.rglob("*.py")) or [path])]
    sites = [change for path in modules for change in changes_of(path)]
    drawn = random.Random(options.seed).sample(sites, min(options.count, len(sites)))
    print(f"{len(drawn)} of {len(sites)} possible changes, seed {options.seed}", flush=True)
    n_found = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        copy_checkout(copy)
        every = sorted({tests_of(change.path) for change in drawn})
        # Compiles what the tests need, too, outside the time for a change.
        if not passes(copy, every, len(drawn) * options.timeout):
            raise SystemExit(f"these tests do not pass as they are: {' '.join(every)}")
        for change in sorted(drawn, key=lambda change: (change.path, change.place)):
            text = change.path.read_text(encoding="utf-8")
            target = copy / change.path.relative_to(ROOT)
            target.write_text(change.apply(text), encoding="utf-8")
            started = time.monotonic()
            found = not passes(copy, [tests_of(change.path)], options.timeout)
            target.write_text(text, encoding="utf-8")
            n_found += found
            word = "found    " if found else "UNNOTICED"
            print(f"{word} {time.monotonic() - started:4.0f} s  {change}", flush=True)
    print(f"{n_found} of {len(drawn)} found ({n_found / max(1, len(drawn)):.0%})")
    return int(n_found < len(drawn))


if __name__ == "__main__":
    sys.exit(main())
