"""NAF's quadratic Q in plain NumPy, and batches of transitions, for its tests."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from training.batches.transition_batch import TransitionBatch
from training.stage import ScheduleTensors

Floats = NDArray[np.float64]

MAPS: dict[str, Callable[[float], float]] = {
    "smooth": lambda x: 0.5 * (x + math.sqrt(1.0 + x * x)),
    "exp": math.exp,
}
SLOPES: dict[str, Callable[[float], float]] = {
    "smooth": lambda x: 0.5 * (1.0 + x / math.sqrt(1.0 + x * x)),
    "exp": math.exp,
}


def factor(triangle: Floats, size: int, diagonal: str) -> Floats:
    """L of its rows up to the diagonal, one number after another."""
    lower, at = np.zeros((size, size)), 0
    for i in range(size):
        for j in range(i + 1):
            lower[i, j] = MAPS[diagonal](triangle[at]) if i == j else triangle[at]
            at += 1
    return lower


def naive_q(outputs: Floats, action: Floats, diagonal: str, bounded: bool) -> float:
    """Q of one row of the head's outputs: V, triangle of L, mean."""
    size = len(action)
    mean = outputs[-size:]
    apart = action - (np.tanh(mean) if bounded else mean)
    lower = factor(outputs[1:-size], size, diagonal)
    return float(outputs[0] - 0.5 * apart @ (lower @ lower.T) @ apart)


def naive_slopes(outputs: Floats, action: Floats, diagonal: str, bounded: bool) -> Floats:
    """Derivatives of Q by the head's outputs, as the reference writes them with P = L L^T."""
    size = len(action)
    mean = np.tanh(outputs[-size:]) if bounded else outputs[-size:]
    apart, triangle = action - mean, outputs[1:-size]
    lower = factor(triangle, size, diagonal)
    by_p = -0.5 * np.outer(apart, apart)
    by_lower = (by_p + by_p.T) @ lower
    by_mean = (lower @ lower.T) @ apart * (1.0 - mean**2 if bounded else 1.0)
    by_triangle = [
        by_lower[i, j] * (SLOPES[diagonal](triangle[i * (i + 1) // 2 + i]) if i == j else 1.0)
        for i in range(size)
        for j in range(i + 1)
    ]
    return np.array([1.0, *by_triangle, *by_mean])


def transitions(size: int, observations: int, actions: int, seed: int = 4) -> TransitionBatch:
    """Steps of a behaviour whose deviations differ; every fifth one ended."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    mean, stdev = (
        normal(size, actions) * 0.05,
        0.15 + 0.1 * torch.rand(size, actions, generator=draw),
    )
    action = mean + stdev * normal(size, actions)
    return TransitionBatch(
        observation=normal(size, observations),
        next_observation=normal(size, observations),
        raw_action=action,
        reward=normal(size),
        continuing=(torch.arange(size) % 5 > 0).float(),
        behaviour_mean=mean,
        behaviour_stdev=stdev,
        behaviour_log_density=torch.distributions.Normal(mean, stdev).log_prob(action).sum(-1),
        sampling_weight=0.5 + torch.rand(size, generator=draw),
    )


def schedule(learning_rate: float = 0.0, far_bound: float = 1.5) -> ScheduleTensors:
    numbers = ScheduleTensors("learning_rate", "beta", "far_bound", "reward_scale")
    numbers.set(learning_rate=learning_rate, beta=0.3, far_bound=far_bound, reward_scale=1.7)
    return numbers
