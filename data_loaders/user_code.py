"""Files of code that users name: what they define, found without running them, and their import."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib import machinery
from pathlib import Path
from types import ModuleType
from typing import Any


class NotPython(ValueError):
    """A file that cannot be parsed; the message goes on after the file's name."""


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file; raises `NotPython`."""
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, OSError) as error:
        line = getattr(error, "lineno", None)
        location = f", line {line}" if line else ""
        reason = getattr(error, "msg", None) or str(error)
        raise NotPython(f"{location}: not valid Python ({reason})") from None


def bound_names(tree: ast.Module) -> Iterator[str]:
    """Names that a module may bind, as far as the text shows; "*" if it may bind any."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Name) and node.id in ("exec", "globals"):
            yield "*"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def module_name(path: Path, prefix: str) -> str:
    """The name of a file's module, different from those of all other files."""
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    return f"_marginbench_{prefix}{path.stem}_{digest}"


class _Source(machinery.SourceFileLoader):
    """Compiles the text as it is.

    Bytecode on disk counts as that of a text of the same size and second, whatever it says.
    """

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


def import_file(path: Path, prefix: str = "") -> ModuleType:
    """Run a file that ends in ".py" as a module; raises whatever its code raises."""
    folder, name = str(path.parent), module_name(path, prefix)
    if folder not in sys.path:
        # As for a script: the modules beside the file come first.
        sys.path.insert(0, folder)
        extensions = machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES
        finder = machinery.FileFinder(folder, extensions, (_Source, machinery.SOURCE_SUFFIXES))
        sys.path_importer_cache[folder] = finder
    description: Any = importlib.util.spec_from_loader(name, _Source(name, str(path)))
    module = sys.modules[name] = importlib.util.module_from_spec(description)
    try:
        description.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
