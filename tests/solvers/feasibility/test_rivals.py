"""All methods on columns and Gram matrices: proven numbers, bounds, certificates, limits."""

import math
import re
import warnings

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from marginbench.data_loaders import lap, ldfp
from marginbench.solvers import (
    ISNKPVN,
    ISPVN,
    KPCT,
    KVN,
    MPKFP,
    MPLFP,
    PCT,
    SNKP,
    SPCT,
    SPVN,
    VN,
    FeasibilityProblem,
    check_certificate,
)
from marginbench.solvers.feasibility.rivals import project_to_simplex

SEPARABLE = ldfp(8, 60, kappa=3, seed=1).A
INSEPARABLE = lap(5, 60, seed=2).A
FAR = ldfp(30, 300, seed=0).A
PERCEPTRONS = [PCT(), PCT(pick="cyclic"), VN(), VN(start="vertex")]
COLUMNS = [MPLFP(), *PERCEPTRONS, SPCT(), SPCT(mu0=1.0), SPVN(), ISPVN(), ISPVN(mu0="n")]
GRAM = [MPKFP(), KPCT(), KVN(), KVN(start="centre"), SNKP(), ISNKPVN()]


@pytest.mark.parametrize("pick", ["worst", "cyclic"])
def test_the_perceptron_is_the_classical_one_up_to_its_length(pick):
    A, n, last = INSEPARABLE, 60, 40
    total, visits, j = A[:, 0].copy(), np.eye(n)[0], 0
    solver = PCT(pick=pick, max_iter=last, tol=0.0, stop="gap", history=1)
    result = solver.solve(A)
    for point in result.history:
        s, norm = total @ A, np.linalg.norm(total)
        assert point.phi_lo == pytest.approx(s.min() / norm, abs=1e-12)
        assert point.phi_up == pytest.approx(norm / point.iteration, abs=1e-12)
        if point.iteration < last:
            later = [k % n for k in range(j + 1, j + n + 1)]
            j = next(k for k in later if s[k] <= 0) if pick == "cyclic" else int(s.argmin())
            total, visits = total + A[:, j], visits + np.eye(n)[j]
    np.testing.assert_allclose(result.x, visits / last, atol=1e-15)
    # A mean of 0 has no direction: its bounds are both 0.
    assert solver.solve(np.array([[1.0, -1.0]])).history[1][1:3] == (0.0, 0.0)


def test_von_neumann_gets_shorter_as_proven():
    # It holds until a y separates.
    for start in ("centre", "vertex"):
        solver = VN(start=start, max_iter=3000, tol=0.0, history=1)
        up = np.array([point.phi_up for point in solver.solve(INSEPARABLE).history])
        assert (np.diff(up) <= 1e-15).all()
        assert (up <= 1 / np.sqrt(np.arange(1, len(up) + 1) + 1) + 1e-15).all()
        # A product with A' for each, and for the start; a vertex is its own image, and that of the
        # centre's run is computed afresh after 1000 iterations.
        result = solver.set_params(max_iter=2020, stop="gap").solve(INSEPARABLE)
        assert result.counters.matvecs == 2020 + 1 + (3 if start == "centre" else 0)


@pytest.mark.parametrize("seed", range(4))
def test_separators_come_within_the_proven_numbers_of_iterations(seed, hard_margin):
    A = ldfp(10, 150, kappa=2 + seed, seed=seed).A
    rho, n = hard_margin(A), 150
    for method, bound in [
        (MPLFP(), math.sqrt(2 * math.log(n)) / rho + 1),
        *((method, 1 / rho**2) for method in PERCEPTRONS),
        (SPCT(), math.sqrt(8 * math.log(n)) / rho),
        (SPCT(mu0=1.0), 2 * math.sqrt(math.log(n)) / rho),
    ]:
        result = method.solve(A)
        assert result.status == "separable", method
        assert (result.certificate @ A).min() > 0
        assert result.n_iter <= bound, method


