"""The code that determines a run, and the version of its solver.

Code is counted by folders: the room of the solver, the rooms that all solvers share, and the
evaluation. An edit of code anywhere in them gives a run a new key, an edit elsewhere does not.
Comments and docstrings do not count.

The version of a solver is the beginning of the same hash. Where the file of the solver is in a
clean git work tree, the commit that last changed it follows: ``3f2a9c01d4 git:abc1234def``.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from ..environment import git
from ..errors import SolverError
from ..hashing import hash_json
from ..loading import SolverSpec

#: The rooms of solvers/ on which those of the families build.
COMMON_ROOMS = ("interface", "kernels", "linear", "models", "numeric")
#: What decides what is measured, at which moments, and how it is judged.
EVALUATION = "harness/evaluation"
#: Generators of instances, of which there is no fingerprint of data, by kind of studies.
GENERATORS = {"feasibility": ("data_loaders/feasibility.py",)}
# Bytes of a file of code; a larger one is none.
_LARGEST_CODE = 2**24
# Digits of a version and of a commit.
_DIGITS = 10
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def numeric_versions() -> dict[str, str]:
    """Versions of Python (minor) and of the libraries that numbers depend on."""
    names = ("numpy", "scipy", "numba", "scikit-learn")
    python = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    return python | {name: metadata.version(name) for name in names}


def source_files(solver: str, defined_in: Path, kind: str) -> dict[str, str]:
    """The code that determines the runs of a solver, read and not run: name of a file -> its hash.

    An installed package counts by its version: it is "package 1.2", and its hash says nothing.
    """
    spec = SolverSpec.parse(solver)
    # What the name says comes first: the class itself may say anything.
    sources = [file for file in (spec.located(), defined_in) if file and _is_code(file)]
    if not sources:
        raise SolverError(f"{solver}: its code cannot be found")
    solvers = project_roots()["solvers"]
    parts = {EVALUATION, *GENERATORS.get(kind, ()), *(f"solvers/{room}" for room in COMMON_ROOMS)}
    outside: dict[str, Path | None] = {}
    if spec.registry_name is None and not _is_project(sources[0]):
        outside = _outside_code(spec)
        if spec.path is not None or None not in outside.values():
            outside |= {
                file.name: file
                for file in sources
                if not _is_project(file) and file not in outside.values()
            }
        if "marginbench" in _packages_named([*outside.values(), *sources]):
            parts.add("solvers")
    for file in sources:
        if file.is_relative_to(solvers) and file.parent != solvers:
            parts.add(f"solvers/{file.relative_to(solvers).parts[0]}")
    files = {name: code_hash(file) for name, file in outside.items()}
    for part in parts:
        package, _, rest = part.partition("/")
        root = project_roots()[package]
        for file in [root / rest] if rest.endswith(".py") else (root / rest).rglob("*.py"):
            files[f"{package}/{file.relative_to(root).as_posix()}"] = code_hash(file)
    return files


def _outside_code(spec: SolverSpec) -> dict[str, Path | None]:
    """The files behind a name from outside the project; "package 1.2" has none."""
    if spec.path is not None:
        own: dict[str, Path | None] = {**files_beside(spec.path)}
        imported = _packages_named(own.values()) - {"marginbench"}  # counts by its code
        return own | dict.fromkeys({installed_version(name) for name in imported} - {""})
    package = str(spec.module).partition(".")[0]
    if installed_version(package):
        return {installed_version(package): None}
    found = _spec(package)
    if found is not None and found.submodule_search_locations:
        folder = Path(next(iter(found.submodule_search_locations))).resolve()
        files = folder.rglob("*.py")
        return {f"{package}/{file.relative_to(folder).as_posix()}": file for file in files}
    file = spec.located()
    return {file.name: file} if file else {}


@cache
def project_roots() -> dict[str, Path]:
    """The folders of the packages whose code may determine the numbers of a run, by name."""
    project = Path(__file__).resolve().parents[2]
    return {name: project / name for name in ("data_loaders", "solvers", "harness")}


@cache
def project_code() -> str:
    """A hash of all files of these packages, byte by byte; of ``datasets.toml`` as well."""
    files = {
        f"{name}/{file.relative_to(root).as_posix()}": hashlib.sha256(file.read_bytes()).hexdigest()
        for name, root in project_roots().items()
        for file in (*root.rglob("*.py"), *root.rglob("*.toml"))
    }
    return hash_json(files)


def installed_packages() -> Iterator[str]:
    """This Python, and what says in its folders which packages are installed."""
    yield sys.version
    for folder in filter(os.path.isdir, sys.path):
        marks = (".dist-info", ".egg-info", ".pth")
        yield from sorted(name for name in os.listdir(folder) if name.endswith(marks))


def files_beside(file: Path) -> dict[str, Path]:
    """A user's file, and the modules and packages beside it that it or one of them imports."""
    folder = file.parent
    files: dict[str, Path] = {}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(folder).as_posix()
        if name in files or not _is_code(path):
            continue
        files[name] = path
        for module, imported in _imports(path):
            top, *below = module.split(".")
            package = folder / top
            if top != "marginbench" and not (package / "__init__.py").is_file():
                # A module, or one in a folder that is no package.
                package = package.joinpath(*below)
                waiting += [package.with_suffix(".py"), package / f"{imported}.py"]
            if top != "marginbench" and (package / "__init__.py").is_file():
                waiting.extend(package.rglob("*.py"))
    return files


