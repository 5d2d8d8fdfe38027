"""How the tests are spread over processes, which a system can run, and how timings show."""

import gc
import os
import shutil
import sys
from pathlib import Path

import pytest

# The tests start many processes; without bytecode each would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Compiling makes many objects: looking for garbage as often as usual takes 6 % of the tests' time.
gc.set_threshold(50_000, 20, 100)
# What they write need not outlive a power cut.
os.fsync = lambda descriptor: None

TESTS = Path(__file__).parent

#: The files and folders whose quick tests start first. The first file compiles what most tests of
#: solvers use; those of the folders that follow it need little of that, so that the other worker
#: does not compile the same at the same time.
FIRST = (
    "bench/test_suites.py",
    "faults",
    "data_loaders",
    "reports",
    "solvers/numeric",
    "solvers/feasibility/test_verdicts.py",
    "solvers/budget/test_training.py",
    "solvers/feasibility/test_rivals.py",
    "solvers/test_estimators.py",
    "solvers/cuts/test_structured.py",
    "solvers/smo/test_working_sets.py",
    "harness",
)
#: Those whose slow tests start first, the longest at the front: one that starts last would leave
#: the other worker idle until it ends.
LONGEST = (
    "shipped",
    "faults/test_hostile_solvers.py",
    "docs/test_site.py",
    "faults",
    "solvers/test_estimators.py",
    "reports/test_browser.py",
    "reports",
)
#: Files and folders left out elsewhere than on Linux, and why; see docs/platforms.md.
_LEFT_OUT = {
    "win32": (
        "runs need Linux, macOS or WSL",
        ["bench", "ci/test_scripts.py", "faults", "harness", "shipped"],
    ),
    "darwin": (
        "orphans of a worker are only adopted on Linux",
        ["faults", "harness/test_worker.py"],
    ),
}
_REASON, collect_ignore = _LEFT_OUT.get(sys.platform, ("", []))


def pytest_report_header():
    """What is not collected here."""
    if not collect_ignore:
        return None
    return f"left out on {sys.platform}, as {_REASON}: tests/{', tests/'.join(collect_ignore)}"


def pytest_runtest_setup(item):
    """Skip what needs signals and limits where there are none."""
    if sys.platform == "win32" and item.get_closest_marker("posix"):
        pytest.skip("needs signals or limits that Windows does not have")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    """Skip a test that turns out to need a run where there can be none."""
    if sys.platform != "win32":
        return (yield)
    from marginbench.harness.errors import UnsupportedError

    try:
        return (yield)
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Two workers, unless the command says otherwise (``-n``) or they are in the way.

    Slow tests wait a third of their time, and have three. Each worker takes whole files, so that
    what a file shares is made once and its loops are mostly compiled by one; all use numba's cache
    on disk. Timings and debuggers want one process; a single file would go to one worker anyway.
    """
    option = config.option
    if option.benchmark_only and config.args_source is config.ArgsSource.TESTPATHS:
        config.args = ["tests/bench"]
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    one_file = len(config.args) == 1 and ".py" in config.args[0]
    alone = option.benchmark_only or option.usepdb or option.collectonly or one_file
    if option.numprocesses is None and option.dist == "no" and not alone:
        option.numprocesses = 3 if option.markexpr == "slow" else 2
    if option.numprocesses and option.dist == "no":
        option.dist = "loadfile"
        option.loadscopereorder = False  # pytest_collection_modifyitems says in which order


@pytest.hookimpl(trylast=True)  # pytest itself sorts by the parameters of fixtures
def pytest_collection_modifyitems(config, items):
    """What is listed comes first, the rest in the order of the folders.

    With ``--benchmark-only``, other tests are left out rather than listed as skipped.
    """
    first = LONGEST if config.option.markexpr == "slow" else FIRST
    rank = {TESTS / name: place for place, name in enumerate(first)}

    def place(item):
        return min(rank.get(path, len(rank)) for path in (item.path, *item.path.parents))

    items.sort(key=place)
    if config.option.benchmark_only:
        timed = [item for item in items if "benchmark" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in timed])
        items[:] = timed


@pytest.fixture
def in_this_process(monkeypatch):
    """What a pool of workers would do is done in the process of the test."""
    from .harness.answers import Lenient

    class Here(Lenient):
        def __init__(self, *arguments, **options):
            """Takes the place of the pool."""
            super().__init__()

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.close()

    monkeypatch.setattr("marginbench.harness.execution.local.LocalPool", Here)
    monkeypatch.setattr("marginbench.harness.execution.runner.LocalPool", Here)


@pytest.fixture
def command(capsys):
    """Calls the command in this process: exit code, output and errors; ``page`` writes pages."""
    from marginbench.harness.cli.app import build_app, run_app
    from marginbench.reports.command import add_commands, write_report

    def call(*words, page=write_report):
        app = build_app(page)
        add_commands(app)
        with pytest.raises(SystemExit) as ended:
            run_app(app, [str(word) for word in words])
        output = capsys.readouterr()
        return int(ended.value.code or 0), output.out, output.err

    return call


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_benchmark_group_stats():
    """In the table of a group, a row is named by the test's last parameter alone."""
    groups = yield
    for _, benchmarks in groups:
        for item in benchmarks:
            item["name"] = str(list((item["params"] or {"": item["name"]}).values())[-1])
    return groups


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info):
    """What a time depends on is saved with it: processor, memory and versions.

    Clock rates and flags are left out: ``--benchmark-compare`` would warn at every change of them.
    """
    from marginbench.harness.environment import environment

    setting, same = environment(), ("brand_raw", "arch", "bits", "count")
    machine_info["cpu"] = {k: value for k, value in machine_info["cpu"].items() if k in same}
    machine_info |= {name: setting[name] for name in ("memory_mb", "libraries", "blas")}


@pytest.fixture(scope="session")
def browser():
    """Chromium, where it is installed."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    off = ("background-networking", "component-update", "gpu", "sync")
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{what}" for what in off)]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()