@pytest.mark.parametrize("method", [*COLUMNS, *GRAM], ids=repr)
def test_certificates_of_all_methods_pass_and_the_margin_lies_between_the_bounds(
    method, hard_margin
):
    method = clone(method).set_params(tol=2e-2, max_iter=100_000, history=1)
    of_columns = method.kind == "linear"
    wraps = [np.asarray, np.float32]
    # The rounded entries of a Gram matrix do not tell whether it is singular, and from few columns
    # with weights the first vertex's run has no proof at this tolerance.
    proves = of_columns and getattr(method, "start", "") != "vertex"
    proven = "inseparable" if proves else "margin_at_most_tol"
    for A, status in ((SEPARABLE, "separable"), (INSEPARABLE, proven)):
        rho = hard_margin(A) if status == "separable" else 0.0
        for wrap in [*wraps, sparse.csc_matrix] if of_columns else wraps:
            if of_columns:
                problem = FeasibilityProblem.linear(wrap(A))
            else:
                problem = FeasibilityProblem.gram(wrap(A.T @ A))
            result = method.solve(problem)
            assert (result.status, result.converged) == (status, True)
            assert result.certificate is (result.y if status == "separable" else result.x)
            assert result.residual == result.phi_up - result.phi_lo
            verdict = check_certificate(problem, result)
            assert verdict.valid, verdict.reasons
            bounds = pytest.approx((result.phi_lo, result.phi_up), abs=1e-12)
            assert (verdict.phi_lo, verdict.phi_up) == bounds
            # The start of a round is no iteration of its own.
            assert (np.diff([point.iteration for point in result.history]) > 0).all()
            slack = 1e-6 if wrap is np.float32 else 1e-12
            for point in result.history:
                assert point.phi_lo <= rho + slack
                assert point.phi_up >= rho - slack


@pytest.mark.parametrize(
    "A", [SEPARABLE, INSEPARABLE, ldfp(40, 7, seed=3).A], ids=["separable", "inseparable", "rows"]
)
@pytest.mark.parametrize(
    ("linear", "kernel"),
    [
        (MPLFP(), MPKFP()),
        (PCT(), KPCT()),
        (VN(), KVN(start="centre")),
        (SPCT(), SNKP()),
        # The norm comes from Lanczos, on A A' or on A'A: a given mu0 is the same to all digits.
        (ISPVN(mu0=40.0), ISNKPVN(mu0=40.0)),
    ],
)
def test_with_a_linear_kernel_they_are_the_methods_on_columns(linear, kernel, A):
    common = {"max_iter": 12, "tol": 0.0, "stop": "gap", "history": 1}
    expected = clone(linear).set_params(**common).solve(A)
    kernel = clone(kernel).set_params(kernel="linear", dtype="float64", **common)
    found, y = kernel.solve(A.T @ A), np.where(np.arange(A.shape[1]) % 3, 1, -1)
    fitted = kernel.fit((A * y).T, y)
    assert fitted.n_iter_ == found.n_iter == expected.n_iter
    assert fitted.status_ == "budget"
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-10)
    # From a Gram matrix a squared length is known to 1e-16 or so, however small it is.
    atol = 1e-12 + 1e-14 / expected.phi_up**2
    np.testing.assert_allclose(A @ found.y, expected.y, rtol=0, atol=atol)
    np.testing.assert_allclose(A @ fitted.result_.y, expected.y, rtol=0, atol=atol)
    for ours, theirs in zip(found.history, expected.history, strict=True):
        assert ours.phi_lo == pytest.approx(theirs.phi_lo, abs=max(atol, 1e-10))
        assert ours.phi_up == pytest.approx(theirs.phi_up, abs=1e-10 if theirs.phi_up > 0 else 1e-7)
    assert found.counters.kernel_evals_computed == 0
    if isinstance(kernel, MPKFP):
        entries = A.shape[1] ** 2
        assert (found.counters.matvecs, found.counters.kernel_evals) == (24, entries)
        assert found.counters.matvec_entries == 24 * entries


def test_von_neumann_stays_at_a_vertex():
    method = VN(max_iter=500, tol=0.0, stop="gap")
    np.testing.assert_array_equal(method.solve(np.array([[1.0], [0.0]])).y, [1.0, 0.0])
    near = np.array([[3.0], [4.0], [1.0]]) + 1e-8 * np.random.default_rng(1).standard_normal((3, 5))
    assert method.solve(near).phi_lo == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("A", [SEPARABLE, INSEPARABLE], ids=["separable", "inseparable"])
