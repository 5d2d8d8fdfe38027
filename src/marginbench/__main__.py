"""The command ``marginbench``, also as ``python -m marginbench``."""

# Before anything that takes time to import: Ctrl-C must end a starting command with one line.
from marginbench.harness.interrupts import end_at_once_when_interrupted

end_at_once_when_interrupted()

from marginbench.reports.command import main  # noqa: E402

if __name__ == "__main__":
    main()
