"""What feasibility methods need against kappa, where generated problems differ in it."""

from __future__ import annotations

import pandas as pd

from ..analysis import Analysis
from ..described import CellTask
from ..drawing.figures import Against, draw_medians
from ..solved import solved
from . import Panels, PanelView

_FEWEST = 3
_MEASURES = {
    "cpu_s": "Median CPU seconds",
    "n_iter": "Median iterations",
    "matvecs": "Median products with A or its transpose",
}
_KAPPA = Against("κ", lambda kappa: f"at κ = {kappa:g}", linear=True)


class AgainstKappa(Panels):
    """CPU seconds, iterations and products, each against kappa."""

    kinds = ("feasibility",)
    place = 10
    scope = "study"

    def views(self, analysis: Analysis, task: str) -> list[PanelView]:
        """Three panels where there are at least three values of kappa."""
        kappas = {cell.label: cell.kappa for cell in analysis.tasks_of(CellTask)}
        if len(set(kappas.values())) < _FEWEST:
            return []
        table = analysis.ask(solved).table
        cells = table[table["task"].isin(kappas) & (table["n"] > 0)]
        cells = cells.assign(x=cells["task"].map(kappas)).sort_values("x", kind="stable")
        return [
            view
            for name, title in _MEASURES.items()
            for view in _view(analysis, cells, name, title)
        ]

    def marks(self, analysis: Analysis, task: str) -> str:
        """What lines and bands are."""
        return "Medians; bands from the least to the largest value."


def _view(analysis: Analysis, cells: pd.DataFrame, name: str, title: str) -> list[PanelView]:
    mine = cells[cells["measure"] == name]
    drawing = draw_medians(mine, analysis.measures[name], _KAPPA, analysis.styles)
    return [] if drawing is None else [PanelView(name, f"{title} against κ", drawing)]
