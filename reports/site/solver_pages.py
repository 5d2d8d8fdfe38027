"""A page for each class of solvers: what it is, where it comes from, and where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ..templating import environment, page
from .docstrings import bibtex, documentation
from .figures import SiteFigure
from .naming import SolverClass
from .studies import StudyEntry, StudySolver


@dataclass(frozen=True)
class _Shown:
    """A figure with the curves of one class brought out."""

    caption: str
    address: str
    svg: Markup
    style: str
    note: str


@dataclass(frozen=True)
class _Use:
    """A study with the class in it."""

    study: StudyEntry
    solver: StudySolver
    figures: Sequence[_Shown]


def solver_page(
    solver: SolverClass,
    studies: Iterable[StudyEntry],
    slugs: Mapping[SolverClass, str],
    history: str = "",
) -> bytes:
    """The page of a class of solvers.

    Only registered solvers are imported and described from their code. Of all others the page has
    what studies recorded.

    Parameters
    ----------
    solver : SolverClass
    studies : iterable of StudyEntry
        Those of the site; the ones without this class are passed over.
    slugs : mapping of SolverClass to str
        The names of all solver pages.
    history : str
        The page of its regressions, from the folder of the site; empty for none.
    """
    uses = [
        _Use(study, mine, _figures(study, mine))
        for study in studies
        for mine in study.solvers
        if mine.solver == solver
    ]
    summaries = [item.summary for use in uses for item in use.solver.configurations]
    values: dict[str, Any] = {
        "solver": solver,
        "summary": next(filter(None, summaries), ""),
        "documentation": _documentation(solver, slugs),
        "bibtex": bibtex(solver.name) if solver.registered else [],
        "uses": uses,
        "history": history and f"../{history}",
    }
    return page(environment().get_template("site_solver.html"), **values).encode()


def _documentation(solver: SolverClass, slugs: Mapping[SolverClass, str]) -> Markup | None:
    if not solver.registered:
        return None
    others = {
        known.name: f"{slug}.html"
        for known, slug in slugs.items()
        if known.registered and known != solver
    }
    return documentation(solver.name, others)


def _figures(study: StudyEntry, solver: StudySolver) -> list[_Shown]:
    """For each task the first figure that shows the class."""
    first: dict[str, SiteFigure] = {}
    for figure in study.figures:
        if figure.shown.intersection(solver.labels):
            first.setdefault(figure.task, figure)
    return [
        _Shown(
            caption=figure.caption,
            address=f"../{study.folder}/index.html#{figure.anchor}",
            svg=figure.svg,
            style=figure.only(solver.labels),
            note=", ".join(figure.alike(solver.labels)),
        )
        for figure in first.values()
    ]
