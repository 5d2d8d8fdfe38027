"""The command ``marginbench``, also as ``python -m marginbench``."""

from marginbench.reports.command import main

if __name__ == "__main__":
    main()
