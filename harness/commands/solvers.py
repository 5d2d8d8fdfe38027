"""The commands about solvers."""

from __future__ import annotations

import typer

from marginbench.harness.commands.output import print_table


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("solvers", help="List the solvers that studies can name.")(_solvers)


def _solvers() -> None:
    from marginbench.harness.kinds import kind_names
    from marginbench.harness.words import visible
    from marginbench.solvers import registry

    found = {kind: registry(kind) for kind in kind_names()}
    classes = {name: cls for named in found.values() for name, cls in named.items()}
    rows: list[tuple[str, ...]] = [("NAME", "STUDIES", "BIAS", "NO BIAS", "SPARSE", "SUMMARY")]
    for name, cls in classes.items():
        kinds = ", ".join(kind for kind, named in found.items() if name in named)
        flags = ("supports_bias", "supports_no_bias", "supports_sparse")
        supported = ("yes" if getattr(cls, flag, False) else "-" for flag in flags)
        summary = visible((cls.__doc__ or "").strip().partition("\n")[0])
        rows.append((name, kinds, *supported, summary))
    print_table(rows)
