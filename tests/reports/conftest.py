"""Results folders for the tests, written through the record store as a run would."""

import functools
import hashlib
import json
import os
import re
import shutil
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import jinja2
import numpy as np
import pytest
from markupsafe import Markup

from marginbench import report
from marginbench.harness.results.description import SCHEMA_VERSION, write_description
from marginbench.harness.results.feasibility import FeasibilityRecord, Stage
from marginbench.harness.results.journal import Journal, record_line
from marginbench.harness.results.svm import Checkpoint, Record
from marginbench.reports.drawing.canvas import Drawing
from marginbench.reports.results import load_results
from marginbench.reports.templating import environment

ENVIRONMENT = json.dumps(
    {
        "marginbench": "0.1.0", "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False, "processor": "Example CPU 3000", "cores": 8, "memory_mb": 32000,
        "libraries": {"numpy": "2.1.0", "numba": "0.60.0"},
    }
)  # fmt: skip


#: Of runs of a task without a reference optimum.
NO_REFERENCE = dict.fromkeys(
    ("reference_primal", "reference_gap", "reference_test_error", "suboptimality")
) | {"reference_hash": ""}


def make_record(task, solver, seed, kind=Record, **fields):
    """A record with what a test leaves out filled in."""
    defaults = {
        "key": hashlib.sha256(repr((task, solver, seed)).encode()).hexdigest(),
        "study": "example",
        "solver_class": "marginbench.solvers.smo.smo:SMO",
        "status": "converged",
        "environment": ENVIRONMENT,
        "started_at": f"2024-05-06T07:08:{seed:02d}+00:00",
    }
    if kind is Record:
        defaults |= {
            "dataset": "digits", "n_train": 800, "n_test": 200, "n_features": 64,
            "reference_primal": 100.0, "reference_gap": 1e-4, "reference_test_error": 0.01,
            "reference_hash": "r" * 64, "fingerprint": "f" * 64,
        }  # fmt: skip
    return kind(task=task, solver=solver, seed=seed, **(defaults | fields))


def make_counters(cost, **others):
    """The counters of a kernel method, half of whose entries were cached."""
    return {"kernel_evals": int(cost), "kernel_evals_computed": int(cost) // 2} | others


def make_trace(costs, errors, primals=None, seconds=None):
    """Checkpoints from kernel evaluations and test errors; seconds are a millionth of the cost."""
    costs = list(costs)
    primals = [200.0] * len(costs) if primals is None else primals
    seconds = [(cost or 1e6) / 1e6 for cost in costs] if seconds is None else seconds
    return [
        Checkpoint(
            n_iter=place, n_support=10 * place, wall_s=second, cpu_s=second,
            counters=None if cost is None else make_counters(cost),
            train_error=error / 2, test_error=error, primal=primal, dual=None,
        )
        for place, (cost, error, primal, second) in enumerate(
            zip(costs, errors, primals, seconds, strict=True), start=1
        )
    ]  # fmt: skip


def finished(task, solver, seed, trace, **fields):
    """A record whose final scores are those of its last checkpoint."""
    both = Record.__dataclass_fields__.keys() & Checkpoint.__dataclass_fields__.keys()
    final = {name: getattr(trace[-1], name) for name in both}
    final["suboptimality"] = (trace[-1].primal - 100.0) / 100.0
    return make_record(task, solver, seed, trace=trace, **(final | fields))


def describe_task(label, **fields):
    return {
        "label": label, "dataset": "digits", "kernel": {"name": "rbf", "gamma": 0.02}, "C": 10.0,
        "fit_intercept": False, "citation": "Alpaydin and Kaynak (1998)", "licence": "CC BY 4.0",
    } | fields  # fmt: skip


def describe_solver(label, **fields):
    return {
        "label": label, "class": f"solvers.{label.lower()}:{label}", "params": {"tol": 0.001},
        "scalarization": "C", "certificate": None, "instrumented": True,
        "summary": f"The solver {label}.",
    } | fields  # fmt: skip


def make_method_record(task, solver, seed, n_iter=100, **fields):
    """A record of a feasibility method with what a test leaves out filled in."""
    seconds = None if n_iter is None else n_iter / 1000
    counted = None if n_iter is None else {"matvecs": 2 * n_iter, "iterations": n_iter}
    defaults = {
        "solver_class": f"marginbench.solvers.feasibility:{solver}",
        "budget": '{"timeout": 60.0}', "found": "separable", "n_iter": n_iter,
        "counters": counted, "wall_s": seconds, "cpu_s": seconds,
        "trace": [make_stage(1), make_stage(10)],
    }  # fmt: skip
    return make_record(task, solver, seed, FeasibilityRecord, **(defaults | fields))


def make_stage(t, **fields):
    """A checkpoint of a feasibility method after t iterations."""
    values = {"wall_s": 0.01 * t, "phi_lo": -0.5 / t, "phi_up": 1.5 / t}
    return Stage(n_iter=t, counters={"matvecs": 4 * t}, **(values | fields))


def describe_cell(label, **fields):
    return {
        "label": label, "type": "cell", "generator": "ldfp", "m": 100, "n": 5000, "kappa": 1.0,
        "tol": 0.0, "instances": 3, "published": {},
    } | fields  # fmt: skip


def describe_method(label, **fields):
    return {
        "label": label, "name": label, "class": f"marginbench.solvers.feasibility:{label}",
        "params": {"tol": 0.1}, "takes": "columns",
    } | fields  # fmt: skip


class Page(HTMLParser):
    """Tags, attributes and visible text of a page; checks that tags nest."""

    _VOID = ("meta", "link", "br", "input")

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.words = []
        self.open = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self._VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self._VOID or self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"]):
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"[ \n\xa0\u202f]+", " ", " ".join(self.words))

    def values(self, attribute):
        """The values of an attribute, wherever it is."""
        return [
            attributes[attribute] or "" for _, attributes in self.tags if attribute in attributes
        ]


