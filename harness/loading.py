"""From a solver's name to its class: registry names, "file.py:Class" and "module:Class"."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data_loaders import suggest
from ..data_loaders.user_code import NotPython, bound_names, import_file, module_name, parsed
from ..solvers.registration import entries, solver_names
from .errors import SolverError, first_line

if TYPE_CHECKING:
    from ..solvers.kernels import Kernel


@dataclass(frozen=True)
class SolverSpec:
    """A solver's name taken apart: a class of the registry, of a file or of a module."""

    class_name: str
    path: Path | None = None
    module: str | None = None

    @classmethod
    def parse(cls, text: str, folder: str | Path | None = None) -> SolverSpec:
        """Take a name apart; a relative file is looked for in ``folder`` (default: the current)."""
        before, colon, class_name = text.rpartition(":")
        if colon and not (before and class_name.isidentifier()):
            raise SolverError(
                f"{text!r} does not name a solver: write file.py:Class or module:Class"
            )
        if before.endswith(".py"):
            path = Path(folder or ".").joinpath(Path(before).expanduser()).resolve()
            return cls(class_name, path=path)
        return cls(class_name, module=before or None)

    @property
    def registry_name(self) -> str | None:
        """Its name in the registry, if it has no other."""
        return None if self.path or self.module else self.class_name

    @property
    def text(self) -> str:
        """The name, with an absolute path."""
        return self.registry_name or f"{self.path or self.module}:{self.class_name}"

    def located(self) -> Path | None:
        """The file that the name leads to, found without importing anything from outside."""
        if self.module is None:
            return self.path
        module, places = None, None
        name = ""
        for part in self.module.split("."):
            name = f"{name}.{part}" if name else part
            module = importlib.machinery.PathFinder.find_spec(name, places)
            if module is None:
                return None
            places = module.submodule_search_locations
        return Path(module.origin) if module and module.has_location and module.origin else None

    def checked(self) -> SolverSpec:
        """Itself, once its file is found to define the class; none of its code runs."""
        if self.path is None:
            return self
        if not self.path.is_file():
            raise SolverError(f"no such file: {self.path}")
        try:
            tree = parsed(self.path)
        except NotPython as error:
            raise SolverError(f"{self.path}{error}") from None
        defined = set(bound_names(tree))
        if self.class_name not in defined and "*" not in defined:
            classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
            raise self.undefined(classes)
        return self

    def undefined(self, classes: list[str]) -> SolverError:
        """An error that names similar ones among the classes that are defined there."""
        hint = suggest(self.class_name, classes)
        return SolverError(f"{self.path or self.module} defines no class {self.class_name!r}{hint}")


def load_class(text: str, folder: str | Path | None = None, *, kind: str = "svm") -> type[Any]:
    """The class that a solver's name means. Runs the code of a user's file.

    The parameters are those of :func:`load_named`.
    """
    cls = load_named(text, folder, kind=kind)
    if not inspect.isclass(cls):
        raise SolverError(f"{text} is not a class")
    return cls


def load_named(text: str, folder: str | Path | None = None, *, kind: str = "svm") -> Any:
    """What a solver's name means, a class or not. Runs the code of a user's file.

    A relative file is looked for in ``folder``, by default the current one; a registry name in the
    registry of this kind of studies. SolverError if there is nothing, or importing it raises.
    """
    spec = SolverSpec.parse(text, folder).checked()
    if spec.registry_name is not None:
        names = solver_names(kind)
        if spec.registry_name not in names:
            hint = suggest(spec.registry_name, names)
            raise SolverError(f"unknown solver {spec.registry_name!r}{hint}")
        home = importlib.import_module(entries()[spec.registry_name].module)
        return getattr(home, spec.registry_name)
    path = spec.path
    try:
        if path is None:
            module = importlib.import_module(spec.module or "")
        else:
            module = sys.modules.get(module_name(path, "")) or import_file(path)
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything
        words = f"{path or spec.module}: importing it raised {first_line(error)}"
        if path is None and isinstance(error, ModuleNotFoundError):
            words = f"no module named {error.name!r} (for the solver {spec.module!r})"
        raise SolverError(words) from None
    named = getattr(module, spec.class_name, None)
    if named is None:
        raise spec.undefined([name for name, item in vars(module).items() if inspect.isclass(item)])
    return named


def load_kernel(description: Mapping[str, Any]) -> Kernel:
    """The kernel of a problem by its name and parameters. Runs the code of a user's file."""
    from ..solvers.kernels import CallableKernel, Kernel, kernel_of

    name = str(description["name"])
    if ":" not in name:
        return kernel_of(description)
    named = load_named(name)
    params = {key: value for key, value in description.items() if key != "name"}
    if inspect.isclass(named) and issubclass(named, Kernel):
        return named.of(params)
    if not inspect.isclass(named) and callable(named) and not params:
        return CallableKernel(named)
    raise SolverError(
        f"{name} is no kernel: give a class derived from marginbench.solvers.Kernel, or a function "
        "of two matrices of points, without kernel_params"
    )


def source_file(cls: Any) -> Path:
    """The file that defines a class or function."""
    return Path(inspect.getfile(cls)).resolve()


def shown_name(cls: Any, spec: SolverSpec) -> str:
    """The class as records name it: "marginbench:Class", "file.py:Class" or "module:Class"."""
    if spec.registry_name is not None:
        return f"marginbench:{cls.__name__}"
    if spec.path is not None:
        return f"{spec.path.name}:{spec.class_name}"
    return f"{cls.__module__}:{cls.__qualname__}"
