"""Studies of SVM solvers as a kind: what they ask, and what their runs are."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from importlib import metadata
from typing import Any

from ..errors import StudyError
from ..evaluation.svm import (
    DEFAULT_TOL,
    MAX_CONFIGURATIONS,
    EstimatorWork,
    FitWork,
    Fold,
    ReferenceWork,
    Search,
    StoppingRules,
    compare_with_reference,
    configurations,
    fill_in_gap,
    shown_kernel,
)
from ..hashing import canonical_json
from ..jobs import Job, Work
from ..results.svm import Record
from ..study.model import REFERENCE, SolverEntry, is_foreign, run_limits
from ..study.svm import Study, Task
from .fingerprint import kernel_code
from .plan import Configuration, Kind, Run, Seeded
from .preflight import DatasetInfo, Datasets, Facts, SolverInfo, parameter_mistakes

# Parameters that the task or the seed decides, the same for every solver; weights of classes would
# change the problem.
_DECIDED_BY_TASK = (
    *("kernel", "gamma", "degree", "coef0", "C", "fit_intercept", "random_state", "class_weight"),
)
# Traits of solvers that study.json tells.
_DESCRIBED_TRAITS = ("scalarization", "certificate", "instrumented", "deterministic")
# Columns of the record that tell of the data.
_DATASET_COLUMNS = ("fingerprint", "n_train", "n_test", "n_features", "n_classes")
# Part of a worker's memory that the reference optimum may fill with kernel rows.
_CACHE_SHARE = 0.4


class _Configuration(Configuration):
    """A solver on a task."""

    def __init__(self, study: Study, facts: Facts, task: Task, entry: SolverEntry) -> None:
        super().__init__(study, facts, task, entry)
        info, self.references = self.info, facts.references
        self.outside = "outside" in info.traits
        self.foreign |= is_foreign(task.kernel) or self.outside
        self.several = self.dataset is not None and self.dataset.n_classes > 2
        # As the task says, if the solver can.
        supported = info.traits["supports_bias" if task.fit_intercept else "supports_no_bias"]
        bias = task.fit_intercept == supported
        fingerprint = "" if self.dataset is None else self.dataset.fingerprint
        self.problem = replace(task.problem(0), fit_intercept=bias, fingerprint=fingerprint)
        self.explicit = self._explicit_parameters()
        self.search = self._search()
        if self.search is not None:
            # What is tuned has no value of its own; tuning ends itself unless something hangs.
            self.explicit |= self.search.configurations[0]
            seconds = 2.0 * self.search.solving_s + study.budget.evaluation_timeout
            self.limits = replace(
                self.limits,
                seconds={**self.limits.seconds, "tune": seconds},
                total=self.limits.total + seconds,
            )
        if self.dataset is not None:
            self.skipped = KIND.skip_reason(study, task, entry, info, self.dataset)
        changes = self._changes() if self.outside else ""
        self.solves = self.outside and not (changes or self.several) and info.traits["solves"]
        differs = "it fits a bias, which the task has not" if bias else ""
        if task.fit_intercept:
            differs = "" if bias else "it fits no bias, which the task has"
        self.other_problem = "" if self.skipped else "; ".join(filter(None, [differs, changes]))
        budget = study.budget
        self._problem_parts = {
            "kernel": shown_kernel(self.problem.kernel),
            "C": self.problem.C,
            "fit_intercept": self.problem.fit_intercept,
            "checkpoint_factor": budget.checkpoint_factor,
            "epoch_checkpoints": budget.epoch_checkpoints,
            **{name: value for name, value in budget.rules.items() if name != "stop"},
        }
        if self.problem.kernel_code:
            self._problem_parts["kernel_code"] = self.problem.kernel_code
        if self.other_problem:
            self._problem_parts["other_problem"] = self.other_problem
        tuned = dict.fromkeys(task.tune.keys() - {"C"})
        self._columns = {
            "dataset": task.dataset,
            "dataset_params": canonical_json(task.dataset_params),
            "kernel": canonical_json({**shown_kernel(self.problem.kernel), **tuned}),
            "C": None if "C" in task.tune else task.C,
            "fit_intercept": task.fit_intercept,
            "other_problem": self.other_problem,
            "judged_by": "predictions" if self.outside and not self.solves else "model",
        }

    def _explicit_parameters(self) -> dict[str, Any]:
        """The parameters that the task and the study set, of those that the class has."""
        info, entry = self.info, _with_first_values(self.entry)
        values: dict[str, Any] = {
            **self.task.kernel_parameters,
            "C": self.task.C,
            "fit_intercept": self.problem.fit_intercept,
            "random_state": None,
        }
        if self.outside:
            decided = set(info.traits["decided"])
            if "random_state" in info.accepted and info.defaults.get("random_state") is None:
                decided.add("random_state")
            return {name: values[name] for name in values if name in decided} | entry.params
        if info.traits["scalarization"] == "S":
            # What C is to the other forms of the problem.
            values["nu"] = REFERENCE
        values |= entry.params
        return {name: value for name, value in values.items() if name in info.accepted}

    def _search(self) -> Search | None:
        """The search of a run, but for its seed; None if nothing is tuned."""
        accepted = self.info.traits["decided"] if self.outside else self.info.accepted
        values = {name: tried for name, tried in self.task.tune.items() if name in accepted}
        values |= self.entry.tune
        if not values:
            return None
        number = math.prod(len(tried) for tried in values.values())
        if number > MAX_CONFIGURATIONS:
            raise StudyError(
                f"{self.entry.label!r} on {self.task.label!r} has {number} configurations to "
                f"choose from; give fewer values in tune, at most {MAX_CONFIGURATIONS} combinations"
            )
        tuning, budget = self.study.tuning, self.study.budget
        return Search(
            configurations=configurations(values),
            method=tuning.method,
            resource=tuning.resource,
            validation=tuning.validation or Search.validation,
            folds=tuning.folds,
            seconds=tuning.seconds or math.inf,
            evaluations=tuning.kernel_evals or math.inf,
            trial_seconds=budget.timeout,
            trial_evaluations=budget.kernel_evals or math.inf,
        )

    def _changes(self) -> str:
        """What an estimator from outside solves instead of the task's problem."""
        traits = self.info.traits
        changes = [traits["several"]] * bool(self.several and traits["several"])
        tried = [self.explicit, *(() if self.search is None else self.search.configurations)]
        changes += [
            f"it is given {name}"
            for name in traits["unless"]
            if any(values.get(name) is not None for values in tried)
        ]
        return " and ".join(changes)

    def seeded(self, seed: int) -> Seeded:
        task, info, failure = self.task, self.info, self.failure
        fold = None if task.folds is None else Fold.of_seed(task.folds, seed)
        values = {} if self.dataset is None else vars(self.dataset)
        data = {name: values[name] for name in _DATASET_COLUMNS if values}
        if data and fold is not None:
            n_train, n_test = fold.sizes(data["n_train"])
            of_fold = fold.fingerprint(data["fingerprint"])
            data |= {"fingerprint": of_fold, "n_train": n_train, "n_test": n_test}
        optimum = self.references[_optimum_of(task, seed)]
        reference = None if isinstance(optimum, str) else optimum
        fixed = dict(self.explicit)
        if "random_state" in fixed:
            fixed["random_state"] = seed
        for name in [name for name, value in fixed.items() if value == REFERENCE]:
            nu = None if reference is None else reference.nu
            fixed[name] = None if nu is None else _to_ten_digits(nu)
            if nu is None and not failure and not self.several:
                why = optimum if isinstance(optimum, str) else "its w is zero"
                failure = (
                    f"{name} is to be that of the reference optimum, but there is none: {why}; "
                    f"give {name} a number in params"
                )
        params = {**dict.fromkeys(info.required), **info.defaults, **fixed}
        parts = {"fingerprint": data.get("fingerprint"), **self._problem_parts}
        budget, minimises = self.study.budget, info.traits["scalarization"] is not None
        rules = StoppingRules(budget.kernel_evals or math.inf, budget.iterations or math.inf)
        # Only an objective that has an optimum can be good enough.
        if budget.stop is not None and reference is not None and minimises:
            parts["stop_primal"] = _to_ten_digits(reference.primal) * (
                1.0 + budget.stop.suboptimality
            )
            rules = replace(rules, primal=parts["stop_primal"])
        search = self.search
        if search is not None:
            params |= dict.fromkeys(search.configurations[0])
            search = replace(search, seed=(self.study.tuning.seed, seed), params=params)
            # The whole protocol: the timeout of a trial decides what is chosen. JSON has no
            # infinity; a limit that is not set is left out.
            protocol = {name: each for name, each in asdict(search).items() if each != math.inf}
            parts["tuning"] = {k: v for k, v in protocol.items() if k != "params"}

        def work() -> Work:
            fitted = (replace(self.problem, fold=fold), self.entry.name, fixed)
            if not self.outside:
                moments = (budget.checkpoint_factor, budget.epoch_checkpoints)
                return FitWork(*fitted, *moments, rules=rules, search=search)
            given = params.get("tol")
            tol = float(given) if isinstance(given, int | float) else DEFAULT_TOL
            decided = tuple(info.traits["decided"])
            return EstimatorWork(*fitted, seed, self.solves, tol, search=search, decided=decided)

        return Seeded(seed, params, parts, self._columns | data, work, failure, reference)


