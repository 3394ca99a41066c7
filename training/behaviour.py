"""Densities of stored behaviours: what mu says about the actions of a batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["describe_behaviour"]

_GAUSSIAN, _UNIFORM = 1, 3
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_LOG_2 = math.log(2.0)
_UNIFORM_STDEV = 1.0 / math.sqrt(3.0)


@kernel
def describe_behaviour(
    raw_action: NDArray[np.float32],
    behaviour: NDArray[np.float32],
    kind: NDArray[np.uint8],
    mean: NDArray[np.float32],
    stdev: NDArray[np.float32],
    log_density: NDArray[np.float32],
) -> Any:
    """Fill mean, stdev (both (B, A)) and log mu(a|s) ((B,)); return the first unusable row or -1.

    A uniform behaviour over the box (raw actions in [-1, 1]) has log density -A log 2; its mean and
    standard deviation are the uniform's moments 0 and 1/sqrt(3), with which the gradient of
    KL(mu || pi) to a Gaussian pi is exact.
    """
    size = raw_action.shape[1]
    for i in range(raw_action.shape[0]):
        if kind[i] == _GAUSSIAN:
            total = 0.0
            for j in range(size):
                m, s = np.float64(behaviour[i, j]), np.float64(behaviour[i, size + j])
                z = (raw_action[i, j] - m) / s
                total -= 0.5 * z * z + math.log(s) + _HALF_LOG_2PI
                mean[i, j] = behaviour[i, j]
                stdev[i, j] = behaviour[i, size + j]
            log_density[i] = total
        elif kind[i] == _UNIFORM:
            mean[i, :] = 0.0
            stdev[i, :] = _UNIFORM_STDEV
            log_density[i] = -size * _LOG_2
        else:
            return i
    return -1
