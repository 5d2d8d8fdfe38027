"""Mirror prox on the saddle point max_{||y|| <= 1} min_{x in X} y'A x (MPFP14 Algorithm 1).

X is the base of a cone, for the orthant the simplex. With F(x, y) = (A'y, -A x), the constant step
gamma = 1 / L and the distance-generating function ``alpha_x omega_x(x) + alpha_y 1/2 ||y||^2``::

    v_1 = (argmin of omega_x, 0)                                        (line 3)
    for t = 1, 2, ... until phi_lo > 0 or phi_up - phi_lo <= epsilon    (line 4; ``base.Progress``)
        w_t     = Prox_{v_t}(gamma F(v_t))    the leading point         (line 5)
        v_{t+1} = Prox_{v_t}(gamma F(w_t))                              (line 6)
        z_t     = the average of w_1, ..., w_t                          (line 7)

In x and y, for entropy on the simplex (section 5.3; log x is kept, exp(log x) is normed)::

    w_x = softmax(log x - x_step A'y),     w_y = onto the ball(y + y_step A x)
    log x <- log x - x_step A'w_y,         y <- onto the ball(y + y_step A w_x)

x_step = gamma / alpha_x and y_step = gamma / alpha_y are those of section 5.4 (:func:`step_sizes`).
phi_lo = min_x x'A'y and phi_up = ||A x|| are the paper's lower and upper phi at z_t: averages of
A'w_y and A w_x are carried along, so that they cost no product more. Three forms of it: columns in
one pass over A (MPLFP, with x in ``passes.mirror_block``), a Gram matrix (MPKFP, section 6.1, where
y is known by its coefficients and responses), and cones with their own prox mappings (MPCFP,
section 6.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np

from ..interface.declaration import hyperparameters
from ..numeric.compiling import njit
from ..numeric.matrices import matmul
from ..registration import register
from .base import FeasibilityMethod, GramMethod, Progress
from .cones import SecondOrder, softmax, spectral_norm
from .passes import SimplexSide
from .spaces import ColumnSpace, FeatureSpace, Iterate


def step_sizes(diameter: float, lipschitz: float) -> tuple[float, float]:
    """The steps on the base and on the ball, gamma / alpha_x and gamma / alpha_y.

    The weights alpha that make the bound on the residual after t iterations least, which is
    ``2 sqrt(diameter / 2) lipschitz / t`` (MPFP14 section 5.4; a ball has the diameter 1/2).
    """
    if lipschitz == 0:
        return 1.0, 1.0
    ratio = math.sqrt(2 * diameter)
    return ratio / lipschitz, 1 / (ratio * lipschitz)


def entropy_diameter(n: int) -> float:
    """Omega_x of the entropy of n weights: log n, kept away from 0 for a single one."""
    return math.log(max(n, 2))


@register("feasibility")
@hyperparameters
class MPLFP(FeasibilityMethod):
    """Mirror prox for linear feasibility problems.

    Solves ``max_{||y|| <= 1} min_x y'A x`` over the simplex by mirror prox with entropy on the
    simplex and constant steps, and averages the leading points ([MPFP14]_ Algorithm 1, section
    5.3). After t iterations ``phi_up - phi_lo <= sqrt(2 log n) / t``: it ends within
    ``sqrt(2 log n) / max(rho, tol) + 1`` iterations. The paper leaves the two weights to its
    appendix; these minimise the bound.

    Parameters
    ----------
    tol
        Stop when the residual ``phi_up - phi_lo`` is at most this; ``||A x||`` and the margin then
        are, too.

    Notes
    -----
    Kernel evaluations: none. An iteration is 4 products with A or A', 4 m n multiply-adds, all in
    one pass over A: the two points of the ball are known before the products on the simplex side.
    Memory beyond A: 5 n + 10 m numbers, 11 n if A is sparse. Returns the averages.
    """

    gap_certifies = True

    def _iterates(self, space: ColumnSpace, progress: Progress) -> Iterator[Iterate]:
        n = space.n
        x_step, y_step = step_sizes(entropy_diameter(n), 1.0)
        side = SimplexSide(*(np.zeros(n) for _ in range(4)))
        ys, images = np.zeros((2, space.m)), np.empty((2, space.m))
        (y, y_lead), (image, w_image) = ys, images  # of x and of the leading point
        image[:] = space.product(np.full(n, 1 / n))  # line 3; log x = 0 stands for x = 1 / n
        y_sum, image_sum = np.zeros(space.m), np.zeros(space.m)
        shift = inverse = 0.0

        def weights() -> np.ndarray:
            # The last leading point is not in its sum yet.
            return side.x_sum + side.w * inverse

        for t in count(1):
            y_lead[:] = into_ball(y + y_step * image)  # line 5 for y
            # Lines 5 to 7 for x.
            step = x_step, shift, inverse
            total, w_total, shift, low = space.mirror(ys, *step, side=side, images=images)
            inverse = 1 / w_total
            image /= total
            w_image *= inverse
            y[:] = into_ball(y + y_step * w_image)  # line 6 for y
            y_sum += y_lead  # line 7: sums, which t divides
            image_sum += w_image
            up = math.sqrt(float(matmul(image_sum, image_sum)))
            yield Iterate(t, y_sum, t, low, up / t, weights)


@register("svm", "feasibility")
@hyperparameters
class MPKFP(GramMethod):
    """Mirror prox for kernelized feasibility problems.

    :class:`MPLFP` in feature space: y is known by its coefficients on the points and by their
    responses ([MPFP14]_ section 6.1). The classifier is ``f(x) = <y, Phi(x)>`` with the averaged
    y, of norm 1 or less and without bias.

    Parameters
    ----------
    tol
        Stop when the residual ``phi_up - phi_lo`` is at most this.

    Notes
    -----
    Kernel evaluations: n^2 once (about half of them computed), then 2 products with the stored
    matrix in an iteration, 2 n^2 multiply-adds in one pass over it. If it does not fit, 2 n^2
    evaluations in each iteration, of which n^2 are computed. Memory: the matrix and 17 n numbers.
    """

    gap_certifies = True

    def _iterates(self, space: FeatureSpace, progress: Progress) -> Iterator[Iterate]:
        n = space.n
        x_step, y_step = step_sizes(entropy_diameter(n), 1.0)
        log_x, x, w = (np.zeros(n) for _ in range(3))
        # y and the leading y: coefficients and responses; sums over the iterations.
        y, y_lead, y_sum, w_sum = (np.zeros((2, n)) for _ in range(4))

        for t in count(1):
            softmax(log_x, out=x)
            np.multiply(y[1], -x_step, out=w)
            w += log_x
            softmax(w, out=w)  # line 5 for x
            Gx, Gw = space.products(x, w)
            np.copyto(y_lead, y)
            low, w_norm = _move(log_x, y, y_lead, y_sum, w_sum, x, w, Gx, Gw, x_step, y_step)
            up = math.sqrt(max(w_norm, 0.0))
            yield Iterate(t, y_sum, t, low, up / t, w_sum[0].copy)


@njit(error_model="numpy")
def _move(log_x, y, y_lead, y_sum, w_sum, x, w, Gx, Gw, x_step, y_step):
    """The prox steps of an iteration of MPKFP, and its sums; min of A'y_sum and ||A w_sum||^2."""
    _step_into_ball(y_lead, x, Gx, y_step)  # line 5 for y, which y_lead is a copy of
    _step_into_ball(y, w, Gw, y_step)  # line 6 for y
    low, square = np.inf, 0.0
    for i in range(len(log_x)):
        log_x[i] -= x_step * y_lead[1, i]  # line 6 for x
        # Line 7, of coefficients and responses.
        y_sum[0, i] += y_lead[0, i]
        y_sum[1, i] += y_lead[1, i]
        low = min(low, y_sum[1, i])
        w_sum[0, i] += w[i]
        w_sum[1, i] += Gw[i]
        square += w_sum[0, i] * w_sum[1, i]
    return low, square


