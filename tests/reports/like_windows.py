"""Makes a process see only what Python has on Windows, as far as this project uses the rest."""

from __future__ import annotations

import errno
import importlib
import os
import shutil
import signal
import sys
import time
from types import SimpleNamespace
from typing import Any

# Libraries that choose by the name of the system when they are imported; they are to work.
_OTHERS = (
    *("asyncio", "concurrent.futures.process", "ctypes.util", "getpass", "http.server"),
    *("multiprocessing.pool", "multiprocessing.synchronize", "platform", "subprocess", "uuid"),
    *("webbrowser", "filelock", "jinja2", "joblib.parallel", "matplotlib.pyplot"),
    *("matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg", "numba.core.caching"),
    *("numpy", "pandas", "platformdirs", "pooch", "psutil", "pyarrow.parquet", "pydantic"),
    *(
        "requests",
        "rich.console",
        "rich.live",
        "rich.progress",
        "scipy.optimize",
    ),
    *("scipy.sparse", "scipy.stats", "seaborn", "sklearn.datasets", "sklearn.svm", "threadpoolctl"),
    *("typer",),
)
_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
_NAMES = {
    os: """
        O_ASYNC O_CLOEXEC O_DIRECTORY O_DSYNC O_NDELAY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC
        POSIX_SPAWN_CLOSE POSIX_SPAWN_DUP2 POSIX_SPAWN_OPEN WEXITSTATUS WIFEXITED WNOHANG chown
        copy_file_range eventfd fchmod fchown fork forkpty getegid geteuid getgid getgroups
        getloadavg getpgid getpgrp getpriority getsid getuid getxattr initgroups killpg lchown
        memfd_create mkfifo mknod nice openpty pidfd_open posix_fadvise posix_fallocate posix_spawn
        posix_spawnp pread preadv pwrite pwritev sched_getaffinity sched_yield sendfile setpgid
        setsid setuid statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid
    """,
    signal: """
        SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGSTOP SIGUSR1 SIGUSR2 SIGXFSZ alarm pause
        pthread_sigmask setitimer siginterrupt sigwait
    """,
    time: """
        clock_getres clock_gettime clock_gettime_ns clock_settime pthread_getcpuclockid tzset
    """,
}


def pretend() -> None:
    """From now on. What other libraries ask for only later may fail as it would not on Windows."""
    for name in _OTHERS:
        importlib.import_module(name)
    # They remember what they have found.
    importlib.import_module("platformdirs").user_cache_dir("x")
    importlib.import_module("platform").uname()
    filelock = importlib.import_module("filelock")
    filelock.FileLock = filelock.SoftFileLock
    # It has chosen its functions when it was imported, and asks for the system again later.
    for name, module in sys.modules.items():
        if name.startswith("filelock") and hasattr(module, "sys"):
            module.sys = SimpleNamespace(**vars(sys))  # type: ignore[attr-defined]
    for name in _MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in _NAMES.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    os.open = _open_no_folders(os.open)  # type: ignore[assignment]
    # As there: folders are removed by their names.
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    sys.platform = "win32"


def _open_no_folders(really: Any) -> Any:
    def opened(path: Any, *arguments: Any, **keywords: Any) -> int:
        if not isinstance(path, int) and os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return really(path, *arguments, **keywords)

    return opened
