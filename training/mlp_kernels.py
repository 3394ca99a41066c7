"""Kernels between the matrix products of a SoftSign network's forward and backward pass.

Matrix products are a BLAS's, which no kernel of ours beats; all that stands between two of them is
one pass over memory here. Sums run in a fixed order: the same bits on every call.
"""

from __future__ import annotations

import math

import numpy as np

from storage.kernel import Floats32, kernel

__all__ = [
    "activate",
    "adam",
    "add",
    "add_row",
    "column_sums",
    "gradient_in_place",
    "linked_gradient",
]

_ONE = np.float32(1.0)


@kernel
def activate(hidden: Floats32, bias: Floats32) -> None:
    """Hidden = softsign(hidden + bias), (B, width), in place."""
    for i in range(hidden.shape[0]):
        for j in range(hidden.shape[1]):
            x = hidden[i, j] + bias[j]
            hidden[i, j] = x / (_ONE + abs(x))


@kernel
def gradient_in_place(gradient: Floats32, outputs: Floats32, sums: Floats32) -> None:
    """Gradient, (B, width), times the slope of the SoftSign that gave ``outputs``, in place.

    The slope at x is 1 / (1 + |x|)^2 = (1 - |y|)^2 at y = softsign(x). ``sums``, (width,), become
    the column sums.
    """
    sums[:] = 0.0
    for i in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            root = _ONE - abs(outputs[i, j])
            value = gradient[i, j] * root * root
            gradient[i, j] = value
            sums[j] += value


@kernel
def linked_gradient(
    upstream: Floats32, outputs: Floats32, before: Floats32, gradient: Floats32, sums: Floats32
) -> None:
    """The same where ``outputs`` hold the SoftSign plus ``before``; ``upstream`` is kept."""
    sums[:] = 0.0
    for i in range(upstream.shape[0]):
        for j in range(upstream.shape[1]):
            root = _ONE - abs(outputs[i, j] - before[i, j])
            value = upstream[i, j] * root * root
            gradient[i, j] = value
            sums[j] += value


@kernel
def add(values: Floats32, others: Floats32) -> None:
    """Add ``others`` to ``values``, both (B, width), in place."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] += others[i, j]


@kernel
def add_row(values: Floats32, row: Floats32) -> None:
    """Add ``row``, (width,), to every row of ``values``, (B, width), in place."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] += row[j]


@kernel
def column_sums(values: Floats32, sums: Floats32) -> None:
    """Sums over the first dimension, in order."""
    sums[:] = 0.0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            sums[j] += values[i, j]


@kernel
def adam(
    parameters: tuple[Floats32, ...],
    averages: tuple[Floats32, ...],
    squares: tuple[Floats32, ...],
    steps: tuple[Floats32, ...],
    gradient: Floats32,
    factor: float,
    learning_rate: float,
    settings: tuple[float, float, float, float],
) -> None:
    """One Adam step, as torch.optim.Adam takes it, on flat parameters and their flat states.

    ``steps`` are the counters of the parameters' states, (1,) each, and count this step;
    ``gradient`` holds theirs one after the other and is scaled by ``factor`` first; ``settings``
    are beta_1, beta_2, epsilon (outside the root) and the coupled weight decay.
    """
    beta_1, beta_2, epsilon, decay = settings
    keep, add = np.float32(beta_2), np.float32(1.0 - beta_2)
    move, small = np.float32(1.0 - beta_1), np.float32(epsilon)
    shrink, scale = np.float32(decay), np.float32(factor)
    offset = 0
    for k in range(len(parameters)):
        parameter, average, square = parameters[k], averages[k], squares[k]
        steps[k][0] += _ONE
        step = np.float64(steps[k][0])
        size = np.float32(learning_rate / (1.0 - beta_1**step))
        root = np.float32(1.0 / math.sqrt(1.0 - beta_2**step))
        for i in range(parameter.size):
            g = scale * gradient[offset + i] + shrink * parameter[i]
            average[i] += move * (g - average[i])
            square[i] = keep * square[i] + add * g * g
            parameter[i] -= size * average[i] / (np.sqrt(square[i]) * root + small)
        offset += parameter.size