@lru_cache(maxsize=1024)
def _hash_of_code(content: bytes) -> str:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(b"bytes\0" + content).hexdigest()
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        # Of statements only; to walk through all expressions takes as long as to read the file.
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, block, ())
    code = b"syntax\0" + ast.dump(tree).encode("utf-8", "surrogatepass")
    return hashlib.sha256(code).hexdigest()


def kernel_code(name: str) -> str:
    """The hash of the code of a kernel from outside the project; empty for one of the project."""
    if ":" not in name:
        return ""
    own = _outside_code(SolverSpec.parse(name).checked())
    if not own:
        raise SolverError(f"{name}: its code cannot be found")
    return hash_json({each: code_hash(file) for each, file in own.items()})


def code_hash(file: Path | None) -> str:
    """SHA-256 of a file's syntax tree without comments and docstrings, or else of its bytes."""
    return _hash_of_code(b"" if file is None else file.read_bytes())


@cache
def installed_version(package: str) -> str:
    """Name and version of the installed distribution that has a package; empty if it has none."""
    spec = _spec(package)
    paths = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin or ""]
    for name in _distributions().get(package, ()):
        installed = metadata.distribution(name)
        root = Path(str(installed.locate_file("")))
        if any(Path(path).is_relative_to(root) for path in paths):
            return f"{name} {installed.version}"
    return ""


# The distributions that have each package; to list them takes a tenth of a second.
_distributions = cache(metadata.packages_distributions)


def _imports(file: Path) -> Iterator[tuple[str, str]]:
    """The modules that a file imports by absolute names, and what of each ("" for all of it)."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name.replace("*", "")) for alias in node.names)


def _packages_named(files: Iterable[Path | None]) -> set[str]:
    """The packages that files import, by their first names; not those of Python."""
    names = {module.partition(".")[0] for file in files if file for module, _ in _imports(file)}
    return names - sys.stdlib_module_names


def _spec(package: str) -> ModuleSpec | None:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(package)
    return None


def _is_project(file: Path) -> bool:
    return any(file.is_relative_to(folder) for folder in project_roots().values())


def _is_code(file: Path) -> bool:
    return file.is_file() and file.stat().st_size <= _LARGEST_CODE


def version_of(source_hash: str, file: Path) -> str:
    """The version of a solver, with the commit that last changed its file in a clean work tree."""
    commit = None
    if git(file.parent, "status", "--porcelain", "--untracked-files=no") == "":
        log = ("log", "-1", f"--abbrev={_DIGITS}", "--format=%h", "--", file.name)
        commit = git(file.parent, *log)
    return source_hash[:_DIGITS] + (f" git:{commit}" if commit else "")


def content_version(version: str) -> str:
    """What a version says of the code alone; the commit may differ for the same code."""
    return version.partition(" ")[0]
