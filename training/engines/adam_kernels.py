"""Adam's step and the gradient's length, over all parameters in one call each."""

from __future__ import annotations

import math

import numpy as np

from storage.kernel import Floats32, kernel, summing_kernel

__all__ = ["adam", "gradient_norm"]

_ONE = np.float32(1.0)


@summing_kernel
def gradient_norm(parameters: tuple[Floats32, ...], gradients: tuple[Floats32, ...]) -> float:
    """L2 norm over all gradients; each lies in the first rows and columns of a padded matrix."""
    total = np.float64(0.0)
    for k in range(len(parameters)):
        gradient = gradients[k]
        rows, columns = parameters[k].shape
        for i in range(rows):
            row = np.float32(0.0)
            for j in range(columns):
                row += gradient[i, j] * gradient[i, j]
            total += np.float64(row)
    return math.sqrt(total)


@kernel
def adam(
    parameters: tuple[Floats32, ...],
    averages: tuple[Floats32, ...],
    squares: tuple[Floats32, ...],
    steps: tuple[Floats32, ...],
    gradients: tuple[Floats32, ...],
    factor: float,
    learning_rate: float,
    settings: tuple[float, float, float, float],
) -> None:
    """One Adam step, as torch.optim.Adam takes it; parameters and their states are matrices.

    ``steps`` are the counters of the parameters' states, (1, 1) each, and count this step.
    ``gradients`` may be wider than the parameters and are scaled by ``factor`` first; ``settings``
    are beta_1, beta_2, epsilon (outside the root) and the coupled weight decay.
    """
    beta_1, beta_2, epsilon, decay = settings
    keep, add = np.float32(beta_2), np.float32(1.0 - beta_2)
    move, small = np.float32(1.0 - beta_1), np.float32(epsilon)
    shrink, scale = np.float32(decay), np.float32(factor)
    for k in range(len(parameters)):
        parameter, average, square = parameters[k], averages[k], squares[k]
        gradient = gradients[k]
        steps[k][0, 0] += _ONE
        step = np.float64(steps[k][0, 0])
        size = np.float32(learning_rate / (1.0 - beta_1**step))
        root = np.float32(1.0 / math.sqrt(1.0 - beta_2**step))
        for i in range(parameter.shape[0]):
            for j in range(parameter.shape[1]):
                g = scale * gradient[i, j] + shrink * parameter[i, j]
                average[i, j] += move * (g - average[i, j])
                square[i, j] = keep * square[i, j] + add * g * g
                parameter[i, j] -= size * average[i, j] / (np.sqrt(square[i, j]) * root + small)
