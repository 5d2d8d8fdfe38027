"""Where the runs took place: software and machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from .. import formatting
from ..analysis import Analysis
from ..frames import records
from ..tables import Cell, Heading, Table
from . import Section

_LABELS = {
    "cores_logical": "logical cores",
    "dirty": "uncommitted changes",
    "memory_mb": "memory in MB",
    "blas": "BLAS",
}


class Environment(Section):
    """The settings of each environment, side by side where there are several."""

    anchor, title, place = "environment", "Environment", 80
    template = "outcomes.html"

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The table of settings, or that no record tells them."""
        if analysis.environments.empty:
            return {"words": "No record tells its environment.", "table": None}
        return {"words": "", "table": _table(analysis.environments)}


def _table(distinct: pd.DataFrame) -> Table:
    columns = [
        row["environment"] | {"threads per run": row["threads"], "runs at a time": row["jobs"]}
        for row in records(distinct)
    ]
    names = list(dict.fromkeys(name for column in columns for name in column))
    values = [[column.get(name, formatting.DASH) for column in columns] for name in names]
    return Table(
        "Environment",
        [
            Heading("Setting", term="setting"),
            *(
                Heading(formatting.plural(n, "run"), "reason", term="environment")
                for n in distinct["n"]
            ),
        ],
        [[Cell(_label(name)), *map(Cell, row)] for name, row in zip(names, values, strict=True)],
        style="settings",
        differing=frozenset(place for place, row in enumerate(values) if len(set(row)) > 1),
    )


def _label(name: str) -> str:
    """The name of a setting in words: "libraries.numpy" is "numpy"."""
    return _LABELS.get(name, name.removeprefix("libraries."))
