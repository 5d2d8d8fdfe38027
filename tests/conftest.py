"""How the tests are spread over two processes."""

from __future__ import annotations

import os

import pytest

# The tests start many processes; without bytecode each would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Two workers, unless the command says otherwise (``-n``) or they are in the way.

    Each takes whole files, so that what a file shares is made once and its loops are mostly
    compiled by one worker; both use numba's cache on disk. Timings and debuggers want one process,
    and a single file would go to one worker anyway.
    """
    option = config.option
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
