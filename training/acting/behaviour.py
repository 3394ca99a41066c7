"""Densities of stored behaviours: what mu says about the actions of a batch."""

from __future__ import annotations

import math

import numpy as np

from storage.kernel import Bytes, Floats32, kernel
from storage.layout import BehaviourKind

__all__ = ["FACTORS", "GAUSSIAN", "UNIFORM", "behaviour_log_density", "describe_behaviour"]

GAUSSIAN, UNIFORM = int(BehaviourKind.GAUSSIAN), int(BehaviourKind.UNIFORM)
"""The kinds of behaviour that have a density of the raw action, as numbers for kernels."""

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
FACTORS = 6
"""So many float32 numbers have a product that float64 holds: one logarithm does for all."""
_LOG_2 = math.log(2.0)
_UNIFORM_STDEV = np.float32(1.0 / math.sqrt(3.0))


@kernel
def behaviour_log_density(raw_action: Floats32, behaviour: Floats32, kind: int) -> float:
    """Log mu(a|s) of one raw action (A,), in float64; NaN for a behaviour without a density.

    A Gaussian behaviour is its mean, then its standard deviation (2 A numbers). A uniform one over
    the box, where raw actions fill [-1, 1], needs no parameters.
    """
    size: int = raw_action.shape[0]
    if kind == UNIFORM:
        return -size * _LOG_2
    if kind != GAUSSIAN:
        return math.nan
    total, product = -size * _HALF_LOG_2PI, 1.0
    for j in range(size):
        stdev = np.float64(behaviour[size + j])
        if not stdev > 0.0:
            return math.nan
        z = (np.float64(raw_action[j]) - np.float64(behaviour[j])) / stdev
        total -= 0.5 * z * z
        product *= stdev
        if j % FACTORS == FACTORS - 1:
            total -= math.log(product)
            product = 1.0
    return total - math.log(product)


@kernel
def describe_behaviour(
    raw_action: Floats32,
    behaviour: Floats32,
    kind: Bytes,
    mean: Floats32,
    stdev: Floats32,
    log_density: Floats32,
) -> int:
    """Fill mean, stdev (both (B, A)) and log mu(a|s) ((B,)); return the first unusable row or -1.

    A uniform behaviour gets its moments, 0 and 1/sqrt(3): with them the gradient of KL(mu || pi)
    to a Gaussian pi is exact.
    """
    size = raw_action.shape[1]
    for i in range(raw_action.shape[0]):
        log_density[i] = behaviour_log_density(raw_action[i], behaviour[i], kind[i])
        if not math.isfinite(log_density[i]):
            return i
        for j in range(size):
            mean[i, j] = behaviour[i, j] if kind[i] == GAUSSIAN else np.float32(0.0)
            stdev[i, j] = behaviour[i, size + j] if kind[i] == GAUSSIAN else _UNIFORM_STDEV
    return -1
