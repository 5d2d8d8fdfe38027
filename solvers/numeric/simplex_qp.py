"""Convex quadratic programs over a simplex that grow and shrink: the inner problem of cuts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .compiling import ZERO, njit
from .matrices import matmul

# Added to the diagonal of the systems solved, relative to the largest entry: planes repeat.
_RIDGE = 1e-13
# A gap below this part of what cancels in it is rounding.
_NOISE = 4e-16
_MOST_STEPS = 1000
# So many variables have room at first.
_ROOM = 32


class SimplexQP:
    """Minimise ``1/2 b'Qb - h'b`` over ``b >= 0``, ``sum b = total``, one variable after another.

    The dual problem of every method of cutting planes: one variable for each plane. Variables are
    added and removed between solves, and each solve starts where the last one ended. A pair of
    variables is moved first, the one that most wants to grow against the one that gains most by
    it; then the variables above zero go to the minimum over their own face, or to the first bound
    on the way, until they reach it. Q may be singular.

    A step costs O(size * k + k^3) for k variables above zero.
    """

    def __init__(self, total: float = 1.0) -> None:
        self.total, self.size = float(total), 0
        self._Q = np.zeros((_ROOM, _ROOM))
        self._h, self._b = np.zeros(_ROOM), np.zeros(_ROOM)

    @property
    def Q(self) -> np.ndarray:
        """The matrix of the variables present, a view, shape (size, size)."""
        return self._Q[: self.size, : self.size]

    @property
    def h(self) -> np.ndarray:
        """The linear term, a view, shape (size,)."""
        return self._h[: self.size]

    @property
    def b(self) -> np.ndarray:
        """The variables as they stand, a view, shape (size,). Feasible as soon as there is one."""
        return self._b[: self.size]

    @property
    def gradient(self) -> np.ndarray:
        """``Qb - h``, shape (size,)."""
        return matmul(self.Q, self.b) - self.h

    @property
    def value(self) -> float:
        """``1/2 b'Qb - h'b`` at the variables as they stand."""
        return float(_value(self._Q, self._h, self._b, self.size))

    @property
    def gap(self) -> float:
        """``b'g - total min_i g_i`` for the gradient g: no less than value minus minimum."""
        gradient = self.gradient
        return float(matmul(self.b, gradient) - self.total * gradient.min())

    def add(self, column: Any, diagonal: float, h: float) -> None:
        """Add a variable at the end. It is 0, but the first one is ``total``."""
        k = self.size
        if k == len(self._h):
            self._grow()
        self._Q[k, :k] = self._Q[:k, k] = column
        self._Q[k, k], self._h[k] = diagonal, h
        self._b[k] = 0.0 if k else self.total
        self.size += 1

    def remove(self, indices: Any) -> None:
        """Remove variables; the others keep their order and share what these held."""
        present = np.ones(self.size, dtype=np.bool_)
        present[np.asarray(indices, dtype=np.intp)] = False
        kept = np.flatnonzero(present)
        b, k = self.b[kept], len(kept)
        self._Q[:k, :k] = self._Q[kept][:, kept]
        self._h[:k] = self._h[kept]
        held = b.sum()
        self._b[:k] = b * (self.total / held) if held > 0 else self.total / k
        self.size = k

    def solve(self, tol: float) -> float:
        """Go on until :attr:`gap` is at most ``tol``."""
        return float(_solve(self._Q, self._h, self._b, self.size, self.total, tol))

    def _grow(self) -> None:
        room = 2 * len(self._h)
        Q, h, b = np.zeros((room, room)), np.zeros(room), np.zeros(room)
        Q[: self.size, : self.size], h[: self.size], b[: self.size] = self.Q, self.h, self.b
        self._Q, self._h, self._b = Q, h, b


@njit(error_model="numpy")
def _solve(Q, h, b, size, total, tol):
    """Pairs and faces in turn until the gap is closed; returns the gap."""
    g = np.empty(size)
    gap, idle, steps = np.inf, 0, 0
    while True:
        held, low, scale, i = 0.0, np.inf, 0.0, ZERO
        _gradient(Q, h, b, size, g)
        for j in range(size):
            held += b[j] * g[j]
            scale = max(scale, abs(h[j]), abs(g[j]))
            if g[j] < low:
                low, i = g[j], j
        gap = held - total * low
        # Steps that gain nothing, several in a row: the rest is rounding.
        if gap <= max(tol, _NOISE * total * scale) or idle == 3 or steps == _MOST_STEPS:
            return gap
        gain = _move_pair(Q, b, size, g, i)
        gain += _descend_face(Q, h, b, size, total, g)
        idle = idle + 1 if gain <= _NOISE * total * scale else 0
        steps += 1


