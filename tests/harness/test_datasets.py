"""The user's own data in studies: where they are found, what keys and pages know of them."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from marginbench import report
from marginbench.data_loaders import DataError, import_data
from marginbench.harness.errors import StudyError
from marginbench.harness.evaluation import judging
from marginbench.harness.evaluation.judging import load_task_data
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.plan import kind_named
from marginbench.harness.planning.preflight import preflight
from marginbench.harness.planning.report import explain
from marginbench.harness.results.description import read_description
from marginbench.harness.results.journal import Journal
from marginbench.harness.study.toml import load_study

from .answers import InProcess, Lenient

BANK = "age,job,y\n" + "".join(
    f"{20 + (k * 7) % 40},{('clerk', 'smith', 'poet')[k % 3]},{'yes' if k % 4 == 0 else 'no'}\n"
    for k in range(60)
)
STUDY = """
name = "mine"
seeds = 1
[[task]]
dataset = "data/bank.csv"
dataset_params = { test = "data/late.csv", positive = "yes" }
[[solver]]
name = "Perceptron"
params = { max_epochs = 1 }
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a study and its data."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / "data" / "bank.csv").write_text(BANK)
    (home / "data" / "late.csv").write_text(BANK.replace("20", "21"))
    (home / "mine.toml").write_text(STUDY)
    return home


def planned(study):
    """The runs of a study, and what the user is told."""
    told = []
    kind = kind_named(study.kind)
    facts = preflight(study, InProcess(), told.append)
    return kind.plan(study, facts), told


