"""What the headings of tables mean: the glossary of a page, one entry for each term.

Those of measures follow from their declaration: words, unit, which way is better, and why a value
may be absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..harness.results.measures import Format, Measure
from . import analysis, formatting
from .analysis import once
from .described import KindWords, capitalised
from .measures import UNITS
from .results import Results
from .statistics import summary


@dataclass(frozen=True)
class Definition:
    """An entry of the glossary.

    Attributes
    ----------
    term : str
        What headings call it by, see :class:`marginbench.reports.tables.Heading`.
    title : str
    words : str
        What it means.
    facts : sequence of str
        Unit, which way is better, and why a value may be absent: a sentence each.
    """

    term: str
    title: str
    words: str
    facts: tuple[str, ...] = ()


_BETTER = MappingProxyType({"lower": "Lower is better.", "higher": "Higher is better."})
_COSTS: frozenset[Format] = frozenset({"count", "seconds"})
_ABSENT: Mapping[str, str] = MappingProxyType(
    {
        "not instrumented": "the solver does not count its evaluations",
        "not minimised": "the solver does not minimise the objective of the task",
        "no target": "nothing that the target could be derived from, or compared with, is known",
        summary.NO_MODEL: "the solver returns predictions and no model",
        summary.OTHER_PROBLEM: "the solver solves another problem than the task's",
    }
)


@once
def glossary(results: Results) -> dict[str, Definition]:
    """The definitions of a page's terms by name."""
    of_kind = _FEASIBILITY if results.kind == "feasibility" else _SVM
    words = _of_words(analysis.words(results))
    entries = [*words, *of_kind, *_of_measures(results), *_COMMON]
    return {entry.term: entry for entry in entries}


def _of_measures(results: Results) -> Iterator[Definition]:
    if results.kind == "feasibility":
        found = analysis.solved(results)
        # Of solved instances the costs are ranked: all methods return the same certificate.
        shown = {name: replace(item, better="lower") for name, item in found.costs.items()}
        table = found.table
    else:
        shown, table = analysis.shown(results), analysis.table(results)
    absent = table[table["absent"] != ""].groupby("measure", sort=False)["absent"].unique()
    for name, measure in shown.items():
        yield Definition(
            name,
            capitalised(measure.words),
            measure.meaning or f"{capitalised(measure.words)} of a run.",
            tuple(_facts(measure, absent.get(name, ()))),
        )


def _facts(measure: Measure, absent: Iterable[str]) -> Iterator[str]:
    yield UNITS[measure.format][1]
    if measure.better:
        yield _BETTER[measure.better]
    else:
        spent = ": solvers spend it on different results" if measure.format in _COSTS else ""
        yield f"Not ranked{spent}."
    for word in absent:
        if word in _ABSENT:
            yield f"“{word}”: {_ABSENT[word]}."
    if "to the target" in measure.words:
        yield f"“{formatting.NEVER}”: the run does not stay there to its end."


def _entries(described: Mapping[str, tuple[str, str]]) -> tuple[Definition, ...]:
    return tuple(Definition(term, title, words) for term, (title, words) in described.items())


_COMMON = _entries(
    {
        "status": (
            "Status",
            "How runs ended. As planned: “converged”, by the stopping rule of the solver; "
            "“budget”, at a limit on its work; “no_separator”, with a proof that there is none. "
            "Otherwise: “timeout” and “memory”, stopped at a limit; “crashed”, “failed” and "
            "“diverged”; “wrong”, with a result that a check refutes; “missing”, without a "
            "record. “Skipped” runs were not tried.",
        ),
        "runs_of": ("Runs without a result", "How many of the planned runs the row is about."),
        "setting": ("Setting", "A property of the machine or the software."),
        "environment": ("Runs of an environment", "How many runs took place with these settings."),
        "summary": ("Summary", "What the code says of itself."),
        "reason": ("Reason", "What the solver or the harness said when the run ended."),
        "parameters": ("Parameters", "What the study sets; the others have their defaults."),
        "certificate": (
            "Certificate",
            "What the solver itself proves on its result: a bound from the dual problem, or none.",
        ),
        "class": ("Class", "The solver's class, as module and name."),
        "version": (
            "Version",
            "The hash of the code that ran, with the commit that last changed it if known.",
        ),
    }
)
_SVM = _entries(
    {
        "runs": ("Runs", "Those that ended as planned, of those planned."),
        "sizes": ("Sizes n", "The numbers of training points that the solver has medians for."),
        "slope": (
            "Slope",
            "The exponent b in a·n^b, n the number of training points, with its 95 % interval.",
        ),
        "after": (
            "After",
            "A budget: so many evaluations or CPU seconds of each run. n is the number of training "
            "points, n² the size of the kernel matrix.",
        ),
        "dataset": ("Dataset", "The name of the data, with the parameters that choose a part."),
        "n_train": ("Train", "The number of training points."),
        "n_test": ("Test", "The number of test points."),
        "n_features": ("Features", "The number of features of a point."),
        "n_classes": ("Classes", "More than two are each trained against the rest."),
        "problem": (
            "Problem",
            "The kernel with its parameters, C, the weight of the summed loss, and whether the "
            "model has an unregularised bias.",
        ),
        "reference": (
            "Reference optimum",
            "The least objective ½‖w‖² + C Σ hinge loss of the task, computed once and frozen.",
        ),
        "reference_gap": (
            "Certified relative gap",
            "How far the reference can be from the true optimum, relative to it: from its duality "
            "gap, recomputed from scratch.",
        ),
        "reference_error": ("Its test error", "The test error of the reference optimum."),
        "fingerprint": ("Fingerprint", "The SHA-256 of the data's content, its first 12 digits."),
        "minimises": (
            "Minimises the objective",
            "Whether the method minimises the objective of the task; others reach a low test "
            "error by another rule, and have no suboptimality.",
        ),
        "instrumented": (
            "Counts evaluations",
            "Whether the kernel evaluations of the solver are counted. Other libraries do not.",
        ),
        "judged_by": (
            "Judged by",
            "What the scores are computed from where it is not the model: what it predicts.",
        ),
    }
)
_FEASIBILITY = _entries(
    {
        "runs": ("Runs", "Those that ended as planned, of those planned."),
        "solved": ("Solved", "Instances with the certificate that they have, of those planned."),
        "proven": (
            "Proven inseparable",
            "Instances of which it is proven that some convex combination of the columns is "
            "exactly 0, so that nothing separates.",
        ),
        "wall_mean": ("Wall time, mean", "Mean instead of median, as in published tables."),
        "published": ("Published mean", "A number from the study's source, on its machine."),
        "gamma": ("Width", "The kernel's width, chosen on validation points."),
        "stage_error": ("Error after iterations", "The test error after so many iterations."),
        "ended": ("At the end", "Why the runs ended."),
        "takes": ("Takes", "Whether the method works on columns or on a kernel matrix."),
    }
)


def _of_words(words: KindWords) -> Iterator[Definition]:
    """What tasks, solvers and seeds are, in the words of the kind of studies."""
    generated = words.task == "problem"
    meanings = {
        "task": (
            words.task,
            "Instances of one size and kind, generated from their number."
            if generated
            else "Data, a kernel and C to train on, with a reference optimum where it has one.",
        ),
        "solver": (words.solver, f"A configuration of a {words.solver} of the study."),
        "seed": (
            f"{words.seed}s",
            "The numbers that instances are generated from."
            if generated
            else "The numbers that fix the random choices of runs.",
        ),
    }
    for term, (title, meaning) in meanings.items():
        yield Definition(term, capitalised(title), meaning)
