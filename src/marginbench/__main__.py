"""The command ``marginbench``, also as ``python -m marginbench``."""

import gc

# Before anything that takes time to import: Ctrl-C must end a starting command with one line.
from marginbench.harness.interrupts import end_at_once_when_interrupted

end_at_once_when_interrupted()
# Imports and figures make many objects that stay: to look for garbage less often saves a seventh.
gc.set_threshold(50_000, 20, 100)

from marginbench.reports.command import main  # noqa: E402

if __name__ == "__main__":
    main()
