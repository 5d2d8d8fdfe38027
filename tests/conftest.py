"""How the tests are spread over two processes, and what ``pytest --benchmark-only`` shows."""

from __future__ import annotations

import os

import pytest

# The tests start many processes; without bytecode each would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
_BENCHMARKS = "tests/bench"
# What of the processor tells machines apart and stays the same from run to run.
_PROCESSOR = ("brand_raw", "arch", "bits", "count")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Two workers, unless the command says otherwise (``-n``) or they are in the way.

    Each takes whole files, so that what a file shares is made once and its loops are mostly
    compiled by one worker; both use numba's cache on disk. Timings and debuggers want one process,
    and a single file would go to one worker anyway.
    """
    option = config.option
    if option.benchmark_only and config.args_source is config.ArgsSource.TESTPATHS:
        config.args = [_BENCHMARKS]
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    one_file = len(config.args) == 1 and ".py" in config.args[0]
    alone = option.benchmark_only or option.usepdb or option.collectonly or one_file
    if option.numprocesses is None and option.dist == "no" and not alone:
        option.numprocesses = 2
    if option.numprocesses and option.dist == "no":
        option.dist = "loadfile"
        # In the order of the folders, where the longest files come first.
        option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--benchmark-only``, other tests are left out rather than listed as skipped."""
    if not config.option.benchmark_only:
        return
    timed = [item for item in items if "benchmark" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=[item for item in items if item not in timed])
    items[:] = timed


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_benchmark_group_stats():
    """In the table of a group, a row is named by the test's last parameter alone."""
    groups = yield
    for _, benchmarks in groups:
        for item in benchmarks:
            item["name"] = str(list((item["params"] or {"": item["name"]}).values())[-1])
    return groups


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info) -> None:
    """What a time depends on is saved with it: processor, memory and versions.

    Clock rates and flags are left out: ``--benchmark-compare`` would warn at every change of them.
    """
    from marginbench.harness.environment import environment

    processor, setting = machine_info["cpu"], environment()
    machine_info["cpu"] = {name: processor[name] for name in _PROCESSOR if name in processor}
    machine_info |= {name: setting[name] for name in ("memory_mb", "libraries", "blas")}
