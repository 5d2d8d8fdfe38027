"""What pages other than its own say of a study: read from its results once, then they can go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ...harness.results.measures import Measure
from .. import wording
from ..analysis import Analysis
from ..described import Solver
from ..formatting import plural
from ..frames import of_task, records
from ..sections.findings import Findings, sentences
from ..solved import fewest_sentence, solved
from ..statistics import integrity
from ..tables import NONE, Cell, Heading, Table, measure_cell
from .figures import SiteFigure, figures_of
from .naming import SolverClass

# Columns of where a solver stands, of those that its study has.
_STANDING = ("test_error", "suboptimality", "evaluations", "cpu_s", "n_iter", "matvecs")
_DAMAGED = "damaged"
# What the medians of these columns are of, and what is bold.
_BASIS = (
    "Medians over the runs that ended as planned, with their range; below a test error its 95 % "
    "interval. Bold: the best of the study on its task, or not to be told from it."
)
_BASES = {
    "feasibility": "Medians over the solved instances, with their range. Bold: the least median "
    "among the methods that solved all instances."
}


@dataclass(frozen=True)
class Configuration:
    """A solver as a study configured it.

    Attributes
    ----------
    label, parameters, summary : str
    facts : mapping of str to str
        By heading.
    versions : tuple of str
        Of its code.
    """

    label: str
    parameters: str
    summary: str
    facts: Mapping[str, str]
    versions: tuple[str, ...]


@dataclass(frozen=True)
class StudySolver:
    """A class of solvers in a study.

    Attributes
    ----------
    solver : SolverClass
    configurations : tuple of Configuration
    standing : Table
        Where it stands on each task.
    basis : str
        What the values of this table are.
    """

    solver: SolverClass
    configurations: tuple[Configuration, ...]
    standing: Table
    basis: str

    @property
    def labels(self) -> list[str]:
        """Those of its configurations."""
        return [item.label for item in self.configurations]


@dataclass(frozen=True)
class StudyEntry:
    """A study of the site.

    Attributes
    ----------
    slug : str
        Its folder in ``studies/``.
    kind, name, title, description : str
    period, finding, machine, version : str
        When it was run, what it found first, where, and with which release and commit.
    counts : tuple of (str, int)
        Runs by how they ended, in words; those that count none are left out.
    solvers : tuple of StudySolver
    figures : tuple of SiteFigure
    """

    slug: str
    kind: str
    name: str
    title: str
    description: str
    period: str
    finding: str
    machine: str
    version: str
    counts: tuple[tuple[str, int], ...]
    solvers: tuple[StudySolver, ...]
    figures: tuple[SiteFigure, ...]

    @property
    def folder(self) -> str:
        """Its folder from the site's root."""
        return f"studies/{self.slug}"


def study_entry(analysis: Analysis, slug: str) -> StudyEntry:
    """All that the site's other pages say of a study.

    Parameters
    ----------
    analysis : Analysis
    slug : str
        The name of its folder.
    """
    study = analysis.study
    return StudyEntry(
        slug=slug,
        kind=study.kind,
        name=study.name,
        title=study.title or study.name,
        description=study.description,
        period=integrity.period(analysis.runs),
        finding=_finding(analysis),
        machine=integrity.machine(analysis.environments),
        version=_version(analysis),
        counts=_counts(analysis),
        solvers=tuple(_solvers(analysis)),
        figures=tuple(figures_of(analysis, slug)),
    )


def told_apart(studies: Sequence[StudyEntry]) -> list[StudyEntry]:
    """The studies sorted by title; those that have the same one are followed by their folder."""
    titles = Counter(study.title for study in studies)
    named = [
        replace(study, title=f"{study.title} ({study.slug})") if titles[study.title] > 1 else study
        for study in studies
    ]
    return sorted(named, key=lambda study: (study.title.casefold(), study.slug))


def classes_of(solvers: Sequence[Solver]) -> dict[SolverClass, list[Solver]]:
    """The configurations of each class, in the order of the study."""
    found: dict[SolverClass, list[Solver]] = {}
    for solver in solvers:
        found.setdefault(SolverClass.recorded(solver.class_, solver.label), []).append(solver)
    return found


def damaged_records(analysis: Analysis) -> list[str]:
    """What is wrong with records that cannot be read, a line each."""
    runs = analysis.runs
    return [str(reason) for reason in runs.loc[runs["status"] == _DAMAGED, "reason"]]


