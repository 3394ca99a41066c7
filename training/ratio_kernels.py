"""Densities and importance ratios of Gaussian policies, row by row.

The same numbers as of `training.gaussian`, for gradients in closed form.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from storage.kernel import Floats32, Index, kernel
from training.gaussian import LOG_RATIO_LIMIT

__all__ = ["is_near", "log_density_of", "log_normaliser", "ratio_of"]

_ZERO = np.float32(0.0)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)
_LIMIT = np.float32(LOG_RATIO_LIMIT)
_HALF_LOG_2PI = np.float32(0.5 * math.log(2.0 * math.pi))


@kernel
def log_normaliser(stdev: Floats32) -> Any:
    """Log of a density's normaliser, sum log stdev + A/2 log 2 pi."""
    total = _ZERO
    for k in range(stdev.size):
        total += np.log(stdev[k]) + _HALF_LOG_2PI
    return total


@kernel
def log_density_of(
    row: Index,
    action: Floats32,
    means: Floats32,
    first: Index,
    stdev: Floats32,
    normaliser: Any,
) -> Any:
    """Log density of one row's action; means lie from column ``first`` on."""
    quadratic = _ZERO
    for k in range(stdev.size):
        scaled = (action[row, k] - means[row, first + k]) / stdev[k]
        quadratic += scaled * scaled
    return -_HALF * quadratic - normaliser


@kernel
def ratio_of(log_ratio: Any) -> Any:
    """Importance ratio rho = pi(a|s) / mu(a|s) of its logarithm, which is clipped."""
    return np.exp(min(max(log_ratio, -_LIMIT), _LIMIT))


@kernel
def is_near(ratio: Any, bound: Any) -> Any:
    """Whether a ratio lies within [1 / bound, bound]."""
    return ratio <= bound and ratio >= _ONE / bound
