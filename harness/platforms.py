"""What of the harness needs which system."""

from __future__ import annotations

import os
import sys

from .errors import UserError


class UnsupportedError(UserError):
    """Something that this system cannot do; the message names the system and says what can."""


def check_can_run() -> None:
    """Raise where runs cannot have processes that are limited and killed from outside.

    Raises
    ------
    UnsupportedError
        On Windows.
    """
    # Guardians and programs are started so; where it is missing, so are sessions and signals.
    if not hasattr(os, "posix_spawn"):
        raise UnsupportedError(
            f"{sys.platform}: runs need Linux, macOS or WSL; here, use the solvers as estimators "
            "and read results from elsewhere (docs/platforms.md)"
        )
