"""How the tests are spread over two processes."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Two workers, unless the command says otherwise (``-n``) or they are in the way.

    Timings and debuggers want one process, and the tests of one file go to one worker anyway.
    """
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    one_file = len(config.args) == 1 and ".py" in config.args[0]
    alone = option.benchmark_only or option.usepdb or option.collectonly or one_file
    if option.numprocesses is None and option.dist == "no" and not alone:
        option.numprocesses = 2
    if option.numprocesses:
        option.dist = "loadgroup"
        option.loadscopereorder = False


def pytest_itemcollected(item: pytest.Item) -> None:
    """The tests of one family run in one worker, which compiles their loops once."""
    item.add_marker(pytest.mark.xdist_group(family(item.path)))


def family(path: Path) -> str:
    """The files that share a group: one, or those of a package of solvers."""
    return path.relative_to(TESTS).with_suffix("").as_posix()
