"""The pages of the site that follow from the code: one for each solver, and the API reference.

docs/conf.py writes them to docs/solvers/ and docs/api/ when the site is built; git ignores both.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import marginbench
from marginbench.solvers import Solver
from marginbench.solvers.bibliography import cited, papers
from marginbench.solvers.registration import entries

FAMILIES = {
    "smo": "Exact kernel SVMs: SMO",
    "sbp": "The stochastic batch perceptron",
    "stochastic": "Stochastic kernel methods and perceptrons",
    "budget": "Training on a budget",
    "linear": "Linear SVMs",
    "bundle": "Bundle methods",
    "approximate": "Approximate kernels",
    "squared": "Squared loss",
    "cuts": "Cutting planes",
    "feasibility": "Feasibility methods",
    "peers": "Peers from other libraries",
}
#: The pages of the API reference, and what each lists. Solvers have pages of their own.
API = {
    "Runs and results": (
        *("run", "RunSummary", "report", "load_results", "StudyResults", "compare", "Comparison"),
        *("export", "publish", "PublishedSite", "parse_record"),
    ),
    "Studies": (
        *("Study", "Task", "SolverEntry", "Budget", "Tuning", "FeasibilityStudy", "load_study"),
    ),
    "Data": ("load", "import_data", "Dataset", "Source", "ldfp", "lap"),
    "Writing a solver": (
        *("Solver", "WeightedSolver", "hyperparameters", "KernelParameters"),
        *("CachedKernelParameters", "SoftMarginParameters", "SeedParameters", "SolverParameters"),
        *("Problem", "Solution", "Monitor", "KernelOracle", "Counters", "register", "registry"),
        *("load_solver", "OneVsRest", "Progress", "WarmStartParameters"),
    ),
    "Other formats": ("to_svc", "write_libsvm", "read_libsvm"),
    "Kernels": (
        *("Kernel", "RBF", "Laplacian", "Linear", "Polynomial", "Precomputed", "CallableKernel"),
        *("register_kernel", "RandomFourierMap"),
    ),
    "Models": (
        *("Model", "KernelExpansion", "BudgetExpansion", "FourierExpansion", "LinearModel"),
        *("VotedExpansion", "OneVsRestModel", "StructuredExpansion"),
    ),
    "Risk minimisation": (
        *("minimize_risk", "BundleResult", "BundleTrace", "Loss", "PointwiseLoss", "Hinge"),
        *("SquaredHinge", "Logistic", "LeastSquares", "EpsilonInsensitive", "Quantile", "Novelty"),
        *("Multiclass", "ROCArea", "F1", "PrecisionAtK", "Regularizer", "L1", "L2", "Legendre"),
        *("Entropy", "SimplexEntropy"),
    ),
    "Structured outputs": (
        *("StructuredProblem", "MultiClass", "LinearChain", "TwoClasses", "Violations"),
    ),
    "Feasibility": (
        *("FeasibilityProblem", "FeasibilityResult", "FeasibilityCounters", "check_certificate"),
        *("Verdict", "Orthant", "SecondOrder", "PositiveSemidefinite"),
    ),
    "Errors": ("UserError", "StudyError", "DataError", "RecordError", "InterruptedRunError"),
}
#: What is listed of solvers that do not derive from Solver.
_METHODS = ("solve", "fit", "predict")


def version() -> str:
    """The version of the package."""
    return marginbench.__version__


def solvers() -> dict[str, list[str]]:
    """The solvers that have a page, by family."""
    by_family: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for name, entry in entries().items():
        by_family[entry.module.split(".")[2]].append(name)
    by_family["bundle"].append("BundleRegressor")
    by_family["cuts"].append("StructuredSVM")
    by_family["feasibility"].append("MPCFP")
    return by_family


def summary_of(cls: type[Any]) -> str:
    """The first line of a class's documentation, without references to others."""
    first = inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]
    return bars_escaped(re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"``\1``", first))


def bars_escaped(line: str) -> str:
    """A line of a docstring whose bars, as in |x|, are not reStructuredText's substitutions."""
    literals = re.split(r"(``.*?``|^\s*\|\s)", line)
    return "".join(
        part.replace("|", "\\|") if place % 2 == 0 else part for place, part in enumerate(literals)
    )


def traits_of(cls: type[Any]) -> Iterator[tuple[str, str]]:
    """What a solver takes and gives, in words."""
    if not issubclass(cls, Solver):
        return
    yield "Kernels", "yes" if "kernel" in inspect.signature(cls).parameters else "linear only"
    bias = [w for w, yes in (("without", cls.supports_no_bias), ("with", cls.supports_bias)) if yes]
    yield "Bias", " or ".join(bias)
    yield "Draws at random", "no" if cls.deterministic else "yes"
    doc = inspect.getdoc(cls) or ""
    if cls.certificate == "dual":
        yield "Certificate", "a duality gap"
    elif re.search(r"^certificate_ :", doc, re.MULTILINE):
        yield "Certificate", "a bound, ``certificate_``"
    elif re.search(r"^result_ : FeasibilityResult", doc, re.MULTILINE):
        yield "Certificate", "a separator, or a proof that none has a margin, in ``result_``"
    else:
        yield "Certificate", "none"
    if cls.requires:
        yield "Needs", "``pip install 'marginbench[peers]'``"