@njit(error_model="numpy")
def _value(Q, h, b, size):
    """1/2 b'Qb - h'b."""
    g = np.empty(size)
    _gradient(Q, h, b, size, g)
    value = 0.0
    for j in range(size):
        value += 0.5 * b[j] * (g[j] - h[j])
    return value


@njit(error_model="numpy")
def _gradient(Q, h, b, size, g):
    """g = Q b - h."""
    for j in range(size):
        g[j] = -h[j]
    for k in range(size):
        if b[k] > 0:
            for j in range(size):
                g[j] += b[k] * Q[k, j]


@njit(error_model="numpy", inline="always")
def _move_pair(Q, b, size, g, i):
    """Move to variable i from the one where that gains most; returns the gain."""
    best, chosen, step = 0.0, -1, 0.0
    for j in range(size):
        slope = g[j] - g[i]
        if b[j] > 0 and slope > 0:
            curvature = Q[i, i] + Q[j, j] - 2 * Q[i, j]
            length = b[j]
            if curvature * length > slope:
                length = slope / curvature
            gain = length * (slope - 0.5 * curvature * length)
            if gain > best:
                best, chosen, step = gain, j, length
    if chosen >= 0:
        b[chosen] = 0.0 if step == b[chosen] else b[chosen] - step
        b[i] += step
        for k in range(size):
            g[k] += step * (Q[i, k] - Q[chosen, k])
    return best


@njit(error_model="numpy", inline="always")
def _descend_face(Q, h, b, size, total, g):
    """Minimise over the variables above zero, dropping those that reach it; returns the gain."""
    gained, bounded = 0.0, True
    face = np.empty(size, np.int64)
    while bounded:
        k, mean, greatest = ZERO, 0.0, 0.0
        for j in range(size):
            if b[j] > 0:
                face[k] = j
                k += 1
                mean += g[j]
                greatest = max(greatest, abs(g[j]))
        if k < 2:
            break
        # Only differences of the gradient matter on the simplex; without the rest they keep digits.
        mean /= k
        p = _newton(Q, g, mean, face, k)
        slope, curvature, longest, first, length = 0.0, 0.0, np.inf, -1, 0.0
        for r in range(k):
            slope += (g[face[r]] - mean) * p[r]
            length += abs(p[r])
            row = 0.0
            for c in range(k):
                row += Q[face[r], face[c]] * p[c]
            curvature += p[r] * row
            if p[r] < 0 and -b[face[r]] > p[r] * longest:
                longest, first = -b[face[r]] / p[r], r
        noise = 4 * _NOISE * greatest * length
        if not slope < -noise or first < 0:
            break
        bounded = curvature * longest < -slope
        length = longest if bounded else -slope / curvature
        for r in range(k):
            b[face[r]] = max(0.0, b[face[r]] + length * p[r])
        if bounded:
            b[face[first]] = 0.0
        gained -= length * (slope + 0.5 * curvature * length)
        held = 0.0
        for j in range(size):
            held += b[j]
        for j in range(size):
            b[j] *= total / held
        _gradient(Q, h, b, size, g)
    return gained


@njit(error_model="numpy", inline="always")
def _newton(Q, g, mean, face, k):
    """The direction p, sum p = 0, to the minimum of (g - mean)'p + 1/2 p'Qp over k variables."""
    U = np.empty((k, k))
    largest = 0.0
    for r in range(k):
        largest = max(largest, Q[face[r], face[r]])
    largest = max(largest, 1e-300)
    # Adding a multiple of 11' changes nothing where sum p = 0.
    for r in range(k):
        for c in range(r, k):
            U[r, c] = Q[face[r], face[c]] + largest
        U[r, r] += _RIDGE * k * largest
    for j in range(k):
        U[j, j] = math.sqrt(max(U[j, j], _RIDGE * largest))
        for c in range(j + 1, k):
            U[j, c] /= U[j, j]
        for r in range(j + 1, k):
            factor = U[j, r]
            for c in range(r, k):
                U[r, c] -= factor * U[j, c]
    u, v = np.empty(k), np.empty(k)
    for r in range(k):
        u[r], v[r] = g[face[r]] - mean, 1.0
    _solve_factored(U, u)
    _solve_factored(U, v)
    of_u, of_v, of_p = 0.0, 0.0, 0.0
    for r in range(k):
        of_u += u[r]
        of_v += v[r]
    for r in range(k):
        u[r] = of_u / of_v * v[r] - u[r]
        of_p += u[r]
    for r in range(k):
        u[r] -= of_p / k
    return u


@njit(error_model="numpy")
def _solve_factored(U, x):
    """x becomes the solution of U'U z = x for an upper triangular U."""
    k = len(x)
    for j in range(k):
        x[j] /= U[j, j]
        for c in range(j + 1, k):
            x[c] -= x[j] * U[j, c]
    for j in range(k - 1, -1, -1):
        for c in range(j + 1, k):
            x[j] -= U[j, c] * x[c]
        x[j] /= U[j, j]
