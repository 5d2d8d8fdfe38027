"""Perceptrons, von Neumann's algorithm and their smooth kin: bounds, invariants, certificates."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse

from marginbench.data_loaders import lap, ldfp
from marginbench.solvers import (
    ISNKPVN,
    ISPVN,
    KPCT,
    KVN,
    MPCFP,
    MPKFP,
    MPLFP,
    PCT,
    SMO,
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
LINEAR = {
    "MPLFP": MPLFP,
    "PCT": PCT,
    "PCT cyclic": lambda **params: PCT(pick="cyclic", **params),
    "VN": VN,
    "VN vertex": lambda **params: VN(start="vertex", **params),
    "SPCT": SPCT,
    "SPCT mu0=1": lambda **params: SPCT(mu0=1.0, **params),
    "SPVN": SPVN,
    "ISPVN": ISPVN,
    "ISPVN mu0=n": lambda **params: ISPVN(mu0="n", **params),
}
KERNEL = {
    "MPKFP": MPKFP,
    "KPCT": KPCT,
    "KVN": KVN,
    "KVN centre": lambda **params: KVN(start="centre", **params),
    "SNKP": SNKP,
    "ISNKPVN": ISNKPVN,
}
TWINS = {
    "PCT": ("KPCT", {}),
    "VN": ("KVN", {"start": "centre"}),
    "SPCT": ("SNKP", {}),
    # The norm comes from Lanczos, on A A' or on A'A: only a given mu0 is the same to all digits.
    "ISPVN": ("ISNKPVN", {"mu0": 40.0}),
}
KERNEL_CLASSES = {"KPCT": KPCT, "KVN": KVN, "SNKP": SNKP, "ISNKPVN": ISNKPVN}


def margin(A):
    """rho by the hard-margin SVM, for a separable problem."""
    G = A.T @ A
    signs = np.where(np.arange(len(G)) % 2, 1.0, -1.0)
    smo = SMO("precomputed", C=1e12, tol=1e-10, dtype="float64")
    smo.fit(G * np.outer(signs, signs), signs)
    return 1 / math.sqrt(smo.dual_coef_[0] @ signs[smo.support_])


def test_von_neumann_gets_shorter_as_proven():
    # It holds until a y separates.
    for start in ("centre", "vertex"):
        solver = VN(start=start, max_iter=3000, tol=0.0, history=1)
        up = np.array([point.phi_up for point in solver.solve(INSEPARABLE).history])
        assert (np.diff(up) <= 1e-15).all()
        assert (up <= 1 / np.sqrt(np.arange(1, len(up) + 1) + 1) + 1e-15).all()
        # A product with A' for each, and for the start; a vertex is its own image.
        result = solver.set_params(max_iter=20, stop="gap").solve(INSEPARABLE)
        assert result.counters.matvecs == 20 + 1 + (start == "centre")


@pytest.mark.parametrize("seed", range(4))
def test_separators_come_within_the_proven_numbers_of_iterations(seed):
    A = ldfp(10, 150, kappa=2 + seed, seed=seed).A
    rho, n = margin(A), 150
    for method, bound in [
        (PCT(), 1 / rho**2),
        (PCT(pick="cyclic"), 1 / rho**2),
        (VN(), 1 / rho**2),
        (VN(start="vertex"), 1 / rho**2),
        (SPCT(), math.sqrt(8 * math.log(n)) / rho),
        (SPCT(mu0=1.0), 2 * math.sqrt(math.log(n)) / rho),
    ]:
        result = method.solve(A)
        assert result.status == "separable"
        assert result.n_iter <= bound, method


@pytest.mark.parametrize("name", LINEAR)
def test_certificates_of_all_methods_pass_the_one_checker(name):
    method = LINEAR[name](tol=2e-2, history=1.3)
    # From few columns with weights the first vertex's run has no proof at this tolerance.
    proven = "margin_at_most_tol" if name == "VN vertex" else "inseparable"
    for A, status in ((SEPARABLE, "separable"), (INSEPARABLE, proven)):
        for wrap in (np.asarray, np.asfortranarray, sparse.csc_matrix, np.float32):
            problem = FeasibilityProblem.linear(wrap(A))
            result = method.solve(problem)
            assert result.status == status
            assert result.converged
            verdict = check_certificate(problem, result)
            assert verdict.valid, verdict.reasons


@pytest.mark.parametrize("name", KERNEL)
def test_certificates_of_all_kernel_methods_pass_it_too(name):
    method = KERNEL[name](tol=2e-2, max_iter=100_000, history=1.3)
    # The rounded entries of a Gram matrix do not tell whether it is singular.
    for A, status in ((SEPARABLE, "separable"), (INSEPARABLE, "margin_at_most_tol")):
        for dtype in (np.float64, np.float32):
            problem = FeasibilityProblem.gram((A.T @ A).astype(dtype))
            result = method.solve(problem)
            assert result.status == status
            verdict = check_certificate(problem, result)
            assert verdict.valid, verdict.reasons


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # 300 iterations do
@pytest.mark.parametrize("name", [*LINEAR, *KERNEL])
def test_the_margin_lies_between_the_bounds(name):
    kernel = name in KERNEL
    for A in (SEPARABLE, INSEPARABLE):
        rho = margin(A) if A is SEPARABLE else 0.0
        method = {**LINEAR, **KERNEL}[name](max_iter=300, tol=1e-3, stop="gap", history=1)
        result = method.solve(A.T @ A if kernel else A)
        for point in result.history:
            assert point.phi_lo <= rho + 1e-12
            assert point.phi_up >= rho - 1e-12


@pytest.mark.parametrize("A", [SEPARABLE, INSEPARABLE], ids=["separable", "inseparable"])
@pytest.mark.parametrize("name", TWINS)
def test_with_a_linear_kernel_they_are_the_methods_on_columns(name, A):
    other, params = TWINS[name]
    common = {"max_iter": 12, "tol": 0.0, "stop": "gap"}
    kernel = KERNEL_CLASSES[other](**common, **params).solve(A.T @ A)
    given = {key: value for key, value in params.items() if key == "mu0"}
    linear = LINEAR[name](**common, **given).solve(A)
    assert kernel.n_iter == linear.n_iter
    np.testing.assert_allclose(kernel.x, linear.x, rtol=0, atol=1e-10)
    # From a Gram matrix a squared length is known to 1e-16 or so, however small it is.
    atol = 1e-12 + 1e-14 / linear.phi_up**2
    np.testing.assert_allclose(A @ kernel.y, linear.y, rtol=0, atol=atol)


def test_von_neumann_stays_at_a_vertex():
    result = LINEAR["VN"](max_iter=50, tol=0.0, stop="gap").solve(np.array([[1.0], [0.0]]))
    np.testing.assert_array_equal(result.y, [1.0, 0.0])
    near = np.array([[3.0], [4.0], [1.0]]) + 1e-8 * np.random.default_rng(1).standard_normal((3, 5))
    result = LINEAR["VN"](max_iter=500, tol=0.0, stop="gap").solve(near)
    assert result.phi_lo == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("A", [SEPARABLE, INSEPARABLE], ids=["separable", "inseparable"])
@pytest.mark.parametrize("name", ["SPCT", "SPVN", "ISPVN"])
def test_long_runs_do_not_overflow(name, A):
    result = LINEAR[name](max_iter=5000, tol=0.0, stop="gap").solve(A)
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.y).all()
    if name == "SPCT" and A is SEPARABLE:
        # The smoothing parameter falls like 1 / k^2. Exponents that are not shifted by the largest
        # one are too much for exp; ||y|| is phi_up, both being the margin by now.
        mu = 2 * 2.0 / ((result.n_iter + 1) * (result.n_iter + 2))
        assert np.abs(result.y @ A).max() * result.phi_up / mu > math.log(np.finfo(float).max)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (MPLFP(max_iter=0), "max_iter must be a whole number >= 1, got 0"),
        (MPCFP(tol=-1.0), "tol must be a number >= 0, got -1.0"),
        (MPLFP(stop="never"), "stop must be one of certificate, gap, got 'never'"),
        (VN(history=0.5), "history must be None or a ratio >= 1, got 0.5"),
        (PCT(pick="best"), "pick must be one of worst, cyclic, got 'best'"),
        (VN(start="middle"), "start must be one of centre, vertex, got 'middle'"),
        (SPCT(mu0=0), "mu0 must be a number > 0, got 0"),
        (SPVN(mu0="m"), "mu0 must be one of norm, n, got 'm'"),
        (ISPVN(factor=1.0), "factor must be a number > 1, got 1.0"),
        (ISPVN(max_rounds=0), "max_rounds must be a whole number >= 1, got 0"),
        (ISPVN(max_inner=0), "max_inner must be a whole number >= 1, got 0"),
    ],
)
def test_a_parameter_out_of_range_is_named(method, message):
    with pytest.raises(ValueError, match=message):
        method.solve(np.eye(2))


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1e8])
@pytest.mark.parametrize("n", [1, 2, 9, 300])
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