def titled(title: str, mark: str = "=") -> Iterator[str]:
    """The lines of a heading."""
    yield from (title, mark * len(title), "")


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines within a directive."""
    yield from (f"   {line}" if line else "" for line in lines)


def solver_page(name: str, words: dict[str, Any]) -> Iterator[str]:
    """The lines of the page of a solver."""
    cls, own = getattr(marginbench, name), words[name]
    yield from titled(name)
    yield from (summary_of(cls), "")
    yield from (".. math::", "", f"   {words['problems'][own['problem']]}", "")
    traits = list(traits_of(cls))
    if traits:
        yield from (
            ".. list-table::",
            "   :stub-columns: 1",
            "   :widths: auto",
            "   :align: left",
            "",
        )
        for trait, value in traits:
            yield from (f"   * - {trait}", f"     - {value}")
        yield ""
    for heading, key in (("When to use it", "use"), ("When not to", "avoid")):
        yield from (f"**{heading}.** " + re.sub(r"`([^`]+)`", r"``\1``", own[key]), "")
    yield from titled("Reference", "-")
    yield from (f".. autoclass:: marginbench.{name}", "")
    if issubclass(cls, Solver):
        yield from ("The methods are those of :class:`~marginbench.Solver`.", "")
    else:
        own_methods = [method for method in _METHODS if hasattr(cls, method)]
        yield from (f"   .. automethod:: {method}\n" for method in own_methods)
    entries_of = [papers()[label] for label in cited(cls.__doc__)]
    yield from titled("BibTeX", "-")
    yield from (".. code-block:: bibtex", "", *indented("\n\n".join(entries_of).splitlines()), "")


def solver_index() -> Iterator[str]:
    """The lines of the list of solvers."""
    yield from titled("All solvers")
    yield from (
        "All solvers of an SVM problem are scikit-learn estimators, for two classes or more. ",
        "Choosing one: :doc:`/solvers`.",
        "",
    )
    for family, names in solvers().items():
        yield from titled(FAMILIES[family], "-")
        yield from (".. list-table::", "   :widths: 25 75", "")
        for name in names:
            yield f"   * - :doc:`{name}`"
            yield f"     - {summary_of(getattr(marginbench, name))}"
        yield ""
        yield from (".. toctree::", "   :hidden:", "", *(f"   {name}" for name in names), "")


def api_page(title: str, names: tuple[str, ...]) -> Iterator[str]:
    """The lines of a page of the API reference."""
    yield from titled(title)
    yield from (".. currentmodule:: marginbench", "")
    for name in names:
        yield from titled(name, "-")
        if not inspect.isclass(getattr(marginbench, name)):
            yield from (f".. autofunction:: {name}", "")
            continue
        yield from (f".. autoclass:: {name}", "   :members:", "")


def api_index() -> Iterator[str]:
    """The lines of the list of public names."""
    yield from titled("API reference")
    yield from (
        "Every public name is imported from ``marginbench``, when it is first used. The",
        "estimators and feasibility methods stand under :doc:`/solvers/index`.",
        "",
    )
    for title, names in API.items():
        yield from titled(title, "-")
        yield from (".. list-table::", "   :widths: 30 70", "")
        for name in names:
            role = "class" if inspect.isclass(getattr(marginbench, name)) else "func"
            yield f"   * - :{role}:`~marginbench.{name}`"
            yield f"     - {summary_of(getattr(marginbench, name))}"
        yield ""
    pages = (f"   {slug(title)}" for title in API)
    yield from (".. toctree::", "   :hidden:", "", *pages)


def slug(title: str) -> str:
    """The name of a page's file."""
    return title.lower().replace(" ", "-")


def write(folder: Path) -> None:
    """Write the pages below the folder of the documentation; unchanged ones are left alone.

    Raises
    ------
    ValueError
        If a public name, or what a solver's page needs, is missing.
    """
    words = tomllib.loads((folder / "solvers.toml").read_text(encoding="utf-8"))
    named = [name for names in solvers().values() for name in names]
    listed = {*named, *(name for names in API.values() for name in names)}
    for kind in (set(dir(marginbench)) ^ listed, set(words) - {"problems"} ^ set(named)):
        if kind:
            raise ValueError(f"listed without being there, or missing: {sorted(kind)}")
    pages = {f"solvers/{name}.rst": solver_page(name, words) for name in named}
    pages |= {"solvers/index.rst": solver_index(), "api/index.rst": api_index()}
    pages |= {f"api/{slug(title)}.rst": api_page(title, names) for title, names in API.items()}
    for path, lines in pages.items():
        place, text = folder / path, "\n".join(lines) + "\n"
        place.parent.mkdir(exist_ok=True)
        if not place.is_file() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")
