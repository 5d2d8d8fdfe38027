"""What a folder plans after several commands: its page shows all that its records hold."""

import pytest

from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.manifest import restored
from marginbench.harness.results.description import read_description
from marginbench.harness.results.journal import Journal
from marginbench.harness.study.select import select
from marginbench.harness.study.svm import Study
from marginbench.reports import analysis
from marginbench.reports.results import load_results
from marginbench.reports.views.svm import protocol_section

from .answers import InProcess
from .conftest import BOARD


@pytest.fixture
def command(tmp_path):
    """Runs a part of a study, as the command line does."""

    def run(whole, **selection):
        return run_study(
            select(whole, **selection),
            tmp_path / "results",
            whole=whole,
            command=f"run {sorted(selection)}" if selection else "run",
            executor=InProcess(),
        )

    return run


def described(folder):
    return read_description(folder / "results")


def planned(folder):
    return [(run["task"], run["solver"], run["seed"]) for run in described(folder)["planned"]]


def caution(folder):
    """What the page says of parts."""
    found = analysis.cautions(load_results(folder / "results"))
    return [text for text in found if "part of the study" in text]


def test_parts_add_up_and_the_page_says_what_they_are(tmp_path, whole, command):
    odd = '(C == 1 and solver == "Pegasos") or (C == 2 and seed == 1 and class != "Pegasos")'
    summary = command(whole, where=odd)
    assert (summary.planned, summary.part) == (3, f"where {odd}")
    first = [("a", "Pegasos", 0), ("a", "Pegasos", 1), ("b", "Perceptron", 1)]
    assert planned(tmp_path) == first
    assert caution(tmp_path) == ["Only a part of the study was run: 3 of 8 runs."]
    summary = command(whole, datasets=["b"], solvers=["Perceptron"])
    assert (summary.planned, summary.part) == (2, "1 of 2 tasks, 1 of 2 solvers")
    assert planned(tmp_path) == [*first[:2], ("b", "Perceptron", 0), first[2]]
    found = described(tmp_path)
    assert (found["title"], found["command"]) == (
        "A board",
        "run ['where']\nrun ['datasets', 'solvers']",
    )
    assert command(whole).part == ""
    before = described(tmp_path)
    assert before["command"] == "run"
    assert (len(before["planned"]), before["of"]["runs"], before["seeds"]) == (8, 8, [0, 1])
    summary = command(whole, datasets=["b"], seeds=1)
    assert (summary.planned, summary.part) == (2, "1 of 2 tasks, 1 of 2 seeds")
    assert described(tmp_path) == before
    assert caution(tmp_path) == []


def test_what_the_study_no_longer_has_or_has_changed_is_dropped(tmp_path, whole, command):
    command(whole)
    fewer = whole.with_solvers(whole.solvers[:1]).with_seeds(1)
    command(fewer, datasets=["a"])
    assert planned(tmp_path) == [("a", "Perceptron", 0), ("b", "Perceptron", 0)]
    # Their records stay, and are used again with the entries.
    assert len(Journal(tmp_path / "results").entries) == 8
    assert command(whole).already_recorded == 8
    # The page would show runs of a changed entry beside a description that is not theirs.
    tasks = [whole.task[0], whole.task[1].model_copy(update={"C": 3.0})]
    command(whole.with_tasks(tasks), datasets=["a"])
    assert {task for task, *_ in planned(tmp_path)} == {"a"}
    command(whole)
    entry = whole.solver[1].model_copy(update={"params": {"max_epochs": 2}})
    command(whole.with_solvers([whole.solver[0], entry]), datasets=["a"])
    assert {solver for task, solver, _ in planned(tmp_path) if task == "b"} == {"Perceptron"}
    # More seeds than the study has stay.
    command(whole, datasets=["a"], solvers=["Perceptron"], seeds=3)
    command(whole)
    assert (len(planned(tmp_path)), described(tmp_path)["seeds"]) == (9, [0, 1, 2])


def test_a_solver_that_an_option_added_stays(tmp_path, whole, command):
    file = tmp_path / "mine.py"
    file.write_text("from marginbench import Perceptron\nclass Mine(Perceptron): pass\n")
    command(whole)
    summary = command(whole, solvers=[f"{file}:Mine"], datasets=["a"])
    assert summary.part == "1 of 2 tasks, 0 of 2 solvers, 1 more solver"
    command(whole)
    found = described(tmp_path)
    for run in found["planned"]:
        assert run.get("added", False) == (run["solver"] == "Mine")
    assert planned(tmp_path)[4:6] == [("a", "Mine", 0), ("a", "Mine", 1)]
    assert found["command"].split("\n") == ["run", "run ['datasets', 'solvers']"]
    assert [entry["label"] for entry in found["solvers"]] == ["Perceptron", "Pegasos", "Mine"]
    assert caution(tmp_path) == []
    # The file of the solver is named from the folder, so that both can be moved together.
    assert found["study"]["solvers"]["Mine"]["name"] == "../mine.py:Mine"
    study = restored(Study, found["study"], tmp_path / "results").part
    assert study.solvers[-1].name == f"{file}:Mine"
    assert study.with_solvers(study.solvers[:2]) == whole


def test_the_page_says_which_solvers_ran_once(tmp_path, make_study, command):
    smo, pegasos = {"name": "SMO"}, {"name": "Pegasos", "params": {"max_epochs": 1}}
    for first, said in ((smo, ["SMO"]), (smo | {"seeds": 2}, [])):
        command(make_study(task=[BOARD], solver=[first, pegasos], seeds=2))
        (section,) = protocol_section(load_results(tmp_path / "results"))
        assert section.data["run_once"] == said
