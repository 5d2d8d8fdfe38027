"""The overview of a site: a card for each study, the regressions, and further pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from .. import formatting
from ..analysis import Analysis
from ..drawing.axes import padded, set_log_axis
from ..drawing.canvas import FONT, INK, PALETTE, Drawing, drawing, new_axes
from ..formatting import plural
from ..frames import of_task, records
from ..solved import fewest_sentence, solved
from ..statistics import integrity
from ..templating import environment, page
from ..view import Figure
from ..views import sections
from ..views.findings import findings
from .history import SiteHistory

_KINDS: Mapping[str, str] = {"svm": "Studies of SVM solvers", "feasibility": "Feasibility methods"}


@dataclass(frozen=True)
class StudyEntry:
    """What the overview says of a study.

    Attributes
    ----------
    slug : str
        Its folder in ``studies/``.
    kind, name, title, description : str
    finding : str
        What it found first; empty where there is nothing to compare.
    facts : tuple of (str, str)
        Runs, dates, machine and version, by heading.
    counts : tuple of (str, int)
        Runs by how they ended, in words; those that count none are left out.
    solvers : tuple of (str, int or None)
        Labels, and the place of their colour in the figure; None: grey.
    figure : tuple of (Markup, str, str) or None
        The first figure of its page, with caption and anchor.
    """

    slug: str
    kind: str
    name: str
    title: str
    description: str
    finding: str
    facts: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, int], ...]
    solvers: tuple[tuple[str, int | None], ...]
    figure: tuple[Markup, str, str] | None

    @property
    def folder(self) -> str:
        """Its folder from the site's root."""
        return f"studies/{self.slug}"


def study_entry(analysis: Analysis, slug: str) -> StudyEntry:
    """All that the overview says of a study, whose folder has this name."""
    study, counts = analysis.study, _counts(analysis)
    commits = ", ".join(commit[:10] for commit in integrity.commits(analysis.environments))
    facts = {
        "Runs": _runs_words(dict(counts)),
        "Date": integrity.period(analysis.runs),
        "Machine": integrity.machine(analysis.environments),
        "marginbench": " ".join(filter(None, (study.marginbench, commits and f"({commits})"))),
    }
    places = {light: place for place, (light, _) in enumerate(PALETTE)}
    return StudyEntry(
        slug=slug,
        kind=study.kind,
        name=study.name,
        title=study.title or study.name,
        description=study.description,
        finding=_finding(analysis),
        facts=tuple(item for item in facts.items() if item[1]),
        counts=counts,
        solvers=tuple((name, places.get(look.color)) for name, look in analysis.styles.items()),
        figure=_figure(analysis, f"figure-{slug}"),
    )


def told_apart(studies: Sequence[StudyEntry]) -> list[StudyEntry]:
    """The studies sorted by title; those that have the same one are followed by their folder."""
    titles = Counter(study.title for study in studies)
    named = [
        replace(study, title=f"{study.title} ({study.slug})") if titles[study.title] > 1 else study
        for study in studies
    ]
    return sorted(named, key=lambda study: (study.title.casefold(), study.slug))


def index_page(
    studies: Sequence[StudyEntry],
    further: Mapping[str, str],
    title: str,
    history: SiteHistory | None = None,
) -> bytes:
    """The page that a visitor sees first.

    Parameters
    ----------
    studies : sequence of StudyEntry
        In the order in which they are shown, apart from their kinds.
    further : mapping of str to str
        Folders of further pages by title.
    title : str
        The heading; empty for the usual one.
    history : SiteHistory, optional
        What was measured commit by commit.
    """
    kinds = [kind for kind in _KINDS if kind in {study.kind for study in studies}]
    groups = [
        (
            f"studies-{kind}",
            _KINDS[kind] if len(kinds) > 1 else "Studies",
            [study for study in studies if study.kind == kind],
        )
        for kind in kinds
    ]
    planned = sum(dict(study.counts)["planned"] for study in studies)
    number = f"{len(studies)} studies" if len(studies) != 1 else "1 study"
    values = {
        "title": title or "Benchmark results",
        "groups": groups,
        "history": history,
        "further": [(name, f"{folder}/index.html") for name, folder in further.items()],
        "counts": [number, plural(planned, "run")] if studies else [],
    }
    return page(environment().get_template("site_index.html"), **values).encode()


