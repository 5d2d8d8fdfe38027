"""The command that says what a commit made worse."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...harness.errors import UserError
from ...harness.words import visible
from ..errors import ReportError
from .compare import AsJson, AsText, Html, show

if TYPE_CHECKING:
    from ..regressions.asv_files import Snapshot
    from ..regressions.repository import Commit

#: Of the command.
HELP = (
    "Compare the benchmarks of two commits of this checkout, value by value. asv measures what was "
    "not measured before. Exit code 1: something is worse beyond its bound; 2: cells fail that did "
    "not, or nothing could be measured."
)


def regressions(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="The commit to compare with. By default where HEAD's branch began, on the main "
            "branch its parent.",
            show_default=False,
        ),
    ] = "",
    head: Annotated[str, typer.Argument(metavar="HEAD", help="The commit to judge.")] = "HEAD",
    as_text: AsText = False,
    as_json: AsJson = False,
    html: Html = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Only read this folder of asv's results; nothing is run.",
            show_default=False,
        ),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REGEX",
            help="Only benchmarks whose names match (repeat); those with times are run in turns.",
        ),
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Only failures, evaluations, errors and suboptimality.")
    ] = False,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            help="An accepted change, such as evaluations=1.05, test_error=1pt, time=1.3 or "
            "memory=off (repeat, or separate by commas)."
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Measure also what was measured before.")
    ] = False,
    all_rows: Annotated[
        bool, typer.Option("--all", help="Print also the values without a change.")
    ] = False,
) -> None:
    if as_text and as_json:
        raise UserError("--text and --json are two forms of the same output; give one of them")
    if results is not None and (suite or short or again):
        raise UserError("--results runs nothing; leave out --suite, --short and --again")
    if suite and short:
        raise UserError("--suite and --short both choose benchmarks; give one of them")
    from ..regressions import annotations, running
    from ..regressions.gate import bounds_of, regressions
    from ..regressions.repository import Repository

    repository = Repository(Path.cwd())
    judged = repository.commit(head)
    against = repository.commit(base) if base else repository.base(judged)
    # Read first: a mistake in the file of known changes ends the command before it measures.
    accepted = annotations.between(repository, against.hash, judged.hash)
    if results is None:
        plan = running.plan_of(suite) if suite else running.SHORT if short else running.FULL
        measured = running.measured(repository, against, judged, plan, again=again, tell=_tell)
        pairs = [measured]
    else:
        pairs = _read(results, against, judged)
    changed = repository.changed and repository.commit("HEAD") == judged
    comparisons = []
    for before, after in pairs:
        # A benchmark without a value in the base would pass with any value in the head.
        for name in before.unmeasured:
            raise ReportError(
                f"{against.short}: asv got no value of {name}, so nothing of it can be compared; "
                "--again measures it again"
            )
        names = {name.rpartition(".")[2] for name in (*before.versions, *after.versions)}
        notes = ["Changes that are not committed were not measured."] if changed else []
        if len(pairs) > 1:
            lane = f"{before.lane.environment} on {before.lane.machine}"
            notes.append(f"The worst of {len(pairs)} environments: {lane}.")
        comparisons.append(
            regressions(
                before,
                after,
                (against, judged),
                annotations=accepted,
                bounds=bounds_of(bound or [], names),
                notes=notes,
            )
        )
    comparison = max(comparisons, key=lambda each: each.exit_code)
    show(comparison, html, as_json=as_json, all_rows=all_rows)


def _tell(line: str) -> None:
    # Whoever closed the error stream wants the verdict nevertheless.
    with contextlib.suppress(OSError):
        print(visible(line), file=sys.stderr, flush=True)


def _read(folder: Path, base: Commit, head: Commit) -> list[tuple[Snapshot, Snapshot]]:
    """The snapshots of both commits on each lane that has them."""
    from ..regressions.asv_files import read_results

    by_lane: dict[object, dict[str, Snapshot]] = {}
    for each in read_results(folder):
        by_lane.setdefault(each.lane, {})[each.commit] = each
    lanes = [each for each in by_lane.values() if base.hash in each and head.hash in each]
    if lanes:
        return [(each[base.hash], each[head.hash]) for each in lanes]
    commits = {commit for lane in by_lane.values() for commit in lane}
    missing = [each.short for each in (base, head) if each.hash not in commits]
    what = " and ".join(missing) or f"{base.short} and {head.short} on one machine"
    raise ReportError(f"{folder}: has no results of {what}; 'asv run' makes them")
