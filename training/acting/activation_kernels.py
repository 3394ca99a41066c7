"""What hidden layers apply to their sums, as numbers and code for kernels."""

from __future__ import annotations

import math

import numpy as np

from storage.kernel import kernel

__all__ = ["ACTIVATION_CODES", "RELU", "SOFTSIGN", "TANH", "activated"]

ACTIVATION_CODES = {"softsign": 0, "relu": 1, "tanh": 2}
"""Numbers of `training.network.ACTIVATIONS`."""
SOFTSIGN, RELU, TANH = (ACTIVATION_CODES[name] for name in ("softsign", "relu", "tanh"))

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@kernel
def activated(number: np.float32, activation: int) -> np.float32:
    """What a hidden layer gives for one of its sums; what is no number stays so."""
    if activation == RELU:
        return _ZERO if number < _ZERO else number
    if activation == TANH:
        return np.float32(math.tanh(number))
    return number / (_ONE + abs(number))
