"""DDPG's gradients at the outputs of its networks, in closed form.

The same numbers that autograd finds for `critic_loss` and `actor_loss`, per step (the table of
ReF-ER's blended gradients): near steps give the critic its error and the actor beta times the slope
of Q at its mean, every step gives the actor (1 - beta) times the gradient of the divergence.
"""

from __future__ import annotations

import math

import numpy as np

from storage.kernel import Bytes, Floats32, kernel
from training.divergence_kernels import divergence_of, divergence_slope
from training.ratio_kernels import is_near, log_density_of, log_normaliser, ratio_of

__all__ = ["actor_gradient", "actor_pull", "critic_gradient", "fit", "take_means"]

_ZERO = np.float32(0.0)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)


@kernel
def take_means(outputs: Floats32, bounded: bool, means: Floats32) -> None:
    """Fill the policy's ``means`` (B, A) from an actor's outputs."""
    for i in range(means.shape[0]):
        for k in range(means.shape[1]):
            number = outputs[i, k]
            means[i, k] = np.float32(math.tanh(number)) if bounded else number


@kernel
def fit(
    means: Floats32,
    stdev: Floats32,
    action: Floats32,
    behaviour_log_density: Floats32,
    bound: float,
    ratio: Floats32,
    near: Bytes,
) -> None:
    """Fill importance ratios and whether they lie within the far bound, (B,) each."""
    normaliser = log_normaliser(stdev)
    for i in range(means.shape[0]):
        log_policy = log_density_of(i, action, means, 0, stdev, normaliser)
        ratio[i] = ratio_of(log_policy - behaviour_log_density[i])
        near[i] = is_near(ratio[i], np.float32(bound))


@kernel
def critic_gradient(
    outputs: Floats32,
    next_outputs: Floats32,
    vectors: tuple[Floats32, Floats32, Floats32],
    near: Bytes,
    scale: float,
    discount: float,
    gradient: Floats32,
    feedback: Floats32,
) -> float:
    """Fill the gradient at Q(s, a) and the feedback (2, B), Q and |error|; gives the loss.

    ``vectors`` are reward, continuing and sampling weight, (B,) each; steps that are not ``near``
    do not count.
    """
    reward, continuing, weight = vectors
    size = weight.size
    worth, kept = np.float32(discount), np.float32(scale)
    loss = 0.0
    for i in range(size):
        value = outputs[i, 0]
        target = reward[i] / kept + worth * continuing[i] * next_outputs[i, 0]
        error = target - value
        pull = weight[i] / np.float32(size) * error if near[i] else _ZERO
        loss += _HALF * pull * error
        gradient[i, 0] = -pull
        feedback[0, i] = value
        feedback[1, i] = abs(error)
    return loss


@kernel
def actor_pull(
    worth: Floats32, weight: Floats32, near: Bytes, improving: float, gradient: Floats32
) -> float:
    """Fill the gradient at Q(s, m(s)), the ``worth``, for a critic that is not to learn.

    Gives the loss, -Q times ``improving`` (beta, or 1 without rule 2) over the steps that count.
    """
    loss = 0.0
    for i in range(weight.size):
        share = weight[i] / np.float32(weight.size)
        pull = share * np.float32(improving) if near[i] else _ZERO
        gradient[i, 0] = -pull
        loss -= pull * worth[i, 0]
    return loss


@kernel
def actor_gradient(
    means: Floats32,
    stdev: Floats32,
    behaviour: tuple[Floats32, Floats32],
    weight: Floats32,
    slope: Floats32,
    first: int,
    holding: float,
    rules: tuple[bool, bool, bool],
    gradient: Floats32,
    divergence: Floats32,
) -> float:
    """Fill the gradient at the actor's outputs, and the divergence (B,); gives its loss.

    ``behaviour`` are mean and stdev, (B, A) each; ``slope`` holds the gradient at the means in the
    columns from ``first`` on; ``holding`` is 1 - beta; ``rules`` are rule 2, whether the divergence
    is KL(pi || mu), and whether the mean is bounded.
    """
    mu_mean, mu_stdev = behaviour
    rule_2, reverse, bounded = rules
    loss = 0.0
    for i in range(weight.size):
        divergence[i] = divergence_of(i, means, 0, stdev, mu_mean, mu_stdev, reverse)
        share = weight[i] / np.float32(weight.size) * np.float32(holding)
        if rule_2:
            loss += share * divergence[i]
        for k in range(stdev.size):
            by_mean = slope[i, first + k]
            if rule_2:
                held = divergence_slope(
                    means[i, k], stdev[k], mu_mean[i, k], mu_stdev[i, k], reverse
                )
                by_mean += share * held[0]
            if bounded:
                by_mean *= _ONE - means[i, k] * means[i, k]
            gradient[i, k] = by_mean
    return loss
