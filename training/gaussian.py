"""Diagonal Gaussian densities, importance ratios and divergences, differentiable and batched.

Every function reduces the last dimension (the action's) and broadcasts the others, so that a
standard deviation shared by all states (shape ``(action,)``) serves as well as one a state.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = [
    "DIVERGENCES",
    "LOG_RATIO_LIMIT",
    "divergence_from_behaviour",
    "divergence_from_policy",
    "importance_ratio",
    "log_density",
    "log_ratio",
    "raw_from_stdev",
    "stdev_from_raw",
]

LOG_RATIO_LIMIT = 7.0
"""Logarithms of importance ratios are clamped to plus or minus this before ``exp``."""

_LOG_2PI = math.log(2.0 * math.pi)


def stdev_from_raw(raw: Tensor) -> Tensor:
    """Map a free number x to a standard deviation, (x + sqrt(1 + x^2)) / 2.

    Written as exp(asinh(x)) / 2, which is the same function without the cancellation that turns
    large negative x into a standard deviation of zero.
    """
    return 0.5 * torch.exp(torch.asinh(raw))


def raw_from_stdev(stdev: float) -> float:
    """Inverse of `stdev_from_raw`: x = (stdev^2 - 1/4) / stdev."""
    return (stdev * stdev - 0.25) / stdev


def log_density(action: Tensor, mean: Tensor, stdev: Tensor) -> Tensor:
    """Log density of ``action`` under N(mean, diag(stdev^2)), summed over the last dimension."""
    scaled = (action - mean) / stdev
    quadratic = (scaled * scaled).sum(-1)
    normaliser = torch.log(stdev).sum(-1) + 0.5 * _LOG_2PI * action.shape[-1]
    return -0.5 * quadratic - normaliser


def log_ratio(log_policy: Tensor, log_behaviour: Tensor) -> Tensor:
    """Logarithm of the importance ratio from two log densities, clamped to [-7, 7]."""
    return (log_policy - log_behaviour).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def importance_ratio(log_policy: Tensor, log_behaviour: Tensor) -> Tensor:
    """Rho = pi(a|s) / mu(a|s) from two log densities (ReF-ER eq. 5), within [e^-7, e^7]."""
    return log_ratio(log_policy, log_behaviour).exp()


def divergence_from_behaviour(
    behaviour_mean: Tensor, behaviour_stdev: Tensor, mean: Tensor, stdev: Tensor
) -> Tensor:
    """KL(mu || pi), the divergence of ReF-ER eq. 11, summed over the last dimension."""
    return _divergence(behaviour_mean, behaviour_stdev, mean, stdev)


def divergence_from_policy(
    behaviour_mean: Tensor, behaviour_stdev: Tensor, mean: Tensor, stdev: Tensor
) -> Tensor:
    """KL(pi || mu), the direction of the authors' code, summed over the last dimension."""
    return _divergence(mean, stdev, behaviour_mean, behaviour_stdev)


DIVERGENCES = {
    "behaviour_policy": divergence_from_behaviour,
    "policy_behaviour": divergence_from_policy,
}
"""The divergences by the names that `training.refer.ReferSettings` gives them."""


def _divergence(
    first_mean: Tensor, first_stdev: Tensor, second_mean: Tensor, second_stdev: Tensor
) -> Tensor:
    """KL(first || second) of diagonal Gaussians."""
    shift = (first_mean - second_mean) / second_stdev
    ratio = first_stdev / second_stdev
    return (0.5 * (ratio * ratio + shift * shift) - torch.log(ratio)).sum(
        -1
    ) - 0.5 * first_mean.shape[-1]
