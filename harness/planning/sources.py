"""Which source files a solver depends on: a static walk along its imports, no code is run."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from ...solvers.registration import entries

#: Packages whose modules count; installed libraries count by version instead.
PROJECT_PACKAGES = ("marginbench.data_loaders", "marginbench.solvers", "marginbench.harness")
# The public face: its names are those of this package, but for a few that determine no numbers.
_FACE, _BEHIND = "marginbench", "marginbench.solvers"


def closure(
    files: Iterable[Path],
    local_folder: Path | None = None,
    package: str | None = None,
) -> dict[str, Path]:
    """The files and all project modules that they import, directly or not.

    Parameters
    ----------
    files : iterable of Path
        Where to start.
    local_folder : Path, optional
        A folder whose modules count as well: those beside a user's file.
    package : str, optional
        An installed package whose modules count as well: the one of a user's module.

    Returns
    -------
    dict
        A name that does not depend on where things are installed -> the file.

    Notes
    -----
    ``from solvers import SMO`` leads to the module that defines ``SMO`` and not to the other
    solvers that the package's ``__init__`` imports, so that a change there changes no other key.
    """
    packages = project_roots()
    if package is not None and package not in PROJECT_PACKAGES:
        packages += _package_root(package)
    roots = _Roots(packages, None if local_folder is None else local_folder.resolve())
    found: dict[str, Path] = {}
    waiting = [Path(file).resolve() for file in files]
    while waiting:
        file = waiting.pop()
        name = roots.name_of(file)
        if name not in found:
            found[name] = file
            waiting.extend(_imported_files(file, roots))
    return found


def project_file(name: str) -> Path:
    """The file of a name that :func:`closure` gives to a module of the project."""
    package, _, rest = name.partition("/")
    return dict(project_roots())[f"{_FACE}.{package}"] / rest


@cache
def project_roots() -> tuple[tuple[str, Path], ...]:
    """The folder of each project package."""
    return tuple(root for package in PROJECT_PACKAGES for root in _package_root(package))


def _package_root(package: str) -> tuple[tuple[str, Path], ...]:
    """The folder of a package; none for a single module, or for nothing of that name."""
    description = importlib.util.find_spec(package)
    if description is None or not description.submodule_search_locations:
        return ()
    return ((package, Path(next(iter(description.submodule_search_locations))).resolve()),)


@dataclass(frozen=True)
class _Roots:
    """Where modules that count are looked for."""

    packages: tuple[tuple[str, Path], ...]
    local: Path | None

    def name_of(self, file: Path) -> str:
        for package, folder in self.packages:
            if file.is_relative_to(folder):
                return (
                    f"{package.removeprefix('marginbench.')}/{file.relative_to(folder).as_posix()}"
                )
        if self.local is not None and file.is_relative_to(self.local):
            return file.relative_to(self.local).as_posix()
        return file.name

    def locate(self, module: str) -> Path | None:
        """The file of a module (``__init__.py`` for a package), None if it does not count."""
        if module == _FACE:
            module = _BEHIND
        for package, folder in self.packages:
            if module == package:
                return _file_of(folder, [])
            if module.startswith(f"{package}."):
                return _file_of(folder, module.removeprefix(f"{package}.").split("."))
        if self.local is None:
            return None
        return _file_of(self.local, module.split("."))


def _file_of(folder: Path, parts: list[str]) -> Path | None:
    base = folder.joinpath(*parts)
    for candidate in (base / "__init__.py", base.with_suffix(".py") if parts else None):
        if candidate is not None and candidate.is_file():
            return candidate
    return None


def _imported_files(file: Path, roots: _Roots) -> Iterator[Path]:
    package = _package_of(file, roots)
    for found in (*_source(file).imports, *_lazy_imports(file)):
        if found.names:
            module = _absolute(found, package)
            if module:
                for name, _ in found.names:
                    yield from _files_of_name(module, name, roots)
        elif found.module:
            yield from _existing(roots.locate(found.module))


def _files_of_name(module: str, name: str, roots: _Roots, depth: int = 0) -> Iterator[Path]:
    """The files behind ``from module import name``: the module that defines it, not the package."""
    submodule = roots.locate(f"{module}.{name}")
    if submodule is not None:
        yield submodule
        return
    file = roots.locate(module)
    if file is None:
        return
    if file.name != "__init__.py" or depth > 8:
        yield file
        return
    # Follow the name through the package's own imports to where it is defined.
    package = _package_of(file, roots)
    for found in (*_source(file).imports, *_lazy_imports(file)):
        for original, bound in found.names:
            origin = _absolute(found, package)
            if origin and bound == name:
                yield from _files_of_name(origin, original, roots, depth + 1)
                return
    yield file


def _lazy_imports(file: Path) -> Iterator[_Import]:
    """What a package imports when a name of it is asked for: its stub says, and its registry."""
    stub = file.with_suffix(".pyi")
    if not stub.is_file():
        return
    for name, entry in entries().items():
        yield _Import(entry.module, names=((name, name),))
    yield from _source(stub).imports


def _absolute(node: _Import, package: str | None) -> str | None:
    """The absolute name of the module in ``from module import ...``."""
    if node.level == 0:
        return node.module
    if package is None:
        return node.module
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts) or None


def _package_of(file: Path, roots: _Roots) -> str | None:
    """The dotted name of the package that a file is in; None at the top level."""
    for package, folder in roots.packages:
        if file.is_relative_to(folder):
            return ".".join([package, *file.relative_to(folder).parts[:-1]])
    if roots.local is not None and file.is_relative_to(roots.local):
        return ".".join(file.relative_to(roots.local).parts[:-1]) or None
    return None


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class _Import:
    """An import statement; without names it is ``import module``."""

    module: str | None
    level: int = 0
    names: tuple[tuple[str, str], ...] = ()  # the name there, the name here


@dataclass(frozen=True)
class _Source:
    """What counts of a file."""

    digest: str
    imports: tuple[_Import, ...] = ()


def code_hash(file: Path) -> str:
    """SHA-256, in hexadecimal, of a file's syntax tree without comments and docstrings.

    A file that cannot be parsed counts by its bytes; it cannot be imported either.
    """
    return _source(file).digest


def _source(file: Path) -> _Source:
    return _read_source(file.read_bytes())


@lru_cache(maxsize=1024)
def _read_source(content: bytes) -> _Source:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return _Source(hashlib.sha256(b"bytes\0" + content).hexdigest())
    imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [_Import(alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple((alias.name, alias.asname or alias.name) for alias in node.names)
            imports.append(_Import(node.module, node.level, names))
        elif isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    code = b"syntax\0" + ast.dump(tree).encode("utf-8", "surrogatepass")
    return _Source(hashlib.sha256(code).hexdigest(), tuple(imports))


def _existing(file: Path | None) -> Iterator[Path]:
    if file is not None:
        yield file
