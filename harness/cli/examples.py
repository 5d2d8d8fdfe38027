"""Examples of each command, for the end of its help."""

from __future__ import annotations

from typing import Any

_EXAMPLES = {
    "run": """
        marginbench run
        marginbench run sbp12-adult --solver SBP,SMO --seeds 5
        marginbench run --dataset bank.csv --solver SMO,my_solver.py:MySolver
        marginbench run my-study.toml --where 'C == 10' --timeout 30
    """,
    "report": """
        marginbench report results/quickstart
        marginbench report results/quickstart --where 'solver == "SMO"'
    """,
    "explain": "marginbench explain results/quickstart",
    "merge": "marginbench merge results/here results/there --out results/all",
    "solvers": "marginbench solvers",
    "solver": """
        marginbench solver SMO
        marginbench solver my_solver.py:MySolver --json
    """,
    "check": "marginbench check my_solver.py:MySolver",
    "warm": "marginbench warm --jobs 2",
    "doctor": "marginbench doctor",
    "export": """
        marginbench export results/quickstart --list
        marginbench export results/quickstart --out paper --format pdf,tex
    """,
    "compare": """
        marginbench compare results/before results/after
        marginbench compare results/before results/after --solver SMO --json
    """,
    "publish": "marginbench publish results/* --out site",
    "reproduce": """
        marginbench reproduce sbp12 --dry-run
        marginbench reproduce bsca18 --only table1
    """,
    "watch": "marginbench watch results/quickstart",
    "regressions": """
        marginbench regressions
        marginbench regressions main HEAD --text
    """,
    "study new": "marginbench study new my-study",
    "study show": "marginbench study show quickstart",
    "study validate": "marginbench study validate my-study.toml",
    "new solver": "marginbench new solver MySolver",
    "data list": "marginbench data list",
    "data fetch": "marginbench data fetch adult,ijcnn1",
    "data verify": "marginbench data verify",
    "data import": "marginbench data import bank bank.csv --option target=y",
    "data info": "marginbench data info adult",
    "data remove": "marginbench data remove bank",
}


def add_examples(command: Any, words: str = "") -> None:
    """Give each command its examples; KeyError for one that has none."""
    below = getattr(command, "commands", {})
    for name, each in below.items():
        add_examples(each, f"{words} {name}".strip())
    if not below:
        lines = [line.strip() for line in _EXAMPLES[words].strip().splitlines()]
        # The mark keeps the lines as they are.
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
