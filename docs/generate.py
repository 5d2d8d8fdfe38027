"""Write what follows from the code: docs/studies.md, and the parts of pages below a note: the
commands with their options, the registered datasets, the keys of study files, the columns of
records, and the rows of the papers. For the pages of solvers see docs/pages.py.

python docs/generate.py            # write them
python docs/generate.py --check    # exit with 1 if they are not what this would write
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from numpydoc.docscrape import NumpyDocString
from pydantic import BaseModel

from marginbench.data_loaders.sources import Source, sources
from marginbench.harness.conformance import estimators, methods
from marginbench.harness.conformance.running import CHECKS
from marginbench.harness.results.feasibility import FeasibilityRecord, Stage
from marginbench.harness.results.measures import columns_of
from marginbench.harness.results.records import RecordBase
from marginbench.harness.results.svm import Checkpoint, Record
from marginbench.harness.study.feasibility import Cell, FeasibilityStudy, Images
from marginbench.harness.study.grid import Axes
from marginbench.harness.study.model import Budget, SolverEntry, StudyBase
from marginbench.harness.study.svm import ReferenceSettings, Study, Task, Tuning
from marginbench.harness.study.toml import load_study, study_names
from marginbench.reports.command import add_commands, build_app, write_report
from marginbench.reports.papers.published import PAPERS, Paper, read_paper

HERE = Path(__file__).resolve().parent
_NOTE = "<!-- Written by docs/generate.py. Edit the code that it reads, not this page. -->"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    headings = list(headings)
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def studies_page() -> Iterator[str]:
    """The lines of docs/studies.md."""
    yield from ("# Shipped studies", "", _NOTE, "")
    yield from (
        "`marginbench run NAME` runs a study, or [a part](command-line.md#parts-of-a-study).",
        "Tasks that differ only in numbers share a row; `marginbench study show NAME` lists each.",
        "",
    )
    feeds: dict[str, list[str]] = {}
    for paper in map(read_paper, PAPERS):
        for study in dict.fromkeys(source.study for source in paper.sources):
            feeds.setdefault(study, []).append(f"[{paper.name}](reproducing.md#{paper.name})")
    studies = {name: load_study(name) for name in study_names()}
    yield from table(
        ("study", "what it compares", "requirements"),
        (
            (f"[`{name}`](#{name})", study.title or name, study.cost)
            for name, study in studies.items()
        ),
    )
    for name, study in studies.items():
        yield from ("", f"## {name}", "", f"**{study.title}.**" if study.title else "")
        yield from ("", *filled(study.description), "")
        yield from table(
            ("task", "problem"), collapsed((task.label, problem_of(task)) for task in study.tasks)
        )
        yield from ("", *filled(f"Solvers: {solvers_of(study)}."))
        if name in feeds:
            yield from ("", f"Numbers of a paper that it reproduces: {', '.join(feeds[name])}.")


#: A number in a text, such as 1e-3, 0.05 or 50 000.
_NUMBER = re.compile(r"(?<![\w.])(\d+(?: \d{3})*(?:\.\d+)?(?:e-?\d+)?)")


def collapsed(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, ...]]:
    """Rows of a table; three or more in a row that differ in numbers alone are one."""
    for _, group in itertools.groupby(rows, lambda row: [_NUMBER.sub("#", cell) for cell in row]):
        first, *others = group
        if len(others) < 2:
            yield from (first, *others)
            continue
        parts = [map(_NUMBER.split, cells) for cells in zip(first, others[-1], strict=True)]
        yield tuple(
            "".join(a if a == b else f"{a} to {b}" for a, b in zip(*cells, strict=True))
            for cells in parts
        )


def filled(text: str) -> Iterator[str]:
    """The lines of a text, wrapped by paragraph."""
    for place, paragraph in enumerate(text.strip().split("\n\n")):
        yield from ([""] if place else [])
        yield from textwrap.wrap(paragraph, 100, break_long_words=False, break_on_hyphens=False)


def problem_of(task: Any) -> str:
    """A task in one line."""
    if hasattr(task, "kernel_description"):
        data = task.dataset + parameters_of(task.dataset_params)
        kernel = {k: v for k, v in task.kernel_description.items() if k != "name"}
        kernel_words = f"{task.kernel} kernel{parameters_of(kernel)}"
        bias = "with bias" if task.fit_intercept else "no bias"
        return f"{data}; {kernel_words}; C = {task.C:g}; {bias}"
    if task.table == "cell":
        sizes = f"m = {task.m}, n = {task.n}, kappa = {task.kappa:g}, tol = {task.tol:g}"
        return f"`{task.generator}`: {sizes}; {task.instances} instances"
    return f"{task.dataset}: {task.n_train} training points, each class against the rest"


def parameters_of(values: dict[str, Any]) -> str:
    """Parameters in parentheses; nothing where there are none."""
    listed = ", ".join(
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in values.items()
    )
    return f" ({listed})" if listed else ""


def solvers_of(study: StudyBase) -> str:
    """The labels of a study's solvers."""
    return "; ".join(entry.label for entry in study.solvers)


