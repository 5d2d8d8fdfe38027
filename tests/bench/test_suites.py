"""The asv suites: nothing registered is left out, and their numbers are right and repeat."""

import math
import re
import sys

import numpy as np
import pytest
from scipy.optimize import linprog
from threadpoolctl import threadpool_limits

from benchmarks import shapes, solve, tasks, work
from benchmarks.compare import common
from marginbench.solvers import OCAS, SMO, registry
from marginbench.solvers.kernels import kernel_names
from marginbench.solvers.registration import solver_names

CLASSES = registry()
CELLS = tasks.cells(CLASSES)


def cell(name):
    [found] = [item for item in CELLS if item.name == name]
    return found


def test_everything_registered_is_watched():
    assert {item.solver for item in CELLS} == set(CLASSES)
    assert set(solver_names()) == set(registry(missing=True)) == set(tasks.SETTINGS)
    assert {item.kernel for item in CELLS} == set(kernel_names()) == set(tasks.KERNELS)
    assert solve.Fit.params == (solver_names(),)
    methods = {name.split()[0] for name in work.Feasibility.params[0]}
    assert methods == set(solver_names("feasibility"))
    assert solve.Rows.params[0] == kernel_names()
    # Biases and storages are crossed.
    names = {item.name for item in CELLS}
    assert {"SMO rbf dense", "SMO rbf sparse bias", "LIBSVM poly dense bias"} <= names
    assert not {"Pegasos rbf dense bias", "SMO precomputed sparse"} & names
    # Each shape of the comparison is.
    generated = common.GeneratedTask
    compared, watched = (
        {task.generator for task in found.values() if isinstance(task, generated)}
        for found in (common.TASKS, shapes.EXACT)
    )
    assert compared == watched
    assert set(shapes.Exact.params[0] + shapes.Linear.params[0]) == set(shapes.CELLS)


def test_kernels_that_are_left_out_are_refused():
    for name in tasks.FEWER_KERNELS.keys() & CLASSES:
        bias = not CLASSES[name].supports_no_bias
        for kernel in set(tasks.KERNELS) - set(tasks.FEWER_KERNELS[name]):
            left_out = tasks.Cell(name, kernel, "dense", bias)
            with pytest.raises(ValueError, match="kernel"):
                left_out.fitted(CLASSES)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("storage", tasks.STORAGE)
def test_optima_agree_with_the_exact_solver_and_tell_other_coefficients(storage, bias):
    for at in CELLS:
        if (at.solver, at.storage, at.bias) == ("SMO", storage, bias):
            model = at.estimator(CLASSES).set_params(tol=1e-6).fit(at.problem.X, at.problem.y)
            # The bound is below the optimum, by no more than the gap of its certificate.
            exact = at.problem.suboptimality(model)
            assert -1e-9 <= exact < 1e-5
            model.dual_coef_ = model.dual_coef_ * 1.1
            assert at.problem.suboptimality(model) > exact + 1e-3


@pytest.mark.parametrize("solver", CLASSES)
def test_numbers_are_there_and_repeat(solver):
    at = next(item for item in CELLS if item.solver == solver)
    first, second = at.measure(CLASSES), at.measure(CLASSES)
    assert first == second
    assert first["failed"] == 0, first
    assert 0 < first["test_error"] < 50
    assert first["iterations"] > 0
    if CLASSES[solver].instrumented:
        # SMO looks at some points anew, to know how far rounding has come; a textbook run does not.
        asked = np.inf if solver == "SMO" else first["evaluations"]
        assert asked >= first["evaluations_computed"] > 0
    if CLASSES[solver].scalarization is not None:
        assert math.isfinite(first["suboptimality"])


class Loose(SMO):
    def _solve(self, problem, monitor):
        self.tol *= 10
        return super()._solve(problem, monitor)


class Short(OCAS):
    def _solve(self, problem, monitor):
        self.max_iter = 5
        return super()._solve(problem, monitor)


