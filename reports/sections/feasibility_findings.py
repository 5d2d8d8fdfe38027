"""What a study of feasibility methods found: who solved what, and who needed the least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ..analysis import Analysis
from ..described import CellTask
from ..formatting import plural
from ..frames import by_solver
from ..solved import TIES, solved
from ..statistics import certificates
from ..wording import Finding
from . import Section


class FeasibilityFindings(Section):
    """Which methods solved all instances, and which needed the fewest iterations on how many."""

    anchor, title, place = "findings", "Findings", 5
    template = "feasibility_findings.html"
    kinds = ("feasibility",)

    def applies(self, analysis: Analysis) -> bool:
        """Where generated problems were tried with more than one method."""
        return bool(analysis.ask(_findings))

    def data(self, analysis: Analysis) -> Mapping[str, Any]:
        """The findings, and what their words mean."""
        terms = (
            "Solved: with the certificate that the instance has, checked from scratch. Instances "
            "of all problems count alike; methods differ in what an iteration costs."
        )
        return {"findings": analysis.ask(_findings), "terms": terms}

    def terminal(self, analysis: Analysis) -> Iterable[RenderableType]:
        """The sentences."""
        for finding in analysis.ask(_findings):
            yield Text(finding.sentence)
        yield Text()


def _findings(analysis: Analysis) -> list[Finding]:
    cells = {cell.label for cell in analysis.tasks_of(CellTask)}
    runs = analysis.ask(solved).runs
    if not runs["task"].isin(cells).any() or len(analysis.study.solvers) < 2:
        return []
    return [_solved_finding(analysis, cells), *_fewest_finding(analysis, cells)]


def _solved_finding(analysis: Analysis, cells: set[str]) -> Finding:
    """Of how many instances that a method was to solve it found the certificate."""
    counts: dict[str, Counter[str]] = {}
    runs = analysis.ask(solved).runs
    for task, solver, group in by_solver(runs[runs["status"] != "skipped"]):
        if task in cells:
            found = counts.setdefault(solver, Counter())
            found.update(solved=int(group["solved"].sum()), runs=len(group))
    shares = {name: found["solved"] / found["runs"] for name, found in counts.items()}
    best = max(shares.values())
    words = {name: f"{name} ({n['solved']} of {n['runs']})" for name, n in counts.items()}
    order = sorted(shares, key=lambda name: -shares[name])
    others = "".join(f"; {words[name]}" for name in order if shares[name] < best)
    if not best:
        return Finding("Instances solved", "none by any method", others)
    return Finding(
        "Instances solved", "; ".join(words[name] for name in order if shares[name] == best), others
    )


def _fewest_finding(analysis: Analysis, cells: set[str]) -> list[Finding]:
    """Who needed the fewest iterations, over the instances of all problems."""
    totals: Counter[str] = Counter()
    n = 0
    for task in (task.label for task in analysis.study.tasks if task.label in cells):
        counts, n_solved = certificates.fewest_iterations(analysis.ask(solved).runs, task)
        totals.update(counts)
        n += n_solved
    if not totals:
        return []
    (first, most), *rest = totals.most_common()
    listed = "".join(f"; {name} on {count}" for name, count in rest)
    words = f"{first} on {most} of {plural(n, 'solved instance')}"
    shared = TIES if totals.total() > n else ""
    return [Finding("Fewest iterations", words, listed + shared)]
