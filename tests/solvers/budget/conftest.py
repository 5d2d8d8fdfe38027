"""What merging two points loses, by brute force."""

import numpy as np
import pytest


def least_loss(ratio, kappa):
    """||phi_heavy + r phi_light - c phi(z)||^2 at the best z and c, by refining a grid."""
    low, high = np.where(ratio >= 0, 0.0, -5.0), np.where(ratio >= 0, 1.0, 0.0)
    for _ in range(7):
        t = np.linspace(low, high, 41)
        c = kappa ** (t * t) + ratio * kappa ** ((1 - t) ** 2)
        loss = 1 + ratio**2 + 2 * ratio * kappa - c * c
        best = np.take_along_axis(t, loss.argmin(axis=0)[None], axis=0)[0]
        low, high = np.maximum(best - (t[1] - t[0]), low), np.minimum(best + (t[1] - t[0]), high)
    return loss.min(axis=0)


@pytest.fixture(scope="session")
def best_loss():
    """``best_loss(ratio, kappa)`` of arrays: the pairs' coefficient ratios and kernel entries."""
    return least_loss
