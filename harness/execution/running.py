"""Running a study from Python or the command line: by name, by file, or as an object."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..planning.report import Preview, preview as preview_study
from ..results.objects import is_url, local_folder
from ..results.sync import synced
from ..study.model import StudyBase, StudyFile
from ..study.select import of_its_own, select
from ..study.toml import completed_study, load_study
from .cluster import Engine
from .local import check_jobs, one_worker
from .outcomes import RunSummary
from .progress import JsonProgress, PlainProgress, Progress, choose_progress
from .runner import run_study

#: What is run where no study is named.
_DEFAULT = "quickstart"


def run(
    study: str | Path | StudyBase | None = None,
    out: str | Path | None = None,
    *,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
    where: str | None = None,
    jobs: int = 1,
    retry_failed: bool = False,
    command: str = "",
    whole_command: str = "",
    quiet: bool = False,
    log_json: bool = False,
    engine: Engine | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> RunSummary:
    """Run a study and record every run; what is recorded already is not repeated.

    Several commands may run a study in one folder or store at the same time: they share the work.

    Parameters
    ----------
    study : str, Path or StudyBase, optional
        A study that ships with marginbench, a TOML file, or a study as an object. By default the
        quickstart; with other ``datasets`` than its own, a study of these alone, with a name of its
        own and with all defaults.
    out : str or Path, optional
        The results folder or the URL of one; ``results/NAME`` by default.
    datasets, solvers : sequence of str, optional
        Only these tasks and solvers, or known others in their place.
    seeds : int, optional
        Number of seeds.
    timeout : float, optional
        Seconds of solving that each run may take.
    where : str, optional
        Only runs for which this expression holds, such as ``C == 10 and solver != "SBP"``.
    jobs : int
        Runs at the same time. More than one disturbs the timings.
    retry_failed : bool
        Run again what did not go as planned.
    command : str
        The command line that runs this.
    whole_command : str
        The command line that runs the study without a selection, for the report.
    quiet : bool
        Show nothing while it runs.
    log_json : bool
        Write what happens to the error stream, one JSON object an event, instead of showing it.
    engine : Engine, optional
        Where to run: :func:`.cluster.chosen_engine` makes one; worker
        processes on this machine by default.
    meanwhile : callable
        Done while the first worker starts, as there is nothing else to do.

    Returns
    -------
    RunSummary
        How the runs ended, and ``results``, the folder; for a URL the mirror on this machine.

    Raises
    ------
    UserError
        If the study, a solver or the results folder is not usable.
    StorageError
        If a file or a store cannot be written to; what was recorded stays on this machine.
    InterruptedRunError
        If the user interrupts; what was recorded stays.
    """
    whole, chosen = _chosen(study, datasets, solvers, seeds, timeout, where)
    if study is None and whole.name != _DEFAULT:
        whole_command = command
    progress = Progress() if quiet else choose_progress(jobs)
    if log_json:
        progress = JsonProgress(jobs, sys.stderr)
    with _opened(_place(chosen, out), progress.say) as (results, exchange, store):
        summary = run_study(
            chosen,
            results,
            jobs=jobs,
            retry_failed=retry_failed,
            command=command,
            whole=whole,
            whole_command=whole_command,
            progress=progress,
            engine=engine,
            exchange=exchange,
            place=store,
            meanwhile=meanwhile,
        )
    return replace(summary, store=store)


@contextlib.contextmanager
def _opened(
    place: str | Path, say: Callable[[str], None]
) -> Iterator[tuple[Path, Callable[[], None] | None, str]]:
    """The results folder, what exchanges it with a store, and its URL; for a URL, its mirror."""
    if not is_url(place):
        yield Path(place), None, ""
        return
    with synced(str(place), say) as (results, exchange):
        yield results, exchange, str(place)


def preview(
    study: str | Path | StudyBase | None = None,
    out: str | Path | None = None,
    *,
    datasets: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
    seeds: int | None = None,
    timeout: float | None = None,
    where: str | None = None,
    jobs: int = 1,
    retry_failed: bool = False,
    quiet: bool = False,
) -> Preview:
    """Find out what :func:`run` would do with the same arguments; nothing is run or written.

    Parameters
    ----------
    study, out, datasets, solvers, seeds, timeout, where, jobs, retry_failed, quiet
        Those of :func:`run`.

    Returns
    -------
    Preview
        How many runs are recorded, how many are to do, and how long these may take.

    Raises
    ------
    UserError
        If the study or a solver is not usable.
    """
    _, chosen = _chosen(study, datasets, solvers, seeds, timeout, where)
    progress = Progress() if quiet else PlainProgress(jobs, sys.stderr)
    check_jobs(jobs)
    results = local_folder(_place(chosen, out), is_new=True)
    with one_worker() as worker:
        return preview_study(
            chosen, results, worker, progress.say, jobs=jobs, retry_failed=retry_failed
        )


def _chosen(
    study: str | Path | StudyBase | None,
    datasets: Sequence[str] | None,
    solvers: Sequence[str] | None,
    seeds: int | None,
    timeout: float | None,
    where: str | None,
) -> tuple[StudyBase, StudyBase]:
    """The whole study, and what is run of it."""
    whole = select(_loaded(_DEFAULT if study is None else study), timeout=timeout)
    own = {task.label for task in whole.tasks}
    tasks = select(whole, datasets=datasets).tasks
    if study is None and not own.issuperset(task.label for task in tasks):
        whole = of_its_own(whole, tasks, solvers)
        whole = select(whole, seeds=seeds, timeout=timeout)
        return whole, select(whole, where=where)
    return whole, select(whole, datasets=datasets, solvers=solvers, seeds=seeds, where=where)


def _loaded(study: str | Path | StudyBase) -> StudyBase:
    if isinstance(study, StudyBase):
        return study if study.was_read else completed_study(study, StudyFile("study"))
    return load_study(study)


def _place(study: StudyBase, out: str | Path | None) -> str | Path:
    """The results folder or its URL."""
    return Path("results") / study.name if out is None else out
