"""What feasibility methods need against kappa, where generated problems differ in it."""

from __future__ import annotations

from ..analysis import Analysis
from ..described import CellTask
from ..drawing.figures import Against, draw_medians
from ..solved import solved
from ..view import Figure

_FEWEST = 3
_MEASURES = {
    "cpu_s": "Median CPU seconds",
    "n_iter": "Median iterations",
    "matvecs": "Median products with A or its transpose",
}
_KAPPA = Against("κ", lambda kappa: f"at κ = {kappa:g}", linear=True)


def kappa_figures(analysis: Analysis, task: str) -> tuple[list[Figure], str]:
    """CPU seconds, iterations and products where there are at least three values of kappa."""
    kappas = {cell.label: cell.kappa for cell in analysis.tasks_of(CellTask)}
    if len(set(kappas.values())) < _FEWEST:
        return [], ""
    table = analysis.ask(solved).table
    cells = table[table["task"].isin(kappas) & (table["n"] > 0)]
    cells = cells.assign(x=cells["task"].map(kappas)).sort_values("x", kind="stable")
    figures = []
    for name, title in _MEASURES.items():
        mine = cells[cells["measure"] == name]
        drawing = draw_medians(mine, analysis.measures[name], _KAPPA, analysis.styles)
        figures += [] if drawing is None else [Figure(name, f"{title} against κ", drawing)]
    return figures, "Medians; bands from the least to the largest value."
