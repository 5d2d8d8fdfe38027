"""The solvers of a study, as it configured them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import wording
from ..analysis import Analysis
from ..described import Solver
from ..tables import Cell, Heading, Table
from . import Part, Section

_TERMS = {
    "Summary": "summary",
    "Parameters": "parameters",
    "Minimises the objective": "minimises",
    "Certificate": "certificate",
    "Counts evaluations": "instrumented",
    "Judged by": "judged_by",
    "Takes": "takes",
    "Class": "class",
    "Version": "version",
}


class Solvers(Section):
    """Summary, parameters, traits and class of each solver."""

    anchor, place = "solvers", 70
    template = "table.html"

    def parts(self, analysis: Analysis) -> Iterable[Part]:
        """One, under the word of the study's kind for its solvers."""
        title = wording.capitalised(f"{analysis.words.solver}s")
        return [Part(self.anchor, title, self.data(analysis))]

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The table; columns in which no solver has anything are left out."""
        word = wording.capitalised(analysis.words.solver)
        solvers = [
            _described(solver) | {"Version": Cell(_versions(analysis, solver.label), code=True)}
            for solver in analysis.study.solvers
        ]
        names = list(dict.fromkeys(name for solver in solvers for name in solver))
        shown = [
            name for name in names if any(name in item and item[name].value for item in solvers)
        ]
        headings = [
            Heading(
                name, "wide" if name in ("Summary", "Parameters") else "", term=_TERMS.get(name, "")
            )
            for name in shown
        ]
        rows = [
            [Cell(solver.label), *(item.get(name, Cell("")) for name in shown)]
            for solver, item in zip(analysis.study.solvers, solvers, strict=True)
        ]
        return {
            "table": Table(f"{word}s", [Heading(word, term="solver"), *headings], rows, cards=True)
        }


def _versions(analysis: Analysis, label: str) -> str:
    """The versions of a solver's code, each with its commit where that is known."""
    known = analysis.runs[analysis.runs["solver"] == label]["version"]
    return ", ".join(dict.fromkeys(version for version in known if version))


def _described(solver: Solver) -> dict[str, Cell]:
    """The cells of a solver by heading."""
    return {
        "Summary": Cell(solver.summary),
        "Parameters": Cell(wording.parameters(solver.params) or "defaults"),
        **{name: Cell(fact) for name, fact in solver.facts.items()},
        "Class": Cell(solver.class_, code=True),
    }
