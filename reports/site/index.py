"""The overview: the studies by kind, the solvers, and further pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import wording
from ..formatting import plural
from ..templating import environment, page
from .history import SiteHistory
from .naming import SolverClass
from .studies import StudyEntry, runs_words

_TITLE = "Benchmark results"
_KINDS: Mapping[str, str] = {"svm": "Studies of SVM solvers", "feasibility": "Feasibility methods"}


@dataclass(frozen=True)
class _Key:
    """A solver of a study: its label, its page, and its colour in the study's figure."""

    label: str
    slug: str
    color: int | None


@dataclass(frozen=True)
class _Card:
    """A study in the overview."""

    study: StudyEntry
    facts: Sequence[tuple[str, str]]
    solvers: Sequence[_Key]


@dataclass(frozen=True)
class _Group:
    """The studies of a kind."""

    anchor: str
    title: str
    cards: Sequence[_Card]


def index_page(
    studies: Sequence[StudyEntry],
    slugs: Mapping[SolverClass, str],
    further: Mapping[str, str],
    title: str,
    history: SiteHistory | None = None,
) -> bytes:
    """The page that a visitor sees first.

    Parameters
    ----------
    studies : sequence of StudyEntry
        In the order in which they are shown, apart from their kinds.
    slugs : mapping of SolverClass to str
        The names of the solver pages.
    further : mapping of str to str
        Folders of further pages by title.
    title : str
        The heading; empty for the usual one.
    history : SiteHistory, optional
        What was measured commit by commit.
    """
    kinds = sorted({study.kind for study in studies}, key=_place_of_kind)
    groups = [
        _Group(
            anchor=f"studies-{kind}",
            title=_title_of_kind(kind) if len(kinds) > 1 else "Studies",
            cards=[_card(study, slugs) for study in studies if study.kind == kind],
        )
        for kind in kinds
    ]
    values = {
        "title": title or _TITLE,
        "groups": groups,
        "solvers": [
            (solver.title, slug, _uses(solver, studies)) for solver, slug in _sorted(slugs)
        ],
        "history": history,
        "further": [(name, f"{folder}/index.html") for name, folder in further.items()],
        "counts": _counts(studies, slugs) if studies else _pages(further),
    }
    return page(environment().get_template("site_index.html"), **values).encode()


def _counts(studies: Sequence[StudyEntry], slugs: Mapping[SolverClass, str]) -> list[str]:
    return [
        f"{len(studies)} studies" if len(studies) != 1 else "1 study",
        plural(len(slugs), "solver"),
        plural(sum(dict(study.counts)["planned"] for study in studies), "run"),
    ]


def _pages(further: Mapping[str, str]) -> list[str]:
    """What a site without studies counts."""
    return [plural(len(further), "page")] if further else []


def _place_of_kind(kind: str) -> tuple[int, str]:
    known = list(_KINDS)
    return (known.index(kind) if kind in known else len(known), kind)


def _title_of_kind(kind: str) -> str:
    return _KINDS.get(kind, f"{wording.capitalised(kind)} studies")


def _card(study: StudyEntry, slugs: Mapping[SolverClass, str]) -> _Card:
    facts = [
        ("Runs", runs_words(study)),
        ("Date", study.period),
        ("Machine", study.machine),
        ("marginbench", study.version),
    ]
    colors = study.figures[0].colors if study.figures else {}
    keys = [
        _Key(label, slugs[item.solver], colors.get(label))
        for item in study.solvers
        for label in item.labels
    ]
    return _Card(study, [fact for fact in facts if fact[1]], keys)


def _uses(solver: SolverClass, studies: Sequence[StudyEntry]) -> list[tuple[str, str]]:
    """Title and folder of each study with a solver."""
    return [
        (study.title, study.folder)
        for study in studies
        if any(item.solver == solver for item in study.solvers)
    ]


def _sorted(slugs: Mapping[SolverClass, str]) -> list[tuple[SolverClass, str]]:
    return sorted(slugs.items(), key=lambda item: (item[0].title.casefold(), item[1]))
