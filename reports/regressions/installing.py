"""Install a commit beside the environment that runs: its code, with this one's dependencies.

Both sides of a comparison then differ in the code of the project alone, and an environment is made
in seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from ...harness.words import visible
from ..errors import ReportError


def install(source: Path, folder: Path) -> Path:
    """Make an environment with the project in a folder, and give its interpreter.

    Parameters
    ----------
    source : Path
        The files of the commit.
    folder : Path
        A new folder for the environment.

    Raises
    ------
    ReportError
        If it cannot be made, or the commit cannot be installed.
    """
    made = ["-m", "virtualenv", "--quiet", "--no-download", "--no-periodic-update", str(folder)]
    _run([sys.executable, *made], "an environment for the benchmarks")
    python = _python(folder)
    _see_dependencies(python)
    words = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    _run([*map(str, words), str(source)], f"the installation of {source.name}")
    return python


def _python(folder: Path) -> Path:
    name = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    return folder / name


def _see_dependencies(python: Path) -> None:
    """Let the environment import what this one has, after what is installed in itself.

    A path in a .pth file is searched without the .pth files there, so an editable installation of
    the project in this environment is not seen.
    """
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    there = _run([str(python), "-I", "-c", asked], "an environment for the benchmarks").strip()
    here = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    Path(there, "dependencies.pth").write_text("\n".join(here) + "\n", encoding="utf-8")


def _run(words: list[str], what: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise ReportError(f"{what}: cannot be made ({error})") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise ReportError(f"{what}: cannot be made ({visible(lines[-1])})")
    return done.stdout