def test_paths_begin_at_the_study_file(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    (task,) = load_study("home/mine.toml").tasks
    assert (task.label, task.names) == ("bank.csv", ("bank.csv", "data/bank.csv"))
    for old, new, message in (
        ("late.csv", "lost.csv", "home/mine.toml:5: task[1].dataset: data/lost.csv: no such file"),
        ("bank.csv", "bnak.csv", "task[1].dataset: data/bnak.csv: no such file (did you mean"),
        ("positive", "positiv", "unknown option 'positiv' (did you mean 'positive'?)"),
    ):
        (folder / "mine.toml").write_text(STUDY.replace(old, new))
        with pytest.raises(StudyError, match=re.escape(message)):
            load_study("home/mine.toml")


def test_what_the_data_are_decides_the_key(folder, tmp_path, monkeypatch):
    (first,), told = planned(load_study(folder / "mine.toml"))
    assert told[0].startswith("data/bank.csv: target: column 'y': +1 = 'yes' (15 training, 15 test")
    assert first.columns["dataset"] == "data/bank.csv"
    # The same file elsewhere, and nothing new to tell.
    moved = folder.rename(tmp_path / "moved")
    (again,), told = planned(load_study(moved / "mine.toml"))
    assert (again.key, told) == (first.key, [])
    problem = again.work.problem
    assert load_task_data(problem) is load_task_data(problem)
    (moved / "data" / "bank.csv").write_text(BANK.replace("27,", "28,"))
    (edited,), told = planned(load_study(moved / "mine.toml"))
    assert edited.key != first.key
    assert told
    # Data that change after the planning are refused.
    monkeypatch.setattr(judging, "_LOADED", {})  # as in another process
    with pytest.raises(DataError, match=r"^data/bank.csv: has changed since the runs were planned"):
        load_task_data(problem)


def test_the_width_follows_from_the_data(folder):
    study = load_study(folder / "mine.toml")
    (task,) = study.tasks
    assert (task.C, task.gamma) == (1.0, None)
    (found,), _ = planned(study)
    problem = found.work.problem
    X = load_task_data(problem).X_train.astype(float)
    assert problem.kernel["gamma"] == float(f"{1 / (X.shape[1] * X.var()):.3g}")
    assert json.loads(found.columns["kernel"])["gamma"] == problem.kernel["gamma"]
    (found,), _ = planned(study.with_tasks([task.model_copy(update={"gamma": 0.5})]))
    assert found.work.problem.kernel["gamma"] == 0.5


def test_results_say_what_was_decided_and_are_explained_from_anywhere(
    folder, tmp_path, monkeypatch
):
    results = folder / "results"
    run_study(load_study(folder / "mine.toml"), results, executor=InProcess())
    assert str(folder) not in (results / "study.json").read_text()
    described = read_description(results)
    assert described["tasks"][0]["dataset"] == "data/bank.csv"
    assert described["study"]["tasks"]["bank.csv"]["dataset"] == "../data/bank.csv"
    assert described["tasks"][0]["decided"][-1].startswith("scale: standard")
    monkeypatch.chdir(tmp_path)
    (item,) = explain(results, InProcess())
    assert item.state == "recorded"
    (folder / "data" / "bank.csv").write_text(BANK.replace("27,", "28,"))
    (item,) = explain(results, InProcess())
    assert item.state == "stale"
    assert "task.fingerprint" in [difference.field for difference in item.differences]
    (folder / "data" / "bank.csv").unlink()
    (item,) = explain(results, Lenient())
    assert (item.state, item.differences) == ("stale", ())
    assert item.reason == "it cannot start: ../data/bank.csv: no such file"


def test_an_imported_dataset_is_like_the_file(folder):
    import_data("bank", folder / "data" / "bank.csv", replace=True)
    file, keys = folder / "mine.toml", []
    for dataset in ("bank", "data/bank.csv"):
        tables = f"[[task]]\ndataset = '{dataset}'\nlabel = 'x'\n[[solver]]\nname = 'Perceptron'\n"
        file.write_text(f"name = 'mine'\n{tables}")
        keys.append([run.key for run in planned(load_study(file))[0]])
    assert keys[0] == keys[1]


def test_images_of_ones_own(folder):
    rows = "".join(f"{k % 9},{k % 7},{'abc'[k % 3]}\n" for k in range(90))
    keys = set()
    for name in ("here.csv", "there.csv"):
        (folder / name).write_text("u,v,y\n" + rows)
        (folder / "mine.toml").write_text(
            "kind = 'feasibility'\nname = 'mine'\n[[images]]\nlabel = 'abc'\n"
            f"dataset = '{name}'\nn_train = 30\nn_validation = 15\ngammas = [1.0]\n"
            "stages = [2]\ntuning_iterations = 2\n[[method]]\nname = 'MPKFP'\n"
        )
        (found,), _ = planned(load_study(folder / "mine.toml"))
        keys.add(found.key)
        assert json.loads(found.columns["problem"])["dataset"] == name
        assert found.work.run(lambda message: None)["status"] == "budget"
    assert len(keys) == 1


def test_code_that_makes_data_runs_when_they_are_loaded_and_not_before(folder):
    log = folder / "log"
    (folder / "mine.py").write_text(
        "import numpy as np\n"
        f"open({str(log)!r}, 'a').write('imported ')\n"
        "def load():\n    return np.eye(40), np.arange(40) % 2\n"
    )
    file = folder / "mine.toml"
    file.write_text(
        "name = 'mine'\n[[task]]\ndataset = 'mine.py:load'\nreference = false\n"
        "[[solver]]\nname = 'Perceptron'\n"
    )
    study = load_study(file)
    assert not log.exists()
    runs, _ = planned(study)
    assert {(run.task, run.failure) for run in runs} == {("load", "")}
    assert log.read_text() == "imported "


def test_a_file_on_the_command_line_from_end_to_end(folder, in_this_process, monkeypatch, run):
    monkeypatch.chdir(folder / "data")
    monkeypatch.setenv("MARGINBENCH_CACHE", str(folder / "cache"))
    command = ["run", "--dataset", "bank.csv", "--solver", "SMO", "--seeds", "1"]
    (code, out, told), (again, _, told_again) = run(*command), run(*command)
    assert code == again == 0
    assert "bank.csv: target: column 'y': +1 = 'yes' (11 training, 4 test rows)" in told
    assert "1 run: 1 converged" in out
    assert "1 of 1 runs already recorded" in told_again
    assert "bank.csv: target" not in told_again
    results = folder / "data" / "results" / "bank-SMO"
    (record,) = Journal(results).records()
    assert (record.dataset, record.n_train, record.n_test) == ("bank.csv", 42, 18)
    described = read_description(results)
    assert (described["title"], described["description"]) == ("SMO on bank.csv", "")
    assert described["command"] == f"marginbench {' '.join(command)}"
    page = report(results).read_text()
    assert described["tasks"][0]["decided"][1] in page
    assert str(folder) not in page


def test_data_that_could_not_be_loaded_are_not_planned_again(
    folder, in_this_process, monkeypatch, run
):
    monkeypatch.chdir(folder / "data")
    monkeypatch.setenv("MARGINBENCH_CACHE", str(folder / "cache"))
    Path("bad.csv").write_text("a,y\n1,yes\n2\n")
    planned, codes = [], []
    for data in ("bad.csv", "digits", "bank.csv"):
        command = ("run", "quickstart", "--dataset", data, "--solver", "LIBSVM", "--seeds", "1")
        codes.append(run(*command, "--where", "fit_intercept == False")[0])
        described = json.loads(Path("results/quickstart/study.json").read_text())
        planned.append({run["task"] for run in described["planned"]})
    # LIBSVM skips tasks without bias: nothing is solved here.
    assert codes == [3, 0, 0]
    assert planned == [{"bad.csv"}, {"digits"}, {"digits", "bank.csv"}]
    assert described["command"].count("bad.csv") == 0


def test_the_commands_about_imported_data(folder, monkeypatch, run):
    monkeypatch.setenv("MARGINBENCH_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)
    call = partial(run, "data")

    code, out, _ = call("import", "bank", "data/bank.csv", "--option", "positive=no")
    assert code == 0
    assert out.startswith("bank: target: column 'y': +1 = 'no' (")
    assert call("import", "bank", "data/bank.csv")[::2] == (
        3,
        "marginbench: bank: was imported before; remove it with 'marginbench data remove bank', or "
        "replace it\n",
    )
    code, out, _ = call(
        *("import", "bank", "data/bank.csv", "data/late.csv", "--replace"),
        *("--option", 'drop=["job"]', "--format", "csv"),
    )
    assert "split: a training and a test part as given (60 training and 60 test rows)" in out
    (listed,) = [item for item in json.loads(call("list", "--json")[1]) if item["name"] == "bank"]
    assert listed["state"] == "ok"
    assert listed["size_bytes"] > 1000
    assert listed["decided"][3] == "dropped columns: job"
    assert json.loads(call("info", "bank", "--json")[1]) == [listed]
    assert "\n  dropped columns: job\n" in call("info", "bank")[1]
    assert re.search(
        r"^bank +imported +ok, [0-9.]+ kB; target: column 'y'", call("list")[1], re.MULTILINE
    )
    assert call("verify", "bank")[1].startswith("bank: ok: ")
    assert call("import", "other", "data/bank.csv", "--option", "taget=y")[::2] == (
        2,
        "marginbench: unknown option 'taget' (did you mean 'target'?)\n",
    )
    assert call("remove", "bank")[:2] == (0, "bank: removed\n")
    assert call("remove", "bank")[0] == 3
    assert "imported" not in call("list")[1]