def commands_part() -> Iterator[str]:
    """Every command with its arguments and options, as the program has them."""
    app = build_app(write_report)
    add_commands(app)
    for words, command in _leaves(typer.main.get_command(app), ["marginbench"]):
        yield from ("", f"### {' '.join(words)}", "", str(command.help or ""), "")
        yield from table(
            ("argument or option", "meaning", "default"),
            (_parameter(each) for each in command.params if not getattr(each, "hidden", False)),
        )


def _leaves(command: Any, words: list[str]) -> Iterator[tuple[list[str], Any]]:
    for name, below in getattr(command, "commands", {}).items():
        yield from _leaves(below, [*words, name])
    if not hasattr(command, "commands"):
        yield words, command


def _parameter(parameter: Any) -> tuple[str, str, str]:
    is_option = parameter.param_type_name == "option"
    name = ", ".join(parameter.opts) if is_option else (parameter.metavar or parameter.name.upper())
    value = f" {parameter.metavar}" if is_option and parameter.metavar else ""
    default = "" if parameter.default in (None, False, "") else f"`{parameter.default}`"
    if isinstance(parameter.show_default, str):
        default = parameter.show_default
    if parameter.required:
        default = "required"
    return f"`{name}{value}`", str(getattr(parameter, "help", None) or ""), default


def datasets_part() -> Iterator[str]:
    """Every registered dataset."""
    yield ""
    yield from table(
        (
            "name",
            "what it holds",
            "read from",
            "files of a mirror",
            "split",
            "parameters and defaults",
        ),
        (
            (
                f"`{source.name}`",
                source.summary,
                source.format,
                _files_of(source),
                source.split,
                ", ".join(f"`{name} = {value!r}`" for name, value in source.parameters.items()),
            )
            for source in sources()
        ),
    )


def _files_of(source: Source) -> str:
    folder = source.mirror_folder or source.name
    return f"`{folder}/`: " + ", ".join(f.name for f in source.files) if source.files else "none"


def papers_part() -> Iterator[str]:
    """The rows of each paper that are measured, by the beginnings of their names."""
    for paper in map(read_paper, PAPERS):
        yield from ("", f"### {paper.name}", "", f"{paper.title} ({paper.citation}).", "")
        yield from table(("`--only`", "rows", "the first of them", "studies"), _groups(paper))


def _groups(paper: Paper) -> Iterator[tuple[str, str, str, str]]:
    tables = {table.id for table in paper.tables}
    groups: dict[str, list[Any]] = {}
    for row in paper.rows:
        head, _, rest = row.id.partition("/")
        name = head if head in tables else f"{head}/{rest.partition('/')[0]}"
        if row.measure:
            groups.setdefault(name, []).append(row)
    for name, rows in groups.items():
        able = (
            source.study
            for source in paper.sources
            if any(paper.pairs(source, row) is not None for row in rows)
        )
        studies = ", ".join(f"[{study}](studies.md#{study})" for study in dict.fromkeys(able))
        yield f"`{name}`", str(len(rows)), rows[0].says, studies


def checks_part() -> Iterator[str]:
    """What each check of ``marginbench check`` expects."""
    kinds = (("a solver", "estimator", estimators), ("a method on columns", "method", methods))
    for subject, sort, module in kinds:
        checks = {name: getattr(module, re.sub("[ -]", "_", name)) for name in CHECKS[sort]}
        yield ""
        yield from table(
            (f"check of {subject}", "what it expects"),
            (
                (f"`{name}`", _linked((inspect.getdoc(check) or "").partition("\n")[0]))
                for name, check in checks.items()
            ),
        )


