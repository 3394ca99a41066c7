"""The kernel that turns a gathered batch into what stages compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.kernel import Bytes, Floats, Floats32, kernel
from training.acting.behaviour import describe_behaviour

__all__ = ["any_truncated", "fill_batch", "scale_rows"]


@kernel
def scale_rows(observations: Floats, scaling: Floats, scaled: Floats32) -> None:
    """Scale observations (B, O) by mean and standard deviation, ``scaling`` (2, O)."""
    for i in range(observations.shape[0]):
        for j in range(observations.shape[1]):
            scaled[i, j] = np.float32((observations[i, j] - scaling[0, j]) / scaling[1, j])


@kernel
def fill_batch(
    observations: Floats,
    scaling: Floats,
    raw_action: Floats32,
    behaviour: Floats32,
    kind: Bytes,
    given: tuple[Any, Any, Any],
    matrices: tuple[Floats32, Floats32, Floats32, Floats32],
    vectors: tuple[Floats32, Floats32, Floats32, Floats32],
) -> int:
    """Fill a batch of B steps; gives the first row of unusable behaviour, or -1.

    Observations (B, O) are scaled by mean and standard deviation, ``scaling`` (2, O), in float64
    and rounded once. ``given``: reward (any dtype), next value target (or whatever stands for the
    future, any dtype) and sampling weight, (B,).
    ``matrices``: scaled observation, raw action, mean and stdev of the behaviour; ``vectors``: log
    density of the raw action under it, then ``given``.
    """
    state, action, mean, stdev = matrices
    log_density, reward, target, weight = vectors
    scale_rows(observations, scaling, state)
    for i in range(observations.shape[0]):
        for k in range(action.shape[1]):
            action[i, k] = raw_action[i, k]
        reward[i] = np.float32(given[0][i])
        target[i] = np.float32(given[1][i])
        weight[i] = given[2][i]
    return describe_behaviour(raw_action, behaviour, kind, mean, stdev, log_density)


@kernel
def any_truncated(truncated: NDArray[np.bool_], terminated: NDArray[np.bool_]) -> bool:
    """Whether a step, (B,), was cut without ending in a terminal state."""
    found = False
    for i in range(truncated.size):
        found |= truncated[i] and not terminated[i]
    return found