@njit(error_model="numpy")
def _step_into_ball(y, x, Gx, step):
    """y += step A x, then onto the unit ball: the prox mapping on y of section 6.1, g = y[0]."""
    square = 0.0
    for i in range(len(x)):
        y[0, i] += step * x[i]
        y[1, i] += step * Gx[i]
        square += y[0, i] * y[1, i]
    if square > 1.0:
        y /= math.sqrt(square)


@hyperparameters
class MPCFP(FeasibilityMethod):
    """Mirror prox for conic feasibility problems.

    Finds y with A'y in the interior of a product of orthants, second-order and positive
    semidefinite cones, or x in the cone with ``<e, x> = 1`` and ``||A x|| <= tol`` ([MPFP14]_
    section 6.2). A single second-order cone has the Euclidean prox mapping, everything else the
    entropy of the spectral values of all factors together. After t iterations the residual is at
    most ``2 sqrt(Omega_x / 2) L / t``, with Omega_x = 1/2 for one second-order cone, else log of
    the number of spectral values, and L the norm of A between the two geometries.

    Parameters
    ----------
    tol
        Stop when the residual ``phi_up - phi_lo`` is at most this.

    Notes
    -----
    Kernel evaluations: none. An iteration is 4 products with A or A', and for each positive
    semidefinite factor of order p two eigendecompositions and one set of eigenvalues, O(p^3).
    Deviations from [MPFP14]_: the diameter of the spectrahedron is log p where the paper has
    4 log p; products of cones, which the paper does not treat, have one base for the whole
    product, since the sum of the least values over separate bases proves nothing. Returns the
    averages.
    """

    kind = "conic"
    gap_certifies = True

    def _iterates(self, space: ColumnSpace, progress: Progress) -> Iterator[Iterate]:
        A, cone, cones = space.A, space.problem.cone, space.problem.cones
        euclidean = len(cones) == 1 and isinstance(cones[0], SecondOrder)

        def prox(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """The state of the point that a step has led to, and the point (section 6.2)."""
            if euclidean:
                into_ball(state[:-1])
                state[-1] = 1.0
                return state, state
            # The state is log x up to a multiple of e: one decomposition of it, where the paper
            # decomposes X for its logarithm and then H. A second-order cone is a set of symmetric
            # matrices with two eigenvalues of equal multiplicity (by Clifford's matrices), so that
            # the entropy is strongly convex there with the same modulus.
            values, frame = cone.decompose(state)
            return state, cone.compose(softmax(values), frame)

        diameter = 0.5 if euclidean else entropy_diameter(cone.rank)
        lipschitz = spectral_norm(A[:, :-1]) if euclidean else cone.lipschitz(A)
        x_step, y_step = step_sizes(diameter, lipschitz)
        state, x = prox(np.zeros(space.n))  # line 3
        y, y_sum, image_sum = (np.zeros(space.m) for _ in range(3))
        w_sum, p_sum = np.zeros(space.n), np.zeros(space.n)

        for t in count(1):
            # Line 5, then line 6, each for x and for y.
            _, w = prox(state - x_step * space.responses(y))
            y_lead = into_ball(y + y_step * space.image(x))
            p, w_image = space.responses(y_lead), space.image(w)
            state, x = prox(state - x_step * p)
            y = into_ball(y + y_step * w_image)
            # Line 7: sums, which t divides.
            y_sum += y_lead
            w_sum += w
            p_sum += p
            image_sum += w_image
            up = math.sqrt(float(matmul(image_sum, image_sum)))
            yield Iterate(t, y_sum, t, cone.least(p_sum), up / t, w_sum.copy)


def into_ball(y: np.ndarray) -> np.ndarray:
    """The nearest point of the unit ball, in place (the prox mapping on y of section 5.3)."""
    norm = math.sqrt(float(matmul(y, y)))
    if norm > 1.0:
        y /= norm
    return y
