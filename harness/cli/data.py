"""The commands about datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..errors import EXIT_DATA, UserError
from .output import Json, complain, data_code, help_only, in_columns, show

_Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME...", help="Names that 'data list' shows.", show_default=False),
]


data = typer.Typer(help="List, fetch, import and verify datasets.", rich_markup_mode=None)
data.callback(invoke_without_command=True)(help_only)


@data.command("list", help="List the datasets.")
def _list(as_json: Json = False) -> None:
    from rich.filesize import decimal

    from ...data_loaders import imported, sources
    from ..words import visible

    imports = imported()
    rows = [("NAME", "FORMAT", "SUMMARY")]
    rows += [(source.name, source.format, source.summary) for source in sources()]
    for item in imports:
        # The target is the first thing that is decided.
        about = item.decided[0] if item.decided else "import it again"
        rows.append((item.name, "imported", f"{item.state}, {decimal(item.size_bytes)}; {about}"))
    document = [_as_dict(name) for name, *_ in rows[1:]]
    lines = in_columns([tuple(map(visible, row)) for row in rows])
    show(document, lines, as_json=as_json)


@data.command("fetch", help="Fetch datasets into the cache.")
def _fetch(names: _Names = None, as_json: Json = False) -> int:
    from ...data_loaders import fetch
    from ..interrupts import interrupts_raised

    with interrupts_raised():
        return _each(_dataset_names(names or []), fetch, as_json=as_json)


def _each(names: list[str], do: Callable[[str], object], *, as_json: bool) -> int:
    """Apply an action to each dataset and print its result; the worst exit code."""
    from ...data_loaders import DataError

    code, done = 0, {}
    for name in names:
        try:
            done[name] = str(do(name))
        except DataError as error:
            code = max(code, complain(str(error), data_code(error)))
            continue
        if not as_json:
            typer.echo(f"{name}: {done[name]}")
    show(done, [], as_json=as_json)
    return code


@data.command("verify", help="Check cached datasets; all of them without a name.")
def _verify(names: _Names = None, as_json: Json = False) -> int:
    from ...data_loaders import imported, sources, verify
    from ..words import visible

    every = [*(source.name for source in sources()), *(item.name for item in imported())]
    verdicts = []
    for name in _dataset_names(names or every):
        verdict = verify(name)
        verdicts.append({"name": name, "state": verdict.state, "detail": verdict.detail})
        if not as_json:
            typer.echo(visible(f"{name}: {verdict.state}: {verdict.detail}"))
    show(verdicts, [], as_json=as_json)
    return EXIT_DATA if any(item["state"] == "damaged" for item in verdicts) else 0


@data.command("import", help="Bring your own file into the cache under a name.")
def _import(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call the dataset.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="A file, a training and a test file, a folder, or file.py:name."
        ),
    ],
    format: Annotated[
        str | None, typer.Option(help="The format, if the name does not say it.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="key=value, as in target=income; repeat it for more."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what was imported under the name.")
    ] = False,
    as_json: Json = False,
) -> None:
    from ...data_loaders import import_data, imported_info, suggest
    from ...data_loaders.own.options import Options, option_from_text
    from ..interrupts import interrupts_raised
    from ..words import visible

    options: dict[str, Any] = dict(option_from_text(text) for text in option or [])
    for key in options.keys() - Options.__dataclass_fields__:
        raise UserError(f"unknown option {key!r}{suggest(key, Options.__dataclass_fields__)}")
    if format is not None:
        options["format"] = format
    if len(files) > 2:
        raise UserError(f"give one file, or a training and a test file, not {len(files)}")
    if len(files) == 2:
        options["test"] = files[1]
    with interrupts_raised():
        import_data(name, files[0], replace=replace, **options)
    lines = [visible(f"{name}: {line}") for line in imported_info(name).decided]
    show(_as_dict(name), lines, as_json=as_json)


@data.command("info", help="Say what is known of datasets.")
def _info(names: _Names = None, as_json: Json = False) -> None:
    from ..words import visible

    infos = [_as_dict(name) for name in _dataset_names(names or [])]
    lines = []
    for item in infos:
        about = {key: value for key, value in item.items() if key not in ("name", "decided")}
        facts = [f"{key}: {value}" for key, value in about.items()] + item.get("decided", [])
        lines += [visible(item["name"]), *(f"  {visible(fact)}" for fact in facts)]
    show(infos, lines, as_json=as_json)


@data.command("remove", help="Remove imported datasets from the cache.")
def _remove(names: _Names = None, as_json: Json = False) -> int:
    from ...data_loaders import remove_imported
    from ..study.select import split_names

    chosen = split_names(names or [])
    if not chosen:
        raise UserError("name an imported dataset; 'marginbench data list' lists them")

    def remove(name: str) -> str:
        remove_imported(name)
        return "removed"

    return _each(chosen, remove, as_json=as_json)


def _as_dict(name: str) -> dict[str, Any]:
    """A description of a dataset without reading its points."""
    from ...data_loaders import imported_info
    from ..study.model import registered_source

    source = registered_source(name)
    if source is None:
        info = imported_info(name)
        found = {"name": name, "format": "imported", "state": info.state}
        return found | {"size_bytes": info.size_bytes, "decided": list(info.decided)}
    names = ("name", "format", "summary", "split", "parameters", "licence")
    return {key: getattr(source, key) for key in names} | {"parameters": dict(source.parameters)}


def _dataset_names(names: list[str]) -> list[str]:
    """Names in the datasets' own spelling."""
    from ...data_loaders import suggest
    from ...data_loaders.sources import unknown
    from ..study.model import dataset_names, find
    from ..study.select import split_names

    every = dataset_names()
    chosen = split_names(names)
    if not chosen:
        raise UserError(f"name a dataset{suggest('', every)}")
    matches = []
    for name in chosen:
        match = find(name, every)
        if match is None:
            raise UserError(unknown(name, every))
        matches.append(match)
    return matches
