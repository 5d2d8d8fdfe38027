"""The documents: their Python runs, their commands are those of the program, their links lead
somewhere. Links among the pages of the site are checked when it is built (tox -e docs)."""

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
import typer

import marginbench
from marginbench.harness.cli.app import add_examples
from marginbench.harness.execution.runner import run_study
from marginbench.harness.study.model import StudyFile
from marginbench.harness.study.toml import completed_study
from marginbench.reports.command import add_commands, build_app, write_report
from marginbench.solvers.numeric.compiling import cache_folder

from ..harness.answers import InProcess

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
#: Pages whose examples other tests run, and those whose data or machines are not at hand.
ELSEWHERE = {
    *("adding-a-solver.md", "outside-solvers.md", "python.md", "structured-outputs.md"),
    *("tutorial.md", "your-data.md"),
    *("cluster.md", "datasets.md"),
}
#: Pages whose examples read the results of studies.
OF_RESULTS = ("exporting.md", "publishing.md", "results-folder.md", "tuning.md")
#: Follows "marginbench" on the command line of a shell.
_END = re.compile(r"\s+#|\s*(?:&&|[|;&>])\s|\s2>")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


@pytest.fixture(scope="module")
def program():
    app = build_app(write_report)
    add_commands(app)
    command = typer.main.get_command(app)
    add_examples(command)
    return command


def leaves(command, words="marginbench"):
    for name, below in getattr(command, "commands", {}).items():
        yield from leaves(below, f"{words} {name}")
    if not hasattr(command, "commands"):
        yield words, command


def test_each_command_has_examples_and_prints_json_if_asked(program):
    for words, command in leaves(program):
        *_, examples = command.epilog.partition("Examples:\n")
        assert all(line.startswith(f"  {words}") for line in examples.splitlines()), words
        options = [name for parameter in command.params for name in parameter.opts]
        # These write a file, and say its name.
        assert ("--json" in options) != (
            words in ("marginbench study new", "marginbench new solver")
        )


def test_the_commands_of_the_pages_are_those_of_the_program(program):
    texts = {page.name: "".join(blocks(page, "sh")) for page in PAGES}
    texts["help"] = "\n".join(command.epilog for _, command in leaves(program))
    listed = {
        (page, _END.split(words)[0])
        for page, text in texts.items()
        for words in re.findall(r"(?:^ *|&& |/)marginbench (.*)", text.replace("\\\n", " "), re.M)
    }
    assert len(listed) > 60
    for page, line in sorted(listed):
        words, command, context = shlex.split(line), program, click.Context(program)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
            context = click.Context(command, info_name=line)
        assert command is not program, (page, line)
        # Unknown options raise; what they say is not looked at.
        command.make_parser(context).parse_args(words)


@pytest.mark.parametrize(
    "page",
    [
        # The README runs a study.
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page.name == "README.md"))
        for page in PAGES
        if blocks(page, "python") and page.name not in {*ELSEWHERE, *OF_RESULTS}
    ],
)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # Machine code stays where it is, so that workers need not compile it.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache_folder().parent))
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "cache"))
    names = {}
    for code in blocks(page, "python"):
        if "results/" not in code:  # of a study that was run before
            exec(compile(code, page.name, "exec"), names)
    printed = capsys.readouterr().out
    for promised in re.findall(r"print\(.*\)  # (.*)", page.read_text("utf-8")):
        assert promised in printed


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A folder with results under the names that the pages use, all of one small study."""
    folder = tmp_path_factory.mktemp("studies")
    task = {"dataset": "checkers", "dataset_params": {"n_train": 100, "n_test": 50}}
    for name, tuned in (("quickstart", {}), ("tuned", {"tune": {"C": [1, 9]}})):
        study = marginbench.Study(name=name, seeds=1, task=[task | tuned], solver=[{"name": "SMO"}])
        study = completed_study(study, StudyFile("study"))
        ended = run_study(study, folder / "results" / name, executor=InProcess())
        assert ended.exit_code == 0
    shutil.copytree(folder / "results" / "quickstart", folder / "results" / "sbp12-adult")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_RESULTS)
def test_the_python_of_a_page_reads_results(name, studies, monkeypatch):
    monkeypatch.chdir(studies)
    names = {}
    for code in blocks(ROOT / "docs" / name, "python"):
        exec(compile(code, name, "exec"), names)
    if "verify" in names:
        (journal,) = (studies / "results" / "quickstart" / "journal").glob("*.jsonl")
        names["verify"](journal)
        changed = studies / "changed"
        changed.write_bytes(journal.read_bytes().replace(b'"record"', b'"Record"'))
        with pytest.raises(AssertionError):
            names["verify"](changed)


def test_links_between_files_of_the_checkout_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            # Pages that the site generates are not in the checkout.
            assert (page.parent / target).exists(), (page.name, target)
            assert not target.endswith(".rst"), (page.name, target)
