"""From tables and methods to runs: who fits what, which parameters are decided, and the keys."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from marginbench.harness.errors import StudyError
from marginbench.harness.evaluation.feasibility import FeasibilityWork
from marginbench.harness.jobs import Outcome
from marginbench.harness.planning.feasibility import KIND
from marginbench.harness.planning.preflight import preflight
from marginbench.harness.study.feasibility import FeasibilityStudy

from ..answers import DATA, FakeExecutor

CELL = {"label": "easy", "generator": "ldfp", "m": 8, "n": 100, "kappa": 1.5, "tol": 0.0}
IMAGES = {
    "label": "ten digits",
    "dataset": "digits",
    "gammas": [0.5, 2.0],
    "n_train": 100,
    "n_validation": 50,
    "stages": [5, 20],
}


def study_of(**tables):
    values = {"name": "small", "cell": [CELL], "method": [{"name": "MPLFP"}], **tables}
    return FeasibilityStudy.model_validate(values)


def plan(study, data=None):
    return KIND.plan(study, preflight(study, FakeExecutor(data), lambda line: None))


def test_methods_run_on_what_they_take_as_often_as_they_are_to():
    methods = [{"name": "MPLFP", "seeds": 1}, {"name": "MPKFP", "seeds": 1}, {"name": "KPCT"}]
    runs = plan(study_of(cell=[{**CELL, "instances": 3}], images=[IMAGES], method=methods))
    assert [(run.task, run.solver, run.seed) for run in runs] == [
        ("easy", "MPLFP", 0),
        ("ten digits", "MPKFP", 0),
        ("ten digits", "KPCT", 0),
    ]
    assert ["generator" in run.work.problem for run in runs] == [True, False, False]
    assert runs[1].work.problem["unit_norm"]  # unless a study says otherwise
    # A run on a cell ends itself at its limit; it is killed only if it does not.
    assert [run.limits.seconds["solve"] for run in runs] == [120.0, 60.0, 60.0]
    cells = plan(study_of(cell=[{**CELL, "instances": 3}], method=[{"name": "VN", "seeds": 9}]))
    assert [run.seed for run in cells] == [0, 1, 2]


def test_a_run_carries_all_that_its_worker_needs():
    (run,) = plan(study_of(cell=[{**CELL, "instances": 1}], budget={"timeout": 20.0}))
    problem = {name: value for name, value in CELL.items() if name != "label"}
    assert run.work == FeasibilityWork(problem, 0, "MPLFP", {"tol": 0.0}, 20.0)
    assert json.loads(run.columns["problem"]) == problem
    params = json.loads(run.columns["params"])
    assert (params["tol"], params["max_iter"]) == (0.0, 1_000_000)
    assert run.columns["solver_class"] == "marginbench:MPLFP"


def keys(data=None, **tables):
    return [run.key for run in plan(study_of(**tables), data)]


def test_the_key_of_a_cell_knows_what_changes_a_run_and_nothing_else():
    base = keys()
    assert len(set(base)) == 20
    for change in (
        {"budget": {"timeout": 3.0, "memory": 99.0}},
        {"cell": [{**CELL, "published": {"MPLFP": 2.5}}]},
        {"title": "another", "source": "another"},
    ):
        assert keys(**change) == base
    assert keys(cell=[{**CELL, "instances": 2}]) == base[:2]
    for change in ({"kappa": 4.0}, {"tol": 1e-2}, {"m": 9}, {"generator": "lap"}, {"label": "b"}):
        assert not set(keys(cell=[{**CELL, **change}])) & set(base), change
    assert not set(keys(method=[{"name": "MPLFP", "params": {"max_iter": 7}}])) & set(base)


def test_the_key_of_images_knows_their_data():
    def key(outcome="done", reason="", **changes):
        data = Outcome(outcome, replace(DATA, **changes), reason=reason)
        (found,) = keys(data, cell=[], images=[IMAGES], method=[{"name": "MPKFP"}])
        return found

    assert key(citation="other", notes=("note",)) == key()
    assert len({key(), key(fingerprint="g" * 64), key("data", "digits: gone")}) == 3


def pct(**params):
    return {"method": [{"name": "PCT", "params": params}]}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"images": [{**IMAGES, "stages": [5, 5]}]}, "a value stands twice"),
        ({"images": [{**IMAGES, "stages": [10, 5]}]}, "numbers of iterations must ascend"),
        ({"method": [{"name": "MPKFP"}]}, r"'easy' needs a method on columns \(MPLFP\); add one"),
        ({"images": [IMAGES]}, r"'ten digits' needs a method with a kernel \(MPKFP\); add one"),
        (pct(max_itr=3), r"solver 'PCT': unknown parameter 'max_itr' \(did you mean 'max_iter'"),
        ({"budget": {"stop": {"suboptimality": 0.1}}}, "budget.stop is for studies of SVM solvers"),
        ({"budget": {"kernel_evals": 1e6}}, "budget.kernel_evals is for studies of SVM solvers"),
        (pct(tol=0.5), r"'tol' is decided by the \[\[cell\]\], the same for all solvers"),
        (pct(history=2.0), r"'history' is decided by the \[\[cell\]\]"),
        (
            {"cell": [], "images": [IMAGES], "method": [{"name": "KVN", "params": {"gamma": 1.0}}]},
            r"'gamma' is decided by the \[\[images\]\]",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(tables, message):
    with pytest.raises((StudyError, ValidationError), match=message):
        plan(study_of(**tables))