def _package_traits(cls: type[Any]) -> dict[str, Any]:
    """The version of the package that a solver needs, for its keys, or that it is missing."""
    from ...solvers.registration import missing_package

    if not cls.requires:
        return {}
    if missing_package(cls):
        words = f"{cls.__name__} needs the package {cls.requires}, which is not installed"
        return {"missing": f"{words}: pip install 'marginbench[peers]'"}
    return {"packages": {cls.requires: metadata.version(cls.requires)}}


def _is_deterministic(cls: type[Any], *, foreign: bool) -> bool:
    """Whether every seed gives the same model.

    A class from outside must say so itself: what it inherits may not hold for what it adds.
    """
    if not foreign:
        return bool(cls.deterministic) or "random_state" not in inspect.signature(cls).parameters
    says = next(base for base in cls.__mro__ if "deterministic" in vars(base))
    is_own = says is cls or not says.__module__.startswith("marginbench.")
    return is_own and bool(cls.deterministic)


def _optimum_of(task: Task, seed: int) -> str:
    """What a reference optimum is called; with folds each seed has its own."""
    return task.label if task.folds is None else f"{task.label}, seed {seed}"


def _to_ten_digits(value: float) -> float:
    """Rounded far below the certified gap: the same after the cache was emptied."""
    return float(f"{value:.10g}")


