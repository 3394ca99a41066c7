"""Kullback-Leibler divergences of Gaussian policies from behaviours, row by row.

The same numbers as of `training.gaussian`, for gradients in closed form.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from storage.kernel import Floats32, Index, kernel
from training.acting.behaviour import FACTORS

__all__ = ["divergence_of", "divergence_slope"]

_ZERO = np.float32(0.0)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)


@kernel
def divergence_of(
    row: Index,
    means: Floats32,
    first: Index,
    stdev: Floats32,
    mu_mean: Floats32,
    mu_stdev: Floats32,
    reverse: bool,
) -> Any:
    """KL(mu || pi) of one row, or KL(pi || mu) if ``reverse``; means lie from ``first`` on."""
    total, product = _ZERO, 1.0
    for k in range(stdev.size):
        apart, own, other = means[row, first + k] - mu_mean[row, k], stdev[k], mu_stdev[row, k]
        base = other if reverse else own
        ratio = (own if reverse else other) / base
        shift = apart / base
        total += _HALF * (ratio * ratio + shift * shift - _ONE)
        product *= ratio
        if k % FACTORS == FACTORS - 1:
            total -= np.float32(math.log(product))
            product = 1.0
    return total - np.float32(math.log(product))


@kernel
def divergence_slope(mean: Any, stdev: Any, mu_mean: Any, mu_stdev: Any, reverse: bool) -> Any:
    """Derivatives of one dimension's divergence with respect to the policy's mean and stdev."""
    apart = mean - mu_mean
    if reverse:
        square = mu_stdev * mu_stdev
        return apart / square, stdev / square - _ONE / stdev
    square = stdev * stdev
    return apart / square, (square - mu_stdev * mu_stdev - apart * apart) / (square * stdev)
