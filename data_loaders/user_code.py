"""Files of code that users name: their import."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def module_name(path: Path, prefix: str) -> str:
    """The name of a file's module, different from those of all other files."""
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    return f"_marginbench_{prefix}{path.stem}_{digest}"


def import_file(path: Path, prefix: str = "") -> ModuleType:
    """Run a file that ends in ".py" as a module; raises whatever its code raises."""
    if str(path.parent) not in sys.path:
        # As for a script: the modules beside the file come first.
        sys.path.insert(0, str(path.parent))
    name = module_name(path, prefix)
    description: Any = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(description)
    try:
        description.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
