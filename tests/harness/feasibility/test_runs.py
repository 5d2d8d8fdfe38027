"""Studies of feasibility methods: files, selection, records, resuming, and what counts as done."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import marginbench.harness.feasibility_runner as runner
from marginbench.harness import image_classes, separation
from marginbench.harness.errors import StudyError, UserError
from marginbench.harness.feasibility.records import FeasibilityStore, Stage
from marginbench.harness.feasibility.study import FeasibilityStudy, select_parts
from marginbench.harness.feasibility_runner import plan_feasibility, run_feasibility
from marginbench.harness.jobs import Ended, ImagesJob, Outcome, SeparationJob, Started
from marginbench.harness.records import RecordError
from marginbench.harness.study_file import load_study, parse_study

STUDY = """
kind = "feasibility"
name = "small"
[budget]
timeout = 20.0
[[cell]]
label = "easy"
generator = "ldfp"
tol = 0.0
m = 8
n = 100
kappa = 1.5
instances = 2
published = { MPLFP = 1.5, PCT = "TO" }
[[cell]]
label = "none"
generator = "lap"
tol = 1e-2
m = 3
n = 30
instances = 1
[[method]]
name = "mplfp"
label = "MPLFP"
[[method]]
name = "PCT"
label = "PCT, 3 steps"
params = { max_iter = 3 }
"""
IMAGES = """
[[images]]
label = "digits"
dataset = "mnist"
gammas = [0.5, 2.0]
n_train = 100
n_validation = 50
stages = [5, 20]
[[method]]
name = "MPKFP"
"""


class InThisProcess:
    """Runs jobs here and now; a job may be answered by an outcome made up beforehand."""

    def __init__(self, outcomes=None):
        self.outcomes = outcomes or {}
        self.done = []

    def execute(self, jobs):
        for job in jobs:
            self.done.append(job)
            yield Started(job)
            made_up = self.outcomes.get(getattr(job.work, "seed", None))
            yield Ended(
                job, made_up or Outcome("done", separation.separate(job.work, print_nothing))
            )

    def close(self):
        pass


def print_nothing(message):
    pass


@pytest.fixture
def study():
    return parse_study(STUDY.encode(), where="small.toml")


def run(study, folder, executor=None, **options):
    executor = executor or InThisProcess()
    return run_feasibility(study, folder, executor=executor, **options), executor.done


def recorded(folder):
    return {
        (record.part, record.method, record.seed): record
        for record in FeasibilityStore(folder / "runs").scan()
    }


def test_every_run_has_a_checked_record(study, tmp_path):
    summary, jobs = run(study, tmp_path, command="marginbench run small.toml")
    assert summary.exit_code == 0
    assert summary.planned == len(jobs) == 6
    records = recorded(tmp_path)
    assert len(records) == 6
    easy, none = records["easy", "MPLFP", 1], records["none", "MPLFP", 0]
    assert (easy.status, easy.found) == ("converged", "separable")
    assert (none.status, none.found) == ("converged", "inseparable")
    assert easy.phi_lo > 0
    assert none.phi_up <= 1e-2
    assert easy.matvecs == 4 * easy.n_iter
    assert easy.inner_products == 4 * 100 * easy.n_iter
    assert json.loads(easy.problem) == {
        "generator": "ldfp",
        "m": 8,
        "n": 100,
        "kappa": 1.5,
        "tol": 0.0,
    }
    assert json.loads(easy.params)["max_iter"] == 1_000_000
    assert easy.trace[-1].iteration == easy.n_iter
    assert 0 <= easy.cpu_s < 20
    assert easy.trace[-1].phi_lo == pytest.approx(easy.phi_lo, abs=1e-12)
    cut = records["none", "PCT, 3 steps", 0]
    assert (cut.status, cut.found, cut.n_iter) == ("budget", "budget", 3)
    assert cut.reason == "max_iter=3 iterations are done"
    described = json.loads((tmp_path / "study.json").read_text())
    assert described["kind"] == "feasibility"
    assert described["parts"][0]["published"] == {"MPLFP": 1.5, "PCT": "TO"}
    assert {run["key"] for run in described["planned"]} == {r.key for r in records.values()}


def test_a_second_call_repeats_nothing_and_a_larger_study_adds(study, tmp_path):
    small = select_parts(study, seeds=1)
    run(small, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    summary, jobs = run(small, tmp_path)
    assert (summary.already_recorded, len(jobs)) == (4, 0)
    summary, jobs = run(study, tmp_path)
    assert (summary.already_recorded, len(jobs)) == (4, 2)
    assert {job.work.seed for job in jobs} == {1}
    for path, changed in before.items():
        assert path.stat().st_mtime_ns == changed


def test_a_run_that_was_cut_off_is_repeated_with_more_time_only(study, tmp_path):
    quick = select_parts(study, datasets=["easy"], solvers=["MPLFP"], seeds=1, timeout=1e-9)
    run(quick, tmp_path)
    record = recorded(tmp_path)["easy", "MPLFP", 0]
    assert (record.status, record.n_iter) == ("budget", 1)
    assert record.reason == "max_seconds=1e-09 are over"
    assert run(quick, tmp_path)[1] == []
    slow = select_parts(quick, timeout=20.0)
    assert len(run(slow, tmp_path)[1]) == 1
    assert recorded(tmp_path)["easy", "MPLFP", 0].status == "converged"


@pytest.mark.parametrize("status", ["timeout", "memory", "crashed", "failed"])
def test_a_run_that_fails_leaves_a_record(study, tmp_path, status):
    broken = InThisProcess({1: Outcome(status, reason="it broke", traceback="where")})
    summary, _ = run(study, tmp_path, broken)
    assert summary.exit_code == 1
    assert len(summary.unexpected) == 2
    record = recorded(tmp_path)["easy", "MPLFP", 1]
    assert (record.status, record.reason, record.traceback) == (status, "it broke", "where")
    assert record.n_iter is None
    assert run(study, tmp_path)[1] == []
    assert len(run(study, tmp_path, retry_failed=True)[1]) == 2


def test_a_false_certificate_is_wrong(study, tmp_path, monkeypatch):
    from marginbench.solvers import MPLFP

    solve = MPLFP.solve

    def lie(self, A, **limits):
        result = solve(self, A, **limits)
        return replace(result, y=-result.y)

    monkeypatch.setattr(MPLFP, "solve", lie)
    summary, _ = run(select_parts(study, datasets=["easy"], solvers=["MPLFP"]), tmp_path)
    assert summary.statuses == {"wrong": 2}
    assert summary.exit_code == 1
    assert "y does not separate" in recorded(tmp_path)["easy", "MPLFP", 0].reason


def test_a_damaged_record_is_put_aside_and_done_again(study, tmp_path):
    run(study, tmp_path)
    path = sorted((tmp_path / "runs").glob("*.parquet"))[0]
    path.write_bytes(path.read_bytes()[:100])
    assert len(run(study, tmp_path)[1]) == 1
    assert path.with_name(path.name + ".damaged").is_file()
    with pytest.raises(RecordError, match="not a readable record"):
        FeasibilityStore(tmp_path).read(path.with_name(path.name + ".damaged"))


def test_the_key_knows_what_changes_a_run(study):
    def keys(study):
        return [run.key for run in plan_feasibility(study)]

    first = keys(study)
    assert len(set(first)) == 6
    assert keys(parse_study(STUDY.encode(), where="again")) == first
    assert keys(select_parts(study, timeout=3.0)) == first
    for old, new in (("kappa = 1.5", "kappa = 4.0"), ("tol = 1e-2", "tol = 2e-2")):
        other = keys(parse_study(STUDY.replace(old, new).encode(), where="other"))
        assert other != first
    published = STUDY.replace("MPLFP = 1.5", "MPLFP = 2.5")
    assert keys(parse_study(published.encode(), where="other")) == first


def test_runs_go_through_worker_processes(study, tmp_path):
    chosen = select_parts(study, datasets=["none"], solvers=["MPLFP"])
    summary = run_feasibility(chosen, tmp_path)
    assert summary.statuses == {"converged": 1}
    assert recorded(tmp_path)["none", "MPLFP", 0].peak_memory_mb > 10
    (path,) = (tmp_path / "runs").glob("*.parquet")
    assert pq.read_table(path)["found"][0].as_py() == "inseparable"


@pytest.mark.parametrize(
    ("selection", "parts", "methods"),
    [
        ({"datasets": ["EASY"]}, ["easy"], 2),
        ({"datasets": ["lap"]}, ["none"], 2),
        ({"solvers": ["pct"]}, ["easy", "none"], 1),
        ({"solvers": ["PCT, 3 steps", "MPLFP"]}, ["easy", "none"], 2),
    ],
)
def test_parts_and_methods_are_selected_by_label_or_name(study, selection, parts, methods):
    chosen = select_parts(study, **selection)
    assert [part.label for part in chosen.parts] == parts
    assert len(chosen.method) == methods


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"datasets": ["eazy"]}, "unknown dataset 'eazy' in this study .*easy"),
        ({"solvers": ["MPLP"]}, "unknown solver 'MPLP' in this study .*MPLFP"),
        ({"seeds": 0}, "the number of seeds must be from 1 to"),
        ({"timeout": 0.0}, "the timeout must be a number of seconds > 0, not 0"),
    ],
)
def test_a_selection_that_makes_no_sense_is_refused(study, selection, message):
    with pytest.raises(StudyError, match=message):
        select_parts(study, **selection)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "feasibility"', 'kind = "other"', "kind = 'other' is not known"),
        ('generator = "lap"', 'generator = "lab"', r"cell\[2\].generator = 'lab' is not known"),
        ("kappa = 1.5", "kapa = 1.5", r"unknown key 'cell\[1\].kapa' .*kappa"),
        ("instances = 2", "instances = 0", r"cell\[1\].instances = 0"),
        ('name = "mplfp"', 'name = "SMO"', r"method\[1\].name: unknown method 'SMO'"),
        ('label = "none"', 'label = "Easy"', "two entries of .*cell.* have the label 'easy'"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_one_line(old, new, message):
    with pytest.raises(StudyError, match=message) as failure:
        parse_study(STUDY.replace(old, new).encode(), where="small.toml")
    assert str(failure.value).startswith("small.toml: ")
    assert "\n" not in str(failure.value)


def test_parts_without_methods_and_parameters_without_a_method_are_refused(study):
    linear = STUDY[: STUDY.index("[[method]]")] + '[[method]]\nname = "MPKFP"\n'
    with pytest.raises(StudyError, match=r"'easy' needs a method on columns \(MPLFP\)"):
        plan_feasibility(parse_study(linear.encode(), where="f"))
    wrong = STUDY.replace("max_iter = 3", "max_itr = 3")
    with pytest.raises(StudyError, match="method 'PCT, 3 steps': unknown parameter 'max_itr'"):
        plan_feasibility(parse_study(wrong.encode(), where="f"))
    decided = STUDY.replace("max_iter = 3", "tol = 0.5")
    with pytest.raises(StudyError, match=r"'tol' is decided by \[\[cell\]\]"):
        plan_feasibility(parse_study(decided.encode(), where="f"))
    head = 'kind = "feasibility"\nname = "i"\n'
    images = parse_study((head + IMAGES + "params = { gamma = 1.0 }").encode(), where="f")
    with pytest.raises(StudyError, match=r"'gamma' is decided by \[\[images\]\]"):
        plan_feasibility(images)
    with pytest.raises(StudyError, match="needs at least one"):
        parse_study((head + '[[method]]\nname = "MPLFP"').encode(), where="f")
    with pytest.raises(StudyError, match="unknown dataset 'minst'"):
        parse_study((head + IMAGES.replace('"mnist"', '"minst"')).encode(), where="f")
    with pytest.raises(UserError, match="number of jobs must be at least 1"):
        run_feasibility(study, Path("nowhere"), jobs=0)


@pytest.fixture
def four_classes(monkeypatch):
    """Clusters of four classes in place of a dataset."""
    rng = np.random.default_rng(0)

    class Data:
        y_train, y_test = np.arange(400) % 4, np.arange(80) % 4
        X_train = 0.5 * rng.standard_normal((400, 6)) + np.eye(4, 6)[y_train]
        X_test = 0.5 * rng.standard_normal((80, 6)) + np.eye(4, 6)[y_test]

    monkeypatch.setattr(image_classes, "load", lambda name, params: Data)
    return Data


def images_job(**changes):
    job = ImagesJob(
        dataset="mnist", dataset_params={}, n_train=100, n_validation=40, unit_norm=True,
        gammas=(1e-4, 2.0), tuning_iterations=10, stages=(1, 5, 30), seed=0,
        method="marginbench.solvers.feasibility.kernel_methods:MPKFP",
        params={"tol": 0.0, "dtype": "float64"},
    )  # fmt: skip
    return replace(job, **changes)


def test_images_are_drawn_evenly_and_the_parts_do_not_meet(four_classes):
    points = image_classes._draw(images_job(unit_norm=False))
    (X, y), (V, v) = points["train"], points["validation"]
    assert np.bincount(y).tolist() == [25] * 4
    assert np.bincount(v).tolist() == [10] * 4
    rows = {tuple(row) for row in X}
    assert not rows & {tuple(row) for row in V}
    assert rows < {tuple(row) for row in four_classes.X_train}
    assert points["test"][0] is four_classes.X_test
    other = image_classes._draw(images_job(unit_norm=False, seed=1))["train"][0]
    assert not np.array_equal(other, X)
    unit = image_classes._draw(images_job())["test"][0]
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-12)
    with pytest.raises(image_classes.DataError, match="class 0 has only 100 points"):
        image_classes._draw(images_job(n_train=396))


def test_images_are_trained_with_the_best_width_and_scored_at_stages(four_classes):
    outcome = image_classes.classify(images_job(), print_nothing)
    assert set(outcome.validation) == {"0.0001", "2.0"}
    assert outcome.gamma == min(
        outcome.validation, key=outcome.validation.get
    ) or outcome.gamma in (
        1e-4,
        2.0,
    )
    assert [stage.iteration for stage in outcome.trace] == [1, 5, 30]
    # The stages are shorter runs.
    short = image_classes.classify(images_job(stages=(5,), gammas=(outcome.gamma,)), print_nothing)
    assert short.test_error == outcome.trace[1].test_error
    assert outcome.test_error == outcome.trace[-1].test_error < 0.5
    assert all(np.diff([stage.matvecs for stage in outcome.trace]) >= 0)
    assert outcome.kernel_evals == 100 * 100
    assert isinstance(outcome.trace[0], Stage)


def test_the_shipped_studies_of_feasibility_are_planned():
    table = load_study("mpfp14-table2")
    assert isinstance(table, FeasibilityStudy)
    sizes = {(part.generator, part.m, part.n, part.instances) for part in table.cell}
    assert {(g, m, n, 20 if n == 5000 else 3) for g in ("ldfp", "lap") for m in (100, 1000)
            for n in (5000, 50_000)} == sizes  # fmt: skip
    assert all(part.kappa == 1.0 for part in table.cell)
    assert len(plan_feasibility(table)) == 2 * 2 * (20 + 3) * len(table.method)
    figure = load_study("mpfp14-figure1")
    assert [part.kappa for part in figure.cell] == list(range(1, 11))
    assert {(part.m, part.n) for part in figure.cell} == {(100, 5000)}
    (images,) = load_study("mpfp14-images").images
    assert (images.n_train, images.stages) == (10_000, (10, 32, 100, 320, 1000))


def test_a_job_names_its_class_and_limit(study):
    planned = plan_feasibility(study)[0]
    assert planned.job == SeparationJob(
        generator="ldfp", m=8, n=100, kappa=1.5, seed=0,
        method="marginbench.solvers.feasibility.methods:MPLFP", params={"tol": 0.0},
        max_seconds=20.0,
    )  # fmt: skip
    assert runner.problem_of(study.cell[1])["generator"] == "lap"
