"""Which source files a solver depends on: a static walk along its imports, no code is run."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: Packages whose modules count; installed libraries count by version instead.
PROJECT_PACKAGES = ("data_loaders", "solvers", "harness")


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
                return f"{package}/{file.relative_to(folder).as_posix()}"
        if self.local is not None and file.is_relative_to(self.local):
            return file.relative_to(self.local).as_posix()
        return file.name

    def locate(self, module: str) -> Path | None:
        """The file of a module (``__init__.py`` for a package), None if it does not count."""
        head, *rest = module.split(".")
        for package, folder in self.packages:
            if head == package:
                return _file_of(folder, rest)
        if self.local is None:
            return None
        return _file_of(self.local, [head, *rest])


def _file_of(folder: Path, parts: list[str]) -> Path | None:
    base = folder.joinpath(*parts)
    for candidate in (base / "__init__.py", base.with_suffix(".py") if parts else None):
        if candidate is not None and candidate.is_file():
            return candidate
    return None


def _imported_files(file: Path, roots: _Roots) -> Iterator[Path]:
    package = _package_of(file, roots)
    for node in ast.walk(_parse(file)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _existing(roots.locate(alias.name))
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, package)
            if module:
                for alias in node.names:
                    yield from _files_of_name(module, alias.name, roots)


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
    for node in ast.walk(_parse(file)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origin = _absolute(node, package)
                if origin and (alias.asname or alias.name) == name:
                    yield from _files_of_name(origin, alias.name, roots, depth + 1)
                    return
    yield file


def _absolute(node: ast.ImportFrom, package: str | None) -> str | None:
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


def _parse(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        # It cannot be imported either; its bytes still count.
        return ast.Module(body=[], type_ignores=[])


def _existing(file: Path | None) -> Iterator[Path]:
    if file is not None:
        yield file