#: Attributes that hold addresses.
_ADDRESSES = ("href", "src", "srcset", "action", "data", "poster", "xlink:href")


def broken_links(site):
    """What is wrong with the addresses and anchors of a site's pages, a line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    problems = []
    for path, page in pages.items():
        ids = page.values("id")
        problems += [f"{path}: two ids {each!r}" for each in set(ids) if ids.count(each) > 1]
        for attribute in ("aria-labelledby", "aria-describedby", "for"):
            named = {word for words in page.values(attribute) for word in words.split()}
            problems += [f"{path}: no id {word!r}" for word in named - set(ids)]
        for address in (item for name in _ADDRESSES for item in page.values(name)):
            problem = _problem(site, path, address, pages)
            problems += [f"{path}: {address}: {problem}"] if problem else []
        style = re.sub(r"(?s)<script.*?</script>", "", path.read_text(encoding="utf-8"))
        problems += re.findall(r"url\((?!#)[^)]*\)|@import", style)
    return problems


def _problem(site, path, address, pages):
    if address == "data:," or address.startswith("data:text/csv"):
        return ""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or parts.path.startswith("/"):
        return "leads out of the site"
    target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
    if not target.is_relative_to(site) or not target.is_file():
        return "leads to no file of the site"
    if parts.fragment and unquote(parts.fragment) not in pages[target].values("id"):
        return "leads to no anchor"
    return ""


@pytest.fixture(autouse=True, scope="session")
def compiled_once():
    """A template is compiled once, not for each page."""
    compiled = jinja2.Environment.compile
    once = functools.cache(lambda *source: compiled(environment(), *source))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.Environment, "compile", lambda _, *source: once(*source))
        yield


@pytest.fixture(scope="session")
def make():
    """The builders above, for tests."""
    return SimpleNamespace(
        no_reference=NO_REFERENCE,
        record=make_record,
        counters=make_counters,
        trace=make_trace,
        finished=finished,
        task=describe_task,
        solver=describe_solver,
        method_record=make_method_record,
        stage=make_stage,
        cell=describe_cell,
        method=describe_method,
        folder=write_folder,
        rewrite=rewrite,
        page=lambda path: Page(path.read_text(encoding="utf-8")),
        broken_links=broken_links,
    )


def write_folder(folder, records, tasks=None, solvers=None, missing=(), **study):
    """Write a results folder from records and descriptions.

    Tasks and solvers are described by a list, or plainly but for the fields of some by label; a
    solver whose checkpoints count nothing is not instrumented. Every record is planned; ``missing``
    lists further planned runs without a record.
    """
    svm = records[0].kind == "svm"
    of_tasks = {record.task: {"dataset": record.dataset} if svm else {} for record in records}
    of_solvers = {record.solver: {} for record in records}
    for record in records:
        if svm and record.trace and record.trace[0].counters is None:
            of_solvers[record.solver] = {"instrumented": False}
    tasks = _listed(tasks, describe_task if svm else describe_cell, of_tasks)
    solvers = _listed(solvers, describe_solver if svm else describe_method, of_solvers)
    planned = [*records, *(make_record(*run) for run in missing)]
    folder.mkdir(parents=True, exist_ok=True)
    with closing(Journal(folder)) as journal:
        for record in records:
            journal.append(record_line(record))
    names = ("key", "task", "solver", "seed")
    described = {
        "schema_version": SCHEMA_VERSION, "kind": records[0].kind, "marginbench": "0.1.0",
        "name": "example", "title": "An example", "description": "Two solvers on one task.",
        "seeds": sorted({record.seed for record in planned}), "jobs": 1, "threads": 1,
        "budget": {"timeout": 60.0, "memory": 4096.0, "checkpoint_factor": 1.19},
        "command": "marginbench run example", "tasks": tasks, "solvers": solvers,
        "planned": [{name: getattr(record, name) for name in names} for record in planned],
    }  # fmt: skip
    write_description(folder, described | study)
    return folder


def _listed(given, describe, plain):
    if isinstance(given, list):
        return given
    assert set(given or {}) <= set(plain)
    return [
        describe(label, **fields | (given or {}).get(label, {})) for label, fields in plain.items()
    ]


def rewrite(folder, change):
    """Write the journal of a folder anew, with each record changed, or without it."""
    journal = Journal(folder)
    records = list(journal.records())
    shutil.rmtree(journal.folder)
    with closing(Journal(folder)) as journal:
        for record in filter(None, map(change, records)):
            journal.append_record(record)


@pytest.fixture(scope="session")
def write_results(tmp_path_factory):
    """``write_folder`` into a new folder each time."""
    return lambda *given, **study: write_folder(tmp_path_factory.mktemp("r"), *given, **study)


@pytest.fixture(scope="session")
def results_of(write_results):
    """The results that ``write_results`` has written."""
    return lambda *given, **study: load_results(write_results(*given, **study))


def _simulated(rng, n_test, floor, speed, per_second, slow):
    """A plausible run: the error falls to, or near, a floor, the objective to the optimum."""
    final = floor * (1.35 if slow else 1.0)
    costs = np.geomspace(2e3 * rng.uniform(1, 1.4), 10 ** rng.uniform(6.4, 6.9), 48).astype(int)
    progress = np.log(costs / 1e3)
    error = (final + 0.45 * np.exp(-speed * progress)) * np.exp(rng.normal(0, 0.06, 48))
    error = np.round(np.clip(error, 0, 1) * n_test) / n_test
    excess = 30 * np.exp(-1.15 * speed * progress * (1 if slow else 1.5))
    excess = excess * np.exp(rng.normal(0, 0.12, 48)) + (2e-3 if slow else 0)
    return make_trace(costs, error, 100 * (1 + excess), 0.004 + costs / per_second)


@pytest.fixture(scope="session")
def realistic(tmp_path_factory):
    """Two tasks, six solvers, three seeds, with the failures that a real study has."""
    rng = np.random.default_rng(7)
    paces = {
        "SMO": (0.55, 9e6, False),
        "SDCA": (0.8, 4e6, False),
        "Pegasos": (0.5, 5e6, True),
        "SBP": (1.0, 6e6, True),
        "Perceptron": (0.7, 8e6, True),
    }
    failed = {
        ("digits", "Pegasos", 2): ("timeout", "killed after 60.0 s of solving", 30),
        ("adult", "SDCA", 1): ("crashed", "the worker process ended with signal 11 (SIGSEGV)", 0),
    }
    records = []
    for task, n_test, floor in (("digits", 540, 0.011), ("adult", 16281, 0.149)):
        sizes = {"n_test": n_test, "n_train": 3 * n_test, "reference_test_error": floor}
        for solver, (speed, rate, slow) in paces.items():
            for seed in range(3):
                trace = _simulated(rng, n_test, floor, speed, rate, slow)
                record = finished(task, solver, seed, trace, **sizes)
                if solver == "Perceptron":
                    record.suboptimality = None
                if (task, solver, seed) in failed:
                    record.status, record.reason, length = failed[task, solver, seed]
                    record.trace = trace[:length]
                records.append(record)
        for seed in range(3):
            if task == "adult":
                reason = "LIBSVM needs a dense kernel of 9.5 GB, more than the 4096 MB allowed"
                records.append(make_record(task, "LIBSVM", seed, status="skipped", reason=reason))
            else:
                seconds = [0.4 * float(rng.uniform(0.9, 1.1))]
                trace = make_trace([None], [6 / 540], [100.002], seconds)
                records.append(finished(task, "LIBSVM", seed, trace, **sizes))
    return write_folder(
        tmp_path_factory.mktemp("realistic"), records,
        {"adult": {"dataset": "adult", "C": 1.0}}, {"Perceptron": {"scalarization": None}},
        title="Kernel solvers on digits and adult",
        description="How fast five ways of training a kernel SVM reach the error of the optimum.",
    )  # fmt: skip


@pytest.fixture(scope="session")
def realistic_results(realistic):
    """The realistic results as they are loaded."""
    return load_results(realistic)


@pytest.fixture(scope="session")
def realistic_page(realistic):
    """The report of the realistic results."""
    return report(realistic)


@pytest.fixture
def undrawn(monkeypatch):
    """For tests of a page's words: its figures are left empty."""
    monkeypatch.setattr(Drawing, "svg", lambda drawing, *_: Markup("<svg></svg>"))


@pytest.fixture
def unwritten(monkeypatch):
    """For tests of what is printed: the page is a line."""
    monkeypatch.setattr("marginbench.reports.page.render", lambda results, command: "<p>page!\n")


@pytest.fixture
def visit(browser):
    """Opens a page; what it complains about and asks for is checked when the test ends."""
    contexts, complaints, requests = [], [], []

    def opened(page, fragment="", width=1200, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(page.as_uri() + fragment)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        return tab

    yield opened
    for context in contexts:
        context.close()
    # A violation of the page's security policy is a message, too.
    assert complaints == []
    assert {url.partition(":")[0] for url in requests} <= {"file", "data", "blob"}
    assert all(url.partition("#")[0].endswith(".html") for url in requests if url[:4] == "file")