@pytest.mark.parametrize(
    ("name", "worse", "measure", "low", "high"),
    [
        ("SMO apart", Loose, "violation", shapes.FLOOR, shapes.FLOOR),
        ("OCAS texts", Short, "suboptimality", 1.01 * tasks.FLOOR, 0.01),
        ("CuttingPlane checkers", None, "suboptimality", tasks.FLOOR, 0.05),
    ],
)
def test_numbers_of_shapes_tell_distances_and_do_not_depend_on_threads(
    name, worse, measure, low, high
):
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(shapes.CELLS[name].measure(CLASSES))
    assert found[0] == found[1]
    assert found[0]["failed"] == 0, found[0]
    assert all(math.isfinite(value) for value in found[0].values())
    assert low <= found[0][measure] <= high
    if worse is not None:
        broken = shapes.CELLS[name].measure({name.split()[0]: worse})
        assert broken[measure] > 1.1 * found[0][measure]


def test_a_solver_that_this_version_lacks_is_left_out_of_shapes(monkeypatch):
    broken = {"failed": 1, "reason": "broken on purpose"}
    monkeypatch.setattr(work, "importable", lambda: ({"SMO": SMO}, {"LinearSDCA": broken}))
    monkeypatch.setattr(shapes.Cell, "measure", lambda cell, classes: {"failed": 0})
    found = shapes.Exact().setup_cache()
    assert found["LinearSDCA texts"] == broken
    assert found.keys() == {*shapes.Exact.params[0], "LinearSDCA texts"}


class Broken(SMO):
    def _solve(self, problem, monitor):
        raise ValueError("broken on purpose")


class Wrong(SMO):
    def fit(self, X, y):
        super().fit(X, y)
        self.dual_coef_ = np.full_like(self.dual_coef_, np.nan)
        return self


@pytest.mark.parametrize(("broken", "reason"), [(Broken, "on purpose"), (Wrong, "")])
def test_a_failure_is_a_value_of_its_cell_and_hides_no_other(broken, reason):
    at = cell("SMO rbf dense")
    found = at.measure({**CLASSES, "SMO": broken})
    assert found["failed"] == 1
    assert reason in found["reason"]
    suite = work.Work()
    suite.setup({at.name: found}, at.name)
    assert suite.track_failed({}, at.name) == 1
    assert math.isnan(suite.track_evaluations({}, at.name))
    with pytest.raises(NotImplementedError):
        suite.setup({}, "a solver of later versions rbf dense")


def test_a_solver_that_cannot_be_imported_is_a_failed_cell(monkeypatch):
    monkeypatch.setattr(work, "solver_names", lambda kind: ["SMO", "Missing"])
    assert "SMO rbf dense" in work.cells()
    assert [*work.cells()][-1] == "Missing import"
    monkeypatch.setattr(tasks, "cells", lambda classes: [cell("SMO rbf dense")])
    found = work.Work().setup_cache()
    assert found["SMO rbf dense"]["failed"] == 0
    assert found["Missing import"]["failed"] == 1
    assert "Missing" in found["Missing import"]["reason"]


def test_single_cells_are_measured_on_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["work", "SMO rbf dense", "MPLFP separable"])
    work.main("", work.cells() | work.feasibility_cells())
    printed = capsys.readouterr().out
    counted = cell("SMO rbf dense").measure(CLASSES)["evaluations"]
    assert re.search(rf"evaluations +{counted}\n", printed)
    assert "unsolved" in printed
    monkeypatch.setattr(sys, "argv", ["shapes", "SMO apart"])
    work.main("", shapes.cells())
    assert re.search(r"pairs_moved +\d+\n", capsys.readouterr().out)
    monkeypatch.setattr(sys, "argv", ["work", "SMO rbf danse"])
    with pytest.raises(SystemExit, match="nearest are SMO rbf dense"):
        work.main("", work.cells() | work.feasibility_cells())


@pytest.mark.parametrize(("problem", "answer"), [("separable", 0), ("inseparable", 2)])
def test_feasibility_methods_certify_what_a_linear_program_says(problem, answer):
    A = work.columns(problem)
    solved = linprog(np.zeros(len(A)), A_ub=-A.T, b_ub=-np.ones(A.shape[1]), bounds=(None, None))
    assert solved.status == answer
    for method in registry("feasibility").values():
        found = work.separate(method, problem)
        assert found["failed"] == found["unsolved"] == 0
        assert found["iterations"] > 0