def _linked(text: str) -> str:
    """Names of pages as links."""
    return re.sub(
        r"docs/([\w-]+)\.md", lambda match: f"[{match[1].replace('-', ' ')}]({match[1]}.md)", text
    )


def columns_part() -> Iterator[str]:
    """Every column of runs.parquet with its type."""
    common = {item.name for item in fields(RecordBase)}
    kinds = (
        ("every run", RecordBase, set()),
        ("runs of SVM solvers", Record, common),
        ("runs of feasibility methods", FeasibilityRecord, common),
        ("a checkpoint in `trace`, of SVM solvers", Checkpoint, set()),
        ("a checkpoint in `trace`, of feasibility methods", Stage, set()),
    )
    for heading, declared, listed in kinds:
        types = get_type_hints(declared)
        yield ""
        yield from table(
            (f"column of {heading}", "type", "meaning"),
            (
                (f"`{name}`", _type(types[name]), item.doc)
                for name, item in columns_of(declared).items()
                if name not in listed
            ),
        )


def _type(hint: Any) -> str:
    plain = get_args(hint)[0] if type(None) in get_args(hint) else hint
    words = {int: "int64", float: "double", bool: "bool", dict[str, int]: "map of int64"}
    return words.get(plain, "list" if plain == list[Any] else "string")


def keys_part() -> Iterator[str]:
    """Every key of a study file with its default, as the classes that read it say."""
    for heading, part in TABLES.items():
        yield ""
        yield from table((heading, "default", "meaning"), _keys_of(part))
        axes = getattr(part, "axes", None)
        if isinstance(axes, Axes):
            keys = ", ".join(f"`{key}`" for key in axes.keys)
            inside = ", ".join(f"`{key}`" for key in axes.tables)
            words = [keys] * bool(keys) + [f"every value in {inside}"] * bool(inside)
            yield from ("", *filled(f"[Lists](#grids) are possible for {' and '.join(words)}."))


def _keys_of(part: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    for entry in NumpyDocString(inspect.getdoc(part) or "")["Attributes"]:
        field, default = (
            part.model_fields[entry.name],
            re.sub(r"\{.*\}", "", entry.type).partition(", ")[2],
        )
        if field.is_required() and not default:
            default = "required"
        elif not default:
            value = field.get_default(call_default_factory=True)
            default = "none" if value is None else f"`{_toml(value)}`" if value != "" else "empty"
        words = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(entry.desc)).replace("``", "`")
        yield f"`{entry.name}`", default.replace("``", "`"), _linked(words)
    if isinstance(getattr(part, "axes", None), Axes):
        yield "`zip`", "none", "Lists that are taken together, see [above](#grids)."


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


PAGES = {"studies.md": studies_page}
#: Pages whose last part is written here, below the note.
PARTS = {
    "adding-a-solver.md": checks_part,
    "command-line.md": commands_part,
    "datasets.md": datasets_part,
    "reproducing.md": papers_part,
    "results-folder.md": columns_part,
    "study-files.md": keys_part,
}
#: The tables of study files and what reads them.
TABLES: dict[str, type[BaseModel]] = {
    "key": Study,
    "`[budget]`": Budget,
    "`[reference]`": ReferenceSettings,
    "`[tuning]`": Tuning,
    "`[[task]]`": Task,
    "`[[solver]]`, `[[method]]`": SolverEntry,
    "feasibility key": FeasibilityStudy,
    "`[[cell]]`": Cell,
    "`[[images]]`": Images,
}


def written() -> Iterator[tuple[str, str]]:
    """Every page with its text."""
    for name, lines in PAGES.items():
        yield name, "\n".join(lines())
    for name, part in PARTS.items():
        head, note, _ = (HERE / name).read_text(encoding="utf-8").partition(_NOTE)
        if not note:
            raise SystemExit(f"docs/{name} lacks the note below which it is written: {_NOTE}")
        yield name, "\n".join([head + note, *part()])


def main() -> int:
    """Write the pages, or compare them with what is there; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check = parser.parse_args().check
    stale = []
    for name, content in written():
        path, text = HERE / name, content.rstrip() + "\n"
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"docs/{name}: {'stale; run python docs/generate.py' if check else 'written'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
