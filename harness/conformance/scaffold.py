"""A new solver's first files: a working class and its tests, for the author to change."""

from __future__ import annotations

import keyword
import re
from importlib.util import find_spec
from pathlib import Path
from string import Template

from ..errors import UserError
from ..storage import storing

_TEMPLATES = Path(__file__).parent / "scaffolds"
# Between the words of MySolver and SVMLight.
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def write_solver(name: str, folder: Path) -> tuple[Path, Path]:
    """Write a working solver, a class of this name, and its tests.

    The file has the name in snake_case. A file that is there is never replaced.
    """
    from ...solvers.registration import entries

    module = _BETWEEN_WORDS.sub("_", name).lower()
    template = (_TEMPLATES / "solver.py.txt").read_text("utf-8")
    is_name = name.isascii() and name.isidentifier() and not name.startswith("_")
    # A name that the file uses itself would be hidden.
    taken = re.search(rf"\b{re.escape(name)}\b", template)
    if not is_name or taken or keyword.iskeyword(name) or keyword.iskeyword(module):
        raise UserError(
            f"{name!r} cannot be the name of a class; use letters and digits, as in MySolver"
        )
    if name.casefold() in map(str.casefold, entries()):
        raise UserError(f"{name!r}: marginbench has a solver of this name; choose another")
    paths = folder / f"{module}.py", folder / f"test_{module}.py"
    for path in paths:
        if path.exists() or path.is_symlink():
            raise UserError(f"{path} exists; remove it or choose another name")
    if find_spec(module):
        raise UserError(
            f"{name!r}: the file {module}.py would hide the Python module {module!r}; choose "
            "another name"
        )
    tests = (_TEMPLATES / "test_solver.py.txt").read_text("utf-8")
    for path, text in zip(paths, (template, tests), strict=True):
        # "x": nothing is replaced, not even a file that appeared a moment ago.
        with storing(path), open(path, "x", encoding="utf-8") as sink:
            sink.write(Template(text).substitute(CLASS=name, MODULE=module))
    return paths
