"""A new solver's first files: a working class and its tests, for the author to change."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template

from ..errors import UserError
from ..storage import storing

_TEMPLATES = Path(__file__).parent / "scaffolds"
# Boundaries between words: "MySolver", "SVMLight", "my_solver", "my-solver", "my solver".
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*|[0-9]+")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_ -]*")


@dataclass(frozen=True)
class Names:
    """What a new solver is called: a class in CamelCase, a file without ``.py`` in snake_case."""

    class_name: str
    module: str

    @property
    def solver(self) -> str:
        """What commands call it."""
        return f"{self.module}.py:{self.class_name}"

    @property
    def files(self) -> tuple[str, str]:
        """The file of the solver and that of its tests."""
        return f"{self.module}.py", f"test_{self.module}.py"


def names_of(text: str, folder: Path) -> Names:
    """The names of the class and of the file that a new solver's name stands for."""
    from ...solvers.registration import entries

    if not _NAME.fullmatch(text):
        raise UserError(
            f"{text!r} cannot be the name of a class; use letters and digits, as in MySolver"
        )
    words = _WORD.findall(text)
    names = Names(
        class_name="".join(word[0].upper() + word[1:] for word in words),
        module="_".join(word.lower() for word in words),
    )
    if names.class_name.casefold() in map(str.casefold, entries()):
        raise UserError(f"{text!r}: marginbench has a solver of this name; choose another")
    if keyword.iskeyword(names.module) or keyword.iskeyword(names.class_name):
        raise UserError(f"{text!r} is a keyword of Python; choose another name")
    if not (folder / f"{names.module}.py").exists() and find_spec(names.module):
        raise UserError(
            f"{text!r}: the file {names.module}.py would hide the Python module "
            f"{names.module!r}; choose another name"
        )
    return names


def write_solver(names: Names, folder: Path) -> list[Path]:
    """Write a working solver and its tests; a file that is there is never replaced."""
    paths = [folder / name for name in names.files]
    for path in paths:
        if path.exists() or path.is_symlink():
            raise UserError(f"{path} exists; remove it or choose another name")
    for path, template in zip(paths, ("solver.py.txt", "test_solver.py.txt"), strict=True):
        # "x": nothing is replaced, not even a file that appeared a moment ago.
        with storing(path), open(path, "x", encoding="utf-8") as sink:
            text = Template((_TEMPLATES / template).read_text("utf-8"))
            sink.write(text.substitute(CLASS=names.class_name, MODULE=names.module))
    return paths