@pytest.mark.parametrize("method", [SPCT, SPVN, ISPVN])
def test_long_runs_do_not_overflow(method, A):
    result = method(max_iter=3000, tol=0.0, stop="gap").solve(A)
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.y).all()
    if method is SPCT and A is SEPARABLE:
        # The smoothing parameter falls like 1 / k^2. Exponents that are not shifted by the largest
        # one are too much for exp; ||y|| is phi_up, both being the margin by now.
        mu = 2 * 2.0 / ((result.n_iter + 1) * (result.n_iter + 2))
        assert np.abs(result.y @ A).max() * result.phi_up / mu > math.log(np.finfo(float).max)


@pytest.mark.parametrize(
    ("method", "limit", "message"),
    [
        (MPLFP(max_iter=3), "max_iter=3", "max_iter=3 iterations are done"),
        (PCT(), "max_seconds=1e-09", "max_seconds=1e-09 are over"),
        (ISPVN(max_inner=2), "max_inner=2", "a round did not divide .* in max_inner=2 iterations"),
        (ISPVN(max_rounds=1), "max_rounds=1", "max_rounds=1 rounds are done"),
        (ISPVN(max_iter=4), "max_iter=4", "max_iter=4 iterations are done"),
        (SPVN(max_iter=3, stop="gap"), "max_iter=3", "max_iter=3 iterations are done"),
    ],
)
def test_a_limit_without_an_answer_is_a_warning(method, limit, message):
    A = lap(10, 15).A if "rounds" in limit else FAR
    limits = {"max_seconds": 1e-9} if "seconds" in limit else {}
    with pytest.warns(ConvergenceWarning) as caught:
        result = method.solve(A, **limits)
    (warning,) = caught
    low, up = result.margin_bounds
    found = f"the margin is between {low:.3g} and {up:.3g}"
    ended = f"{type(method).__name__} ended at {limit} before it converged: {found}, tol=0.0001"
    assert str(warning.message) == ended
    assert warning.filename == __file__
    assert (result.status, result.certificate) == ("budget", None)
    assert (result.limit, result.converged) == (limit, False)
    assert re.match(message, result.message)
    assert f"no verdict: {found}" in str(result)
    assert check_certificate(FeasibilityProblem.linear(A), result).valid


def test_a_fit_that_another_limit_ends_names_that_one():
    y = np.where(np.arange(300) % 2, 1, -1)
    with pytest.warns(ConvergenceWarning, match="ISNKPVN ended at max_inner=1 before"):
        ISNKPVN("linear", max_inner=1).fit((FAR * y).T, y)


def test_an_answer_at_a_limit_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Proven, though ||A x|| is above tol; nothing but the limit ends the second.
        result = VN(max_iter=6, tol=1e-9).solve(INSEPARABLE, max_seconds=60)
        MPLFP(max_iter=3, tol=0.0, stop="gap").solve(INSEPARABLE)
        # The margin is known, though the residual of y is not at most tol.
        gap = SPCT(max_iter=6, stop="gap").solve(INSEPARABLE)
    assert (result.status, result.converged, result.limit) == ("inseparable", False, "max_iter=6")
    assert (gap.margin_bounds, gap.converged, gap.limit) == ((0.0, 0.0), False, "max_iter=6")
    assert gap.residual > 0.01


def test_counts_do_not_depend_on_chance_where_a_gram_matrix_has_a_low_rank():
    A = lap(1, 5, seed=0).A
    fits = [ISNKPVN().solve(A.T @ A) for _ in range(8)]
    assert len({fit.counters.matvecs for fit in fits}) == 1


@pytest.mark.parametrize("scale", [0.1, 30.0, 1e8])
@pytest.mark.parametrize("n", [1, 2, 300])
def test_the_projection_onto_the_simplex_is_the_nearest_point(n, scale):
    point = scale * np.random.default_rng(n).standard_normal(n)
    found = point.copy()
    project_to_simplex(found)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-12)
    # The threshold is the root of a decreasing function.
    threshold = optimize.brentq(
        lambda t: np.maximum(point - t, 0).sum() - 1, point.max() - 1, point.max(), xtol=1e-15
    )
    np.testing.assert_allclose(found, np.maximum(point - threshold, 0), atol=1e-13 * (1 + scale))
