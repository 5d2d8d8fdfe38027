"""The page of a history: what moved, when, and every commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from ...harness.environment import version
from ..comparison.report import change_words
from ..formatting import say, slugs
from ..templating import environment, page, page_script, script_source
from .history import History

#: The scripts of the page: tables sort and filter.
_SCRIPTS = ("00_page", "10_hash", "20_tables")


@dataclass(frozen=True)
class Surroundings:
    """What the page of a history belongs to; addresses are relative to its folder.

    Attributes
    ----------
    site : str
        The overview of the site; empty for none.
    solvers : mapping of str to str
        Pages of the site by names of solvers.
    commit_url : str
        What a hash is put behind to show the commit on the web; empty for none.
    """

    site: str = ""
    solvers: Mapping[str, str] = field(default_factory=dict)
    commit_url: str = ""


def anchors(history: History) -> dict[str, str]:
    """The place of each solver of which a value moved, on the page of the history."""
    return slugs(dict.fromkeys(each.key.cell.group for each in history.moved))


def render_history(lanes: Sequence[History], around: Surroundings | None = None) -> str:
    """The page of a history: what moved, when, and every commit."""
    script = page_script(*_SCRIPTS)
    return page(
        environment().get_template("regressions_index.html"),
        script=Markup(script),
        script_source=script_source(script),
        version=version(),
        lanes=[(each, anchors(each) if each is lanes[0] else {}, _marks(each)) for each in lanes],
        around=around or Surroundings(),
        say=say,
        change_words=change_words,
    )


def _marks(history: History) -> list[Counter[str]]:
    """What came with each commit: how many values are better, worse or known, and cells fail."""
    found: list[Counter[str]] = [Counter() for _ in history.commits]
    for each in history.moved:
        for i, step in enumerate(each.steps):
            found[step.place][each.kind(i)] += 1
    for places in history.failures.values():
        for place in places:
            found[place]["failed"] += 1
    return found
