"""Names of a site's folders and pages: safe in any address and on any file system, and stable."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...solvers.registration import entries
from ..naming import slug


def numbered(bases: Sequence[str]) -> list[str]:
    """The names with a number after each that an earlier one has: "a", "a-2", "a-3"."""
    taken = set(bases)
    seen: set[str] = set()
    found = []
    for base in bases:
        name, number = base, 1
        while name in seen or (number > 1 and name in taken):
            number += 1
            name = f"{base}-{number}"
        seen.add(name)
        found.append(name)
    return found


@dataclass(frozen=True, order=True)
class SolverClass:
    """What a solver page is about.

    Attributes
    ----------
    registered : bool
        Whether it is one of marginbench's own, so that it can be imported and described.
    name : str
        Of a registered solver its name; of another what studies recorded: "file.py:Class".
    """

    registered: bool
    name: str

    @classmethod
    def recorded(cls, text: str, label: str) -> SolverClass:
        """The class of a study's solver.

        Parameters
        ----------
        text : str
            As the study describes it: "marginbench:SMO", "my_solver.py:MySolver"; early releases
            wrote the full module, or the name alone.
        label : str
            Stands for a class that is not known.
        """
        module, _, name = text.rpartition(":")
        own = module in ("", "marginbench") or module.startswith("marginbench.")
        if own and name in entries():
            return cls(True, name)
        return cls(False, text or label)

    @property
    def title(self) -> str:
        """The name of the class alone, if it has one."""
        name = self.name.rpartition(":")[2]
        return name if name.isidentifier() else self.name


def solver_slugs(classes: Sequence[SolverClass]) -> dict[SolverClass, str]:
    """The name of each solver's page.

    Registered solvers always have their own. Where another class would have that or the same as a
    third, a hash of its name follows.
    """
    bases = {known: slug(known.name, "solver") for known in classes}
    counts = Counter([*bases.values(), *(slug(name, "solver") for name in entries())])
    return {
        known: base
        if known.registered or counts[base] == 1
        else f"{base}-{hashlib.sha256(known.name.encode()).hexdigest()[:8]}"
        for known, base in bases.items()
    }