def _finding(analysis: Analysis) -> str:
    """The first sentence of what was found; empty where there is nothing to compare."""
    if analysis.kind in Findings.kinds:
        found = sentences(analysis) if Findings().applies(analysis) else []
        return found[0] if found else ""
    task = analysis.study.tasks[0].label if analysis.study.tasks else ""
    return f"{task}: {fewest_sentence(analysis, task)}" if task else ""


def _version(analysis: Analysis) -> str:
    commits = ", ".join(commit[:10] for commit in integrity.commits(analysis.environments))
    return " ".join(filter(None, (analysis.study.marginbench, commits and f"({commits})")))


def _counts(analysis: Analysis) -> tuple[tuple[str, int], ...]:
    counts = analysis.counts
    named = {"planned": "planned", "ok": "ended as planned", "failed": "failed"}
    named |= {"missing": "missing", "skipped": "skipped"}
    found = [(words, int(counts[f"n_{name}"].sum())) for name, words in named.items()]
    # That none failed is worth saying; that none is missing or skipped is not.
    return tuple(item for item in found if item[1] or item[0] not in ("missing", "skipped"))


def _solvers(analysis: Analysis) -> list[StudySolver]:
    versions = integrity.versions(analysis.runs)
    basis = _BASES.get(analysis.kind, _BASIS)
    found = []
    for solver, configured in classes_of(analysis.study.solvers).items():
        configurations = tuple(
            Configuration(
                label=item.label,
                parameters=wording.parameters(item.params) or "defaults",
                summary=item.summary,
                facts={name: fact for name, fact in item.facts.items() if fact},
                versions=tuple(versions.get(item.label, ())),
            )
            for item in configured
        )
        labels = [item.label for item in configured]
        standing = _standing(analysis, labels)
        found.append(StudySolver(solver, configurations, standing, basis))
    return found


def _standing(analysis: Analysis, labels: list[str]) -> Table:
    """Where the configurations of a class stand: a row for each task and configuration."""
    ended, table, measures = _results(analysis)
    measures = {name: measures[name] for name in _STANDING if name in measures}
    cells = {
        (row["task"], row["solver"], row["measure"]): measure_cell(row, measures[row["measure"]])
        for row in records(table[table["measure"].isin(measures) & table["solver"].isin(labels)])
    }
    rows = []
    for task in analysis.study.tasks:
        counts = of_task(analysis.counts, task.label)
        for row in records(counts[counts["solver"].isin(labels)]):
            label = row["solver"]
            rows.append(
                [
                    Cell(task.label),
                    *([Cell(label)] if len(labels) > 1 else []),
                    _runs(row, ended.count((task.label, label))),
                    *(cells.get((task.label, label, name), NONE) for name in measures),
                ]
            )
    headings = [
        Heading(wording.capitalised(analysis.words.task)),
        *([Heading("Configuration", "wide")] if len(labels) > 1 else []),
        Heading(_ended_words(analysis), "number"),
        *(Heading(measure.title, "number") for measure in measures.values()),
    ]
    return Table(f"{', '.join(labels)} in {analysis.study.name}", headings, rows)


def _ended_words(analysis: Analysis) -> str:
    return "Solved" if analysis.kind == "feasibility" else "Runs"


def _results(
    analysis: Analysis,
) -> tuple[list[tuple[str, str]], pd.DataFrame, Mapping[str, Measure]]:
    """Of the table of results of a study's kind: whose runs are behind it, the table, measures."""
    if analysis.kind == "feasibility":
        found = analysis.ask(solved)
        runs = found.runs[found.runs["solved"]]
        return list(zip(runs["task"], runs["solver"], strict=True)), found.table, found.costs
    runs = analysis.runs[analysis.runs["ok"]]
    return list(zip(runs["task"], runs["solver"], strict=True)), analysis.table, analysis.shown


def _runs(row: Mapping[str, Any], n: int) -> Cell:
    """How many runs are behind the medians, and why others are not."""
    others = {"failed": row["n_failed"], "missing": row["n_missing"], "skipped": row["n_skipped"]}
    note = ", ".join(f"{count} {word}" for word, count in others.items() if count)
    incomplete = row["n_failed"] + row["n_missing"] > 0
    return Cell(f"{n} / {row['n_planned']}", note=note, incomplete=incomplete)


def runs_words(entry: StudyEntry) -> str:
    """The runs of a study in words: "56 runs, none failed"."""
    counts = dict(entry.counts)
    failed = f"{counts['failed']} failed" if counts["failed"] else "none failed"
    others = [f"{counts[word]} {word}" for word in ("missing", "skipped") if word in counts]
    return ", ".join([plural(counts["planned"], "run"), failed, *others])