def _with_first_values(entry: SolverEntry) -> SolverEntry:
    """A solver with the first of the values that it is to choose from."""
    first = {name: tried[0] for name, tried in entry.tune.items()}
    return entry.model_copy(update={"params": {**entry.params, **first}})


class SVMKind(Kind):
    """Tasks x solvers x seeds, judged against a certified optimum."""

    name = "svm"
    study = Study
    record = Record
    configuration = _Configuration

    def traits(self, cls: type[Any], name: str) -> dict[str, Any]:
        from ...solvers import Solver
        from ..evaluation import estimators

        if not inspect.isclass(cls) or not issubclass(cls, Solver):
            estimators.check_maker(cls, name)
            return estimators.traits_of(cls)
        return {
            "supports_bias": bool(cls.supports_bias),
            "supports_no_bias": bool(cls.supports_no_bias),
            "supports_sparse": bool(cls.supports_sparse),
            "scalarization": cls.scalarization,
            "certificate": cls.certificate,
            "instrumented": bool(cls.instrumented),
            "deterministic": _is_deterministic(cls, foreign=is_foreign(name)),
            **_package_traits(cls),
        }

    def mistakes(self, study: Study, solvers: Mapping[str, SolverInfo]) -> Iterator[str]:
        for entry in study.solvers:
            info, configured = solvers[entry.label], _with_first_values(entry)
            decided, supplied = list(_DECIDED_BY_TASK), ["nu"]
            if "outside" in info.traits:
                decided, supplied = [*info.traits["decided"], "random_state"], []
            if info.traits.get("any_parameter"):
                info = replace(info, defaults={**info.defaults, **dict.fromkeys(configured.params)})
            yield from parameter_mistakes(study, configured, info, "task", decided, supplied)

    def references(self, study: Study, datasets: Datasets) -> Iterator[tuple[str, Job | str]]:
        limits, timeout = run_limits(study.budget), study.reference.timeout
        seconds = {**limits.seconds, "solve": timeout}
        limits = replace(limits, seconds=seconds, total=limits.total + timeout)
        for task in self.completed(study, datasets).task:
            info, seeds = datasets[task.label], [0]
            if task.folds is not None:
                seeds = sorted({s for entry in study.solver for s in study.seeds_of(task, entry)})
            for seed in seeds:
                about = _optimum_of(task, seed)
                reason = info if isinstance(info, str) else task.why_no_reference
                if reason or isinstance(info, str):
                    yield about, reason
                    continue
                problem = replace(task.problem(seed), fingerprint=info.fingerprint)
                cache_mb = _CACHE_SHARE * limits.memory
                work = ReferenceWork(problem, study.reference.tol, cache_mb)
                tag = f"computing the reference optimum of {about}"
                foreign = is_foreign(task.kernel) or task.runs_code
                yield about, Job(tag, work, limits, foreign=foreign)

    def skip_reason(
        self,
        study: Study,
        task: Task,
        entry: SolverEntry,
        info: SolverInfo,
        dataset: DatasetInfo | None = None,
    ) -> str:
        """Why this solver cannot be run on this task by its own account."""
        traits, label, kernel = info.traits, entry.label, task.kernel
        n_classes = 2 if dataset is None else dataset.n_classes
        outside = "outside" in traits
        counted = [f"the budget's {name}" for name in study.budget.rules if name != "stop"]
        if (task.tune or entry.tune) and study.tuning.kernel_evals is not None:
            counted.append("kernel_evals of [tuning]")
        missing = sorted(set(task.kernel_parameters) - info.accepted - {"kernel"})
        has_bias = "supports_bias" if task.fit_intercept else "supports_no_bias"
        same_problem = not entry.other_problem and not (outside and n_classes > 2)
        if counted and not traits["instrumented"]:
            return f"{label} does not count, so {counted[0]} cannot limit it"
        if n_classes > 2 and traits["scalarization"] == "S" and "nu" not in entry.params:
            return (
                f"{label} takes nu from the reference optimum, and each of the {n_classes} classes "
                "has another one; give nu a number in params"
            )
        if same_problem and not traits[has_bias]:
            why = "has no unregularised bias, which the task asks for"
            why = why if task.fit_intercept else "always fits a bias, which the task has not"
            return (
                f"{label} {why}; set fit_intercept = {str(not task.fit_intercept).lower()} there, "
                "or other_problem = true for the solver"
            )
        if outside:
            known = not traits["kernels"] or kernel in traits["kernels"]
            return "" if known else f"{label} has no kernel {kernel!r}"
        if dataset is not None and dataset.sparse and not traits["supports_sparse"]:
            return f"{label} does not take sparse data"
        if kernel != "linear" and "kernel" not in info.accepted:
            return f"{label} takes no kernel; the task has {kernel!r}"
        return f"{label} does not take the kernel's {', '.join(missing)}" if missing else ""

    def completed(self, study: Study, datasets: Datasets) -> Study:
        """The study with the kernel widths that were computed from the data."""
        tasks = []
        for task in study.task:
            info = datasets[task.label]
            gamma = None if isinstance(info, str) else info.default_gamma
            tasks.append(task.with_kernel(gamma, kernel_code(task.kernel)))
        return study.with_tasks(tasks)

    def about(self, study: Study) -> dict[str, Any]:
        return {
            "seeds": list(range(study.seeds)),
            "reference": study.reference.model_dump(),
            "tuning": study.tuning.model_dump(exclude_none=True),
        }

    def about_task(self, task: Task) -> dict[str, Any]:
        return {
            "kernel": shown_kernel(task.kernel_description),
            "C": task.problem(0).C,
            "reference": not task.why_no_reference,
        }

    def about_solver(self, entry: SolverEntry, traits: Mapping[str, Any]) -> dict[str, Any]:
        by_model = traits["certificate"] or "outside" not in traits
        told = {name: traits.get(name, False) for name in _DESCRIBED_TRAITS}
        return told | {"tune": entry.tune, "judged_by": "model" if by_model else "predictions"}

    def complete(self, record: Record, run: Run) -> None:
        fill_in_gap(record)
        if run.reference is not None:
            minimises = run.traits["scalarization"] is not None and not record.other_problem
            compare_with_reference(record, run.reference, minimises=minimises)

    def is_current(self, record: Record, run: Run) -> bool:
        return run.reference is None or record.reference_hash == run.reference.hash

    def headline(self, record: Record) -> Iterator[str]:
        if record.wall_s is not None:
            yield f"{record.wall_s:.2f} s"
        if record.test_error is not None:
            yield f"test error {100 * record.test_error:.2f} %"
        if record.suboptimality is not None:
            yield f"suboptimality {record.suboptimality:.1e}"
        if record.n_support is not None:
            yield f"{record.n_support} support vectors"


KIND = SVMKind()
