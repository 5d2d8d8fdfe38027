"""What planning must know of solvers from outside, and on which tasks they are run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...hashing import hash_files
from ...planning.fingerprint import COMMON_ROOMS, EVALUATION, project_code
from ...planning.preflight import SolverInfo, check_parameters
from ...study.model import SolverEntry, StudyBase
from ..svm import DEFAULT_TOL, Problem
from .commands import (
    Command,
    command_params,
    install_words,
    missing_program,
    parsed_command,
    programs,
    shown_name,
    summary_of,
)
from .templates import taken_apart
from .work import Estimator, OutsideWork, Program

#: What the task's problem is not.
ONE_VERSUS_ONE = "it trains one classifier for each pair of classes"


def program_info(entry: SolverEntry) -> SolverInfo:
    """What a program is, found out without running it.

    Raises
    ------
    StudyError
        If its command lines make no sense.
    """
    name, folder = taken_apart(entry.name)
    params = command_params(name, entry.params)
    command = parsed_command(params, folder, f"solver {entry.label!r}")
    files = project_code([*(f"solvers/{room}" for room in COMMON_ROOMS), EVALUATION]) | programs(
        command
    )
    missing = missing_program(command)
    solves = command.model == "libsvm"
    source_hash = hash_files(files)
    return SolverInfo(
        shown=shown_name(name, command),
        summary=summary_of(name, command),
        defaults=params,
        required=(),
        traits={
            "outside": "program",
            "supports_bias": True,
            "supports_no_bias": not solves,
            "supports_sparse": True,
            "scalarization": "C" if solves else None,
            "certificate": "dual" if solves else None,
            "instrumented": False,
            "decided": ("C", "gamma", "degree", "coef0", "kernel", "seed"),
            "unless": (),
            "missing": f"no program {missing!r} here; {install_words(name)}" if missing else "",
        },
        source_hash=source_hash,
        version=source_hash[:10],
        files=files,
    )


def check_outside(study: StudyBase, entry: SolverEntry, info: SolverInfo) -> SolverInfo:
    """Check the parameters that a study gives; what is known of the solver with these.

    Raises
    ------
    StudyError
        For a parameter that it does not have, or that the task decides.
    """
    if info.traits.get("any_parameter"):
        info = replace(info, defaults={**info.defaults, **dict.fromkeys(entry.params)})
    decided = [*info.traits["decided"], "random_state"]
    check_parameters(study, [entry], {entry.label: info}, "task", decided)
    return info


@dataclass(frozen=True)
class OutsidePlan:
    """How a solver from outside is run on a task.

    Attributes
    ----------
    work : OutsideWork
    other_problem : str
        How its problem differs from the task's, beyond the bias.
    """

    work: OutsideWork
    other_problem: str


def plan_outside(
    entry: SolverEntry,
    info: SolverInfo,
    problem: Problem,
    given: dict[str, Any],
    seed: int,
    *,
    several: bool,
) -> OutsidePlan:
    """What a worker does on a task.

    Parameters
    ----------
    entry : SolverEntry
    info : SolverInfo
    problem : Problem
        The task's, with a bias where the solver always fits one.
    given : dict
        Parameters that the task and the study set.
    seed : int
    several : bool
        Whether the task has more than two classes.
    """
    able = info.traits["certificate"] == "dual"
    changed = [name for name in info.traits["unless"] if given.get(name) is not None]
    fit: Estimator | Program
    if info.traits["outside"] == "program":
        fit = Program(_command(entry, given), seed)
    else:
        fit = Estimator(entry.name, given, seed)
    tol = {**info.defaults, **given}.get("tol")
    work = OutsideWork(
        problem,
        fit,
        solves=able and not several and not changed,
        tol=float(tol) if isinstance(tol, int | float) else DEFAULT_TOL,
    )
    if not able:
        return OutsidePlan(work, "")
    other = [ONE_VERSUS_ONE] * several + [f"it is given {name}" for name in changed]
    return OutsidePlan(work, " and ".join(other))


def refusal(entry: SolverEntry, info: SolverInfo, kernel: Mapping[str, Any], several: bool) -> str:
    """Why this solver cannot be run on a task with this kernel; empty if it can."""
    if info.traits["outside"] == "program":
        command = _command(entry, entry.params)
        if several and command.model and not command.predict:
            return f"{entry.label} has no params.predict, which several classes need"
        if several and command.output == "scores":
            return f"{entry.label} predicts scores, which do not tell several classes apart"
        why = command.lacks(kernel)
        return f"{entry.label} {why}" if why else ""
    kernels = info.traits["kernels"]
    if kernels and kernel["name"] not in kernels:
        return f"{entry.label} has no kernel {kernel['name']!r}"
    return ""


def _command(entry: SolverEntry, params: Mapping[str, Any]) -> Command:
    name, folder = taken_apart(entry.name)
    return parsed_command(command_params(name, params), folder, f"solver {entry.label!r}")
