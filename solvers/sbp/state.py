"""The state of SBP between iterations: the iterate, its average, and a bound by the draws."""

from __future__ import annotations

import numpy as np

from marginbench.solvers.numeric.compiling import njit


class Coefficients:
    """alpha and the sum of its values over the iterations, at a cost of O(1) in an iteration.

    alpha is ``scale * values``. Since a value of the scale holds for all points at once, the sum
    is ``weight * values - lag``, with the weight the sum of the scales so far; ``lag`` corrects for
    what was added to the values later. Both are folded into plain numbers before the scale gets
    small, so that no digits cancel.

    Parameters
    ----------
    n : int
    """

    def __init__(self, n: int) -> None:
        self._values = np.zeros(n)
        self._lag = np.zeros(n)
        self._sum = np.zeros(n)
        self._scale = 1.0
        self._weight = 0.0

    def add(self, i: int, amount: float) -> None:
        """alpha_i += amount."""
        added = amount / self._scale
        self._values[i] += added
        self._lag[i] += added * self._weight

    def shrink(self, factor: float) -> None:
        """alpha *= factor, for a factor of at most 1."""
        self._scale *= factor
        if self._scale < 0.5:
            self._sum += self._weight * self._values - self._lag
            self._values *= self._scale
            self._lag[:] = 0.0
            self._scale, self._weight = 1.0, 0.0

    def count(self) -> None:
        """Add alpha as it stands to the sum."""
        self._weight += self._scale

    def current(self) -> np.ndarray:
        """alpha, a fresh array of shape (n,)."""
        return self._scale * self._values

    def total(self) -> np.ndarray:
        """The sum of the counted values of alpha, a fresh array of shape (n,)."""
        return self._sum + (self._weight * self._values - self._lag)


class Path:
    """The iterate w in the unit ball, its responses c_j = y_j <w, Phi_j>, and their averages.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        Labels, -1 or +1.
    diag : ndarray of float64, shape (n,)
        k(x_j, x_j).
    burn_in : int
        The iterations that the averages leave out.
    """

    def __init__(self, y: np.ndarray, diag: np.ndarray, burn_in: int = 0) -> None:
        n = len(y)
        self.y = y
        self.diag = diag
        self.burn_in = burn_in
        self.n_iter = 0
        self.squared_norm = 0.0
        self.alpha = Coefficients(n)
        self.responses = np.zeros(n)
        self._response_sum = np.zeros(n)

    def move(self, drawn: list[int], rows: list[np.ndarray], step: float) -> None:
        """w <- projection on the unit ball of w + step times the mean y_i Phi_i of the drawn i.

        Parameters
        ----------
        drawn : list of one or two int
        rows : list of ndarray, shape (n,)
            k(x_i, x_j) for each drawn i.
        step : float
        """
        self.n_iter += 1
        share = step / len(drawn)
        signed = [share * self.y[i] for i in drawn]
        grown = self.squared_norm
        for m, i in enumerate(drawn):
            # The response after the moves before this one.
            moved = sum(signed[earlier] * rows[earlier][i] for earlier in range(m))
            response = self.responses[i] + self.y[i] * moved
            grown += 2 * share * response + share * share * self.diag[i]
        factor = 1.0 / np.sqrt(grown) if grown > 1 else 1.0
        self.squared_norm = min(grown, 1.0)
        counted = float(self.n_iter > self.burn_in)
        if len(drawn) == 1:
            _move_one(self.responses, self._response_sum, self.y, *rows, *signed, factor, counted)
        else:
            _move_two(self.responses, self._response_sum, self.y, *rows, *signed, factor, counted)
        for i in drawn:
            self.alpha.add(i, share)
        if factor < 1:
            self.alpha.shrink(factor)
        if counted:
            self.alpha.count()

    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """alpha and the responses, averaged; the last ones as long as nothing is to be averaged."""
        n_counted = self.n_iter - self.burn_in
        if n_counted <= 0:
            return self.alpha.current(), self.responses.copy()
        return self.alpha.total() / n_counted, self._response_sum / n_counted

    def replace_responses(self, responses: np.ndarray) -> None:
        """Go on with responses of the same iterate that were computed afresh."""
        self.responses[:] = responses
        self.squared_norm = float(np.einsum("i,i", self.alpha.current(), responses))
        if self.squared_norm > 1:
            factor = 1.0 / np.sqrt(self.squared_norm)
            self.alpha.shrink(factor)
            self.responses *= factor
            self.squared_norm = 1.0


class DrawBound:
    """U(p) = ||sum_i p_i y_i Phi_i|| + volume max_i p_i >= max f, at the draws' frequencies p.

    Within a group of points p is proportional to the counts of the draws. The groups' masses are
    fixed: with an unregularised bias the bound holds only if both classes have the same mass.

    Parameters
    ----------
    y, diag : ndarray of float64, shape (n,)
    groups : ndarray of int64, shape (n,)
        The group of each point, from 0 on; groups have equal masses.
    volume : float >= 0
    """

    def __init__(self, y: np.ndarray, diag: np.ndarray, groups: np.ndarray, volume: float) -> None:
        self._y = y
        self._diag = diag
        self._groups = groups
        self._volume = volume
        n_groups = int(groups.max()) + 1
        # y_i times the number of draws, and <v_g, v_h> for v_g = sum_{i in g} y_i count_i Phi_i.
        self._signed_counts = np.zeros((n_groups, len(y)))
        self._products = np.zeros((n_groups, n_groups))
        self._totals = np.zeros(n_groups)

    def add(self, i: int, row: np.ndarray) -> None:
        """Count a draw of point i, whose kernel row is given; costs no evaluation."""
        group = self._groups[i]
        for other, signed_counts in enumerate(self._signed_counts):
            product = self._y[i] * _product(row, signed_counts)
            self._products[group, other] += product
            self._products[other, group] += product
        self._products[group, group] += self._diag[i]
        self._signed_counts[group, i] += self._y[i]
        self._totals[group] += 1

    def value(self) -> float:
        """U(p); infinite as long as a group has no draws."""
        if not self._totals.all():
            return float("inf")
        masses = 1.0 / (len(self._totals) * self._totals)
        squared_norm = float(np.einsum("g,gh,h", masses, self._products, masses))
        largest = float((np.abs(self._signed_counts).max(axis=1) * masses).max())
        return float(np.sqrt(max(squared_norm, 0.0))) + self._volume * largest


@njit(error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _product(row, weights):
    total = 0.0
    for j in range(len(weights)):
        total += row[j] * weights[j]
    return total


@njit(error_model="numpy")
def _move_one(responses, response_sum, y, row, signed, factor, counted):
    for j in range(len(responses)):
        responses[j] = factor * (responses[j] + y[j] * (signed * row[j]))
        response_sum[j] += counted * responses[j]


@njit(error_model="numpy")
def _move_two(responses, response_sum, y, row, other_row, signed, other_signed, factor, counted):
    for j in range(len(responses)):
        moved = signed * row[j] + other_signed * other_row[j]
        responses[j] = factor * (responses[j] + y[j] * moved)
        response_sum[j] += counted * responses[j]
