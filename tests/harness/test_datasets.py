"""The user's own data and solver in studies: found, known to keys and pages, and asked for once."""

import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest

from marginbench import report
from marginbench.data_loaders import DataError, import_data
from marginbench.harness.errors import StudyError
from marginbench.harness.evaluation import judging
from marginbench.harness.evaluation.judging import load_task_data
from marginbench.harness.evaluation.svm import ReferenceWork
from marginbench.harness.execution.runner import run_study
from marginbench.harness.planning.plan import kind_named
from marginbench.harness.planning.preflight import FACTS, preflight
from marginbench.harness.planning.report import explain, preview
from marginbench.harness.results.description import read_description
from marginbench.harness.results.journal import Journal
from marginbench.harness.study.toml import load_study

from .answers import InProcess, Lenient
from .conftest import write

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
name = "mine.py:Mine"
params = { max_epochs = 1 }
"""
SOLVER = """
from marginbench import Perceptron

class Mine(Perceptron):
    "A solver of a user."

    number = 1
"""
#: Studies of one task.
TASK = """
name = "mine"
task = [{ label = "x", dataset = "DATASET", reference = false }]
solver = [{ name = "Perceptron" }]
"""
IMAGES = """
name = "mine"
kind = "feasibility"
method = [{ name = "MPKFP" }]
[[images]]
label = "x"
dataset = "DATASET"
n_train = 10
n_validation = 4
gammas = [1.0]
stages = [2]
tuning_iterations = 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a study, its data and its solver, and a cache of its own."""
    data = {"data/bank.csv": BANK, "data/late.csv": BANK.replace("20", "21")}
    write(tmp_path / "home", {"mine.toml": STUDY, "mine.py": SOLVER, **data})
    monkeypatch.setenv("MARGINBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "home"


def edit(file, old, new):
    """Change a text in a file; its text before."""
    before = file.read_text()
    assert old in before
    file.write_text(before.replace(old, new))
    return before


@pytest.fixture
def ran(folder):
    """Runs the study; how much was asked of the executor, and the summary."""

    def call():
        executor, study = Lenient(), load_study(folder / "mine.toml")
        summary = run_study(study, folder / "results", executor=executor)
        return len(executor.asked), summary

    return call


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
    assert (task.C, task.gamma) == (1.0, None)
    for old, new, message in (
        ("late.csv", "lost.csv", "home/mine.toml:5: task[1].dataset: data/lost.csv: no such file"),
        ("bank.csv", "bnak.csv", "task[1].dataset: data/bnak.csv: no such file (did you mean"),
        ("positive", "positiv", "unknown option 'positiv' (did you mean 'positive'?)"),
    ):
        (folder / "mine.toml").write_text(STUDY.replace(old, new))
        with pytest.raises(StudyError, match=re.escape(message)):
            load_study("home/mine.toml")


def test_what_the_data_are_decides_the_key_and_the_width(folder, tmp_path, monkeypatch):
    (first,), told = planned(load_study(folder / "mine.toml"))
    assert told[0].startswith("data/bank.csv: target: column 'y': +1 = 'yes' (15 training, 15 test")
    assert first.columns["dataset"] == "data/bank.csv"
    # The same file elsewhere, and nothing new to tell.
    moved = folder.rename(tmp_path / "moved")
    (again,), told = planned(load_study(moved / "mine.toml"))
    assert (again.key, told) == (first.key, [])
    problem = again.work.problem
    data = load_task_data(problem)
    assert load_task_data(problem) is data
    X = data.X_train.astype(float)
    assert problem.kernel["gamma"] == float(f"{1 / (X.shape[1] * X.var()):.3g}")
    assert json.loads(again.columns["kernel"]) == problem.kernel
    # Data that change after the planning are refused.
    edit(moved / "data" / "bank.csv", "27,", "28,")
    assert planned(load_study(moved / "mine.toml"))[1]
    monkeypatch.setattr(judging, "_LOADED", {})  # as in another process
    with pytest.raises(DataError, match=r"^data/bank.csv: has changed since the runs were planned"):
        load_task_data(problem)


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
    edit(folder / "data" / "bank.csv", "27,", "28,")
    (item,) = explain(results, InProcess())
    assert item.state == "stale"
    assert "task.fingerprint" in [difference.field for difference in item.differences]
    (folder / "data" / "bank.csv").unlink()
    (item,) = explain(results, Lenient())
    assert (item.state, item.differences) == ("stale", ())
    assert item.reason == "it cannot start: ../data/bank.csv: no such file"


@pytest.mark.parametrize(
    ("tables", "names"),
    [(TASK, ("bank", "data/bank.csv", "copy.csv")), (IMAGES, ("data/bank.csv", "copy.csv"))],
    ids=["svm", "images"],
)
def test_a_dataset_is_what_it_holds_whether_imported_or_in_any_file(folder, tables, names):
    import_data("bank", folder / "data" / "bank.csv", replace=True)
    shutil.copy(folder / "data" / "bank.csv", folder / "copy.csv")
    keys = set()
    for name in names:
        (folder / "mine.toml").write_text(tables.replace("DATASET", name))
        run = planned(load_study(folder / "mine.toml"))[0][0]
        assert f'"{name}"' in json.dumps(run.columns).replace("\\", "")
        assert run.work.run(lambda message: None)["status"] in ("converged", "budget")
        keys.add(run.key)
    assert len(keys) == 1


def test_code_that_makes_data_runs_when_they_are_loaded_and_not_before(folder):
    (folder / "points.py").write_text(
        "import numpy as np\n"
        "open(__file__ + '.log', 'a').write('imported ')\n"
        "def load():\n    return np.eye(40), np.arange(40) % 2\n"
    )
    (folder / "mine.toml").write_text(TASK.replace("DATASET", "points.py:load"))
    study, log = load_study(folder / "mine.toml"), folder / "points.py.log"
    assert not log.exists()
    runs, _ = planned(study)
    assert {run.failure for run in runs} == {""}
    assert log.read_text() == "imported "


def test_what_has_changed_is_asked_and_run_again(folder, ran):
    ran()
    for name, old, new in (
        ("mine.py", "number = 1", "number = 2"),
        ("data/bank.csv", "27,", "28,"),
        ("data/late.csv", "27,", "28,"),
        ("mine.toml", "[[solver]]", "C = 2.0\n[[solver]]"),
    ):
        before = edit(folder / name, old, new)
        asked, summary = ran()
        assert asked > 0
        assert (summary.changed, summary.already_recorded) == (True, 0), name
        (folder / name).write_text(before)
        assert ran()[1].already_recorded == 1


def test_only_what_is_lost_is_asked_for_by_a_command_with_nothing_left_to_do(
    folder, ran, monkeypatch
):
    def fails(self, send):
        raise DataError("no optimum")

    with monkeypatch.context() as patch:
        patch.setattr(ReferenceWork, "run", fails)
        assert ran()[0] > 0
        assert ran()[0] > 0  # one that could not be had is asked for each time
    _, whole = ran()
    asked, summary = ran()
    assert (asked, summary.changed, summary.already_recorded) == (0, False, 1)
    assert summary.statuses == whole.statuses
    executor = Lenient()
    shown = preview(load_study(folder / "mine.toml"), folder / "results", executor, print)
    assert (executor.asked, shown.counts, shown.solving_s) == ([], {"recorded": 1}, 0)
    for lost in ("datasets/**/*.parquet", "references/*.json", FACTS):
        assert ran()[0] == 0
        for path in folder.parent.rglob(lost):
            path.unlink()
        assert ran()[0] > 0
    (folder / "results" / FACTS).write_text('{"sources": 1')
    assert ran()[0] > 0
    for path in (folder / "results" / "journal").iterdir():
        path.unlink()
    asked, summary = ran()
    assert (asked > 0, summary.already_recorded) == (True, 0)


def test_a_file_on_the_command_line_from_end_to_end(folder, in_this_process, monkeypatch, run):
    monkeypatch.chdir(folder / "data")
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
