"""Kernels between the matrix products of a SoftSign network's forward and backward pass.

Matrix products are torch's, which no kernel of ours beats; all that stands between two of them is
one pass over memory here. Sums run in a fixed order: the same bits on every call.
"""

from __future__ import annotations

import math

import numpy as np

from storage.kernel import Floats32, kernel

__all__ = ["activate", "activation_gradient", "adam", "column_sums"]

_ONE = np.float32(1.0)


@kernel
def activate(
    sums: Floats32,
    bias: Floats32,
    linked: bool,
    before: Floats32,
    outputs: Floats32,
    slope: Floats32,
) -> None:
    """Outputs = softsign(sums + bias), plus ``before`` where linked; all (B, width).

    ``slope`` becomes the derivative of the SoftSign, 1 / (1 + |x|)^2.
    """
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            x = sums[i, j] + bias[j]
            inverse = _ONE / (_ONE + abs(x))
            y = x * inverse
            outputs[i, j] = y + before[i, j] if linked else y
            slope[i, j] = inverse * inverse


@kernel
def activation_gradient(
    upstream: Floats32, slope: Floats32, gradient: Floats32, bias_gradient: Floats32
) -> None:
    """Gradient = upstream * slope, (B, width), and its column sums, (width,)."""
    bias_gradient[:] = 0.0
    for i in range(upstream.shape[0]):
        for j in range(upstream.shape[1]):
            value = upstream[i, j] * slope[i, j]
            gradient[i, j] = value
            bias_gradient[j] += value


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
