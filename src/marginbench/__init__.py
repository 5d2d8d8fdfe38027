"""marginbench: a benchmark suite and comparison harness for large-margin solvers.

>>> from marginbench import SMO, load
>>> digits = load("digits")
>>> model = SMO(gamma=0.1, C=10.0).fit(digits.X_train, digits.y_train)
>>> model.counters_.kernel_evals > 0
True

Everything is imported when it is first asked for: ``import marginbench`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

# Not from typing: a command imports this before it can end tidily when it is interrupted.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marginbench.data_loaders import (
        DataError as DataError,
        Dataset as Dataset,
        Source as Source,
        import_data as import_data,
        lap as lap,
        ldfp as ldfp,
        load as load,
    )
    from marginbench.harness.errors import (
        InterruptedRunError as InterruptedRunError,
        RecordError as RecordError,
        StudyError as StudyError,
        UserError as UserError,
    )
    from marginbench.harness.execution.runner import RunSummary as RunSummary
    from marginbench.harness.results.journal import parse_record as parse_record
    from marginbench.harness.study.feasibility import FeasibilityStudy as FeasibilityStudy
    from marginbench.harness.study.model import Budget as Budget, SolverEntry as SolverEntry
    from marginbench.harness.study.svm import Study as Study, Task as Task, Tuning as Tuning
    from marginbench.harness.study.toml import load_study as load_study
    from marginbench.reports import report as report
    from marginbench.reports.comparison.result import Comparison as Comparison
    from marginbench.reports.comparison.studies import compare as compare
    from marginbench.reports.exports import export as export
    from marginbench.reports.notebook import (
        StudyResults as StudyResults,
        load_results as load_results,
        run as run,
    )
    from marginbench.reports.site import PublishedSite as PublishedSite, publish as publish
    from marginbench.solvers import *  # noqa: F403

#: Where the public names are defined; all others are those of marginbench.solvers.
_HOMES = {
    "DataError": "data_loaders",
    "Dataset": "data_loaders",
    "Source": "data_loaders",
    "import_data": "data_loaders",
    "lap": "data_loaders",
    "ldfp": "data_loaders",
    "load": "data_loaders",
    "InterruptedRunError": "harness.errors",
    "RecordError": "harness.errors",
    "StudyError": "harness.errors",
    "UserError": "harness.errors",
    "FeasibilityStudy": "harness.study.feasibility",
    "RunSummary": "harness.execution.runner",
    "parse_record": "harness.results.journal",
    "load_study": "harness.study.toml",
    "Budget": "harness.study.model",
    "SolverEntry": "harness.study.model",
    "Study": "harness.study.svm",
    "Task": "harness.study.svm",
    "Tuning": "harness.study.svm",
    "report": "reports",
    "Comparison": "reports.comparison.result",
    "compare": "reports.comparison.studies",
    "PublishedSite": "reports.site",
    "publish": "reports.site",
    "export": "reports.exports",
    "StudyResults": "reports.notebook",
    "load_results": "reports.notebook",
    "run": "reports.notebook",
}
_PACKAGES = frozenset({"data_loaders", "solvers", "harness", "reports", "studies"})


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name == "__version__":
        return import_module(f"{__name__}.harness.environment").version()
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, 'solvers')}")
    if name not in _HOMES and name not in home.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(home, name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, *import_module(f"{__name__}.solvers").__all__])
