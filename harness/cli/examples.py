"""Examples of each command, for the end of its help."""

from __future__ import annotations

from typing import Any

#: What follows "marginbench" and the name of the command.
_EXAMPLES = {
    "run": (
        "",
        "sbp12-adult --solver SBP,SMO --seeds 5",
        "--dataset bank.csv --solver SMO,my_solver.py:MySolver",
        "my-study.toml --where 'C == 10' --timeout 30",
    ),
    "report": ("results/quickstart", "results/quickstart --where 'solver == \"SMO\"'"),
    "explain": ("results/quickstart",),
    "merge": ("results/here results/there --out results/all",),
    "solvers": ("",),
    "solver": ("SMO", "my_solver.py:MySolver --json"),
    "check": ("my_solver.py:MySolver",),
    "warm": ("--jobs 2",),
    "doctor": ("",),
    "export": ("results/quickstart --list", "results/quickstart --out paper --format pdf,tex"),
    "compare": ("results/before results/after", "results/before results/after --solver SMO --json"),
    "publish": ("results/* --out site",),
    "reproduce": ("sbp12 --dry-run", "bsca18 --only table1"),
    "watch": ("results/quickstart",),
    "regressions": ("", "main HEAD --text"),
    "study new": ("my-study",),
    "study show": ("quickstart",),
    "study validate": ("my-study.toml",),
    "new solver": ("MySolver",),
    "data list": ("",),
    "data fetch": ("adult,ijcnn1",),
    "data verify": ("",),
    "data import": ("bank bank.csv --option target=y",),
    "data info": ("adult",),
    "data remove": ("bank",),
}


def add_examples(command: Any, words: str = "") -> None:
    """Give each command its examples; KeyError for one that has none."""
    below = getattr(command, "commands", {})
    for name, each in below.items():
        add_examples(each, f"{words} {name}".strip())
    if not below:
        lines = (f"  marginbench {words} {rest}".rstrip() for rest in _EXAMPLES[words])
        # The mark keeps the lines as they are.
        command.epilog = "\b\nExamples:\n" + "\n".join(lines)