def _counts(analysis: Analysis) -> tuple[tuple[str, int], ...]:
    named = {"planned": "planned", "ok": "ended as planned", "failed": "failed"}
    named |= {"missing": "missing", "skipped": "skipped"}
    counts = analysis.counts
    found = [(words, int(counts[f"n_{name}"].sum())) for name, words in named.items()]
    # That none failed is worth saying; that none is missing or skipped is not.
    return tuple(item for item in found if item[1] or item[0] not in ("missing", "skipped"))


def _runs_words(counts: Mapping[str, int]) -> str:
    """The runs of a study in words: "56 runs, none failed"."""
    failed = f"{counts['failed']} failed" if counts["failed"] else "none failed"
    others = [f"{counts[word]} {word}" for word in ("missing", "skipped") if word in counts]
    return ", ".join([plural(counts["planned"], "run"), failed, *others])


def _finding(analysis: Analysis) -> str:
    """The first sentence of what was found; empty where there is nothing to compare."""
    if analysis.kind == "svm":
        return next((found.sentence for found in analysis.ask(findings)), "")
    task = analysis.study.tasks[0].label if analysis.study.tasks else ""
    return f"{task}: {fewest_sentence(analysis, task)}" if task else ""


def _figure(analysis: Analysis, prefix: str) -> tuple[Markup, str, str] | None:
    """The first figure of a task, else of the study; its caption and its anchor."""
    of_tasks = [each for each in analysis.ask(sections) if each.anchor.startswith("results-")]
    of_study = [each for each in analysis.ask(sections) if each.anchor == "figures"]
    for section in (*of_tasks, *of_study):
        for view in section.views:
            if isinstance(view, Figure) and view.drawing is not None:
                task = "" if section in of_study else f"{section.title}: "
                return view.drawing.svg(prefix), f"{task}{view.title}", view.name
    drawn = draw_overview(analysis)
    if drawn is None:
        return None
    return drawn.svg(prefix), drawn.title, f"results-{next(iter(analysis.slugs.values()), '')}"


def draw_overview(analysis: Analysis) -> Drawing | None:
    """The median iterations of each method on each problem, a line of markers for a problem.

    For studies whose problems differ in nothing that a figure could be drawn against; None if
    nothing was solved, or the study is of another kind.
    """
    if analysis.kind != "feasibility":
        return None
    found = analysis.ask(solved)
    table = found.table[(found.table["measure"] == "n_iter") & (found.table["median"] > 0)]
    if table.empty:
        return None
    measure = found.costs["n_iter"]
    tasks = [task.label for task in analysis.study.tasks]
    axes = new_axes()
    set_log_axis(axes, "x", *padded(table["median"].to_numpy(), 0.05, 0.05), "count")
    axes.set_ylim(len(tasks) - 0.5, -0.7)
    axes.set_xlabel(f"median {measure.words}")
    axes.set_yticks(range(len(tasks)), [""] * len(tasks))
    sentences = ["The horizontal axis is logarithmic."]
    for place, task in enumerate(tasks):
        axes.text(
            0.0, place - 0.14, task, transform=axes.get_yaxis_transform(), fontsize=FONT, color=INK
        )
        for row in records(of_task(table, task)):
            style = analysis.styles[row["solver"]]
            axes.plot([row["median"]], [place], ls="", marker=style.marker, ms=8, color=style.color)
            value = formatting.say(measure, row["median"])
            sentences.append(f"{row['solver']} on {task}: {value}.")
    title = f"Median {measure.words} on each {analysis.words.task}"
    return drawing(axes, title, " ".join(sentences), table[["task", "solver", "median"]])
