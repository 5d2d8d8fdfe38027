"""What a user waits for before any work: imports, the help, and code that is compiled first.

These depend on the machine and only advise.
"""

import os
import subprocess
import sys
import tempfile

_COMMANDS = {
    "import marginbench": ["-c", "import marginbench"],
    "import of a solver": ["-c", "from marginbench import SMO"],
    "--help": ["-m", "marginbench", "--help"],
    "solvers": ["-m", "marginbench", "solvers"],
}
_FIT = (
    "import numpy as np; from marginbench import SMO; "
    "X = np.eye(40, dtype=np.float32); SMO(gamma=1.0).fit(X, np.tile([1, -1], 20))"
)


class Command:
    """A process from its start to its end."""

    params = (list(_COMMANDS),)
    param_names = ("command",)
    timeout = 60
    rounds = 2
    repeat = (3, 5, 20.0)
    number = 1
    warmup_time = 0

    def time_command(self, command):
        subprocess.run([sys.executable, *_COMMANDS[command]], check=True, stdout=subprocess.DEVNULL)


class FirstFit:
    """The first fit of a process: without compiled code, and with that of an earlier one."""

    params = (["nothing compiled", "compiled before"],)
    param_names = ("cache",)
    timeout = 300
    rounds = 1
    repeat = 3
    number = 1
    warmup_time = 0

    def setup(self, cache):
        self.folder = tempfile.TemporaryDirectory()
        if cache == "compiled before":
            self._fit()

    def teardown(self, cache):
        self.folder.cleanup()

    def time_first_fit(self, cache):
        self._fit()

    def _fit(self):
        environment = {**os.environ, "NUMBA_CACHE_DIR": self.folder.name}
        subprocess.run([sys.executable, "-c", _FIT], check=True, env=environment)
