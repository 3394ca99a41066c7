"""Kernels of the lean actor: scale, run through the layers, draw, one row at a time.

How many rows are evaluated together changes no bit of any of them. ``weights`` and ``biases`` hold
the layers, the head last; ``links`` says which layers add the one before, ``activation`` is a
number of `activation_kernels`; ``scaling`` is (2, O): mean and standard deviation of the
observation. ``layout`` are columns of the head's outputs: V (-1 for none), the first of the mean,
the first of the raw standard deviation (-1: it is ``raw_stdev``), and 1 where the mean goes through
tanh.
"""

from __future__ import annotations

import math

import numpy as np

from storage.kernel import Bytes, Floats, Floats32, kernel, summing_kernel
from training.acting.activation_kernels import activated
from training.acting.behaviour import behaviour_log_density
from training.acting.noise import noise_pair
from training.gaussian import LOG_RATIO_LIMIT

__all__ = ["act_row", "evaluate_rows", "forward_row"]

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_ZERO = np.float32(0.0)


@summing_kernel
def _affine(weight: Floats32, bias: Floats32, inputs: Floats32, outputs: Floats32) -> None:
    """Outputs = weight @ inputs + bias, four rows at a time."""
    rows, columns = weight.shape
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        a, b, c, d = _ZERO, _ZERO, _ZERO, _ZERO
        for j in range(columns):
            x = inputs[j]
            a += weight[i, j] * x
            b += weight[i + 1, j] * x
            c += weight[i + 2, j] * x
            d += weight[i + 3, j] * x
        outputs[i] = a + bias[i]
        outputs[i + 1] = b + bias[i + 1]
        outputs[i + 2] = c + bias[i + 2]
        outputs[i + 3] = d + bias[i + 3]
    for i in range(whole, rows):
        a = _ZERO
        for j in range(columns):
            a += weight[i, j] * inputs[j]
        outputs[i] = a + bias[i]


@kernel
def forward_row(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
    activation: int,
    scaling: Floats,
    observation: Floats,
    scratch: Floats32,
) -> Floats32:
    """Scale one observation and run it through the layers; the head's outputs, in ``scratch``."""
    hidden, fresh = scratch[0], scratch[1]
    head: Floats32 = scratch[2]
    for j in range(observation.shape[0]):
        hidden[j] = np.float32((observation[j] - scaling[0, j]) / scaling[1, j])
    last = len(weights) - 1
    for layer in range(last):
        weight = weights[layer]
        _affine(weight, biases[layer], hidden, fresh)
        for i in range(weight.shape[0]):
            own = activated(fresh[i], activation)
            hidden[i] = own + hidden[i] if links[layer] else own
    _affine(weights[last], biases[last], hidden, head)
    return head


@kernel
def _stdev(raw: float) -> float:
    """Standard deviation of a raw number, as `training.gaussian.stdev_from_raw`."""
    return 0.5 * math.exp(math.asinh(raw))


@kernel
def _mean(number: np.float32, bounded: int) -> np.float32:
    """The policy's mean of an output of the head."""
    return np.float32(math.tanh(number)) if bounded else number


@kernel
def act_row(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
    activation: int,
    layout: tuple[int, int, int, int],
    raw_stdev: Floats32,
    scaling: Floats,
    observation: Floats,
    scratch: Floats32,
    key: tuple[np.uint64, np.uint64],
    step: int,
    lane: int,
    decay: float,
    lanes: int,
    past: int,
    greedy: bool,
    action: Floats32,
) -> float:
    """Fill ``action`` (3, A) with draw, mean and stdev; return V(s), or 0 without one.

    ``decay``, ``lanes`` and ``past`` are those of `training.acting.noise.noise_pair`.
    """
    head = forward_row(weights, biases, links, activation, scaling, observation, scratch)
    size = action.shape[1]
    raw = raw_stdev if layout[2] < 0 else head[layout[2] :]
    noise = (0.0, 0.0)
    for j in range(size):
        if j % 2 == 0 and not greedy:
            noise = noise_pair(key, step, lane, j // 2, decay, lanes, past)
        stdev = np.float32(_stdev(raw[j]))
        mean = _mean(head[layout[1] + j], layout[3])
        action[0, j] = mean + stdev * (noise[0] if j % 2 == 0 else noise[1])
        action[1, j] = mean
        action[2, j] = stdev
    return float(head[layout[0]]) if layout[0] >= 0 else 0.0


@kernel
def evaluate_rows(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
    activation: int,
    layout: tuple[int, int, int, int],
    raw_stdev: Floats32,
    scaling: Floats,
    observations: Floats,
    scratch: Floats32,
    raw_actions: Floats32,
    behaviour: Floats32,
    kinds: Bytes,
    values: Floats32,
    ratios: Floats32,
) -> None:
    """Fill V(s) and, where actions are given, the importance ratio of each row."""
    size = raw_actions.shape[1]
    for i in range(observations.shape[0]):
        head = forward_row(weights, biases, links, activation, scaling, observations[i], scratch)
        values[i] = head[layout[0]] if layout[0] >= 0 else _ZERO
        if not size:
            continue
        raw = raw_stdev if layout[2] < 0 else head[layout[2] :]
        log_ratio = -behaviour_log_density(raw_actions[i], behaviour[i], kinds[i])
        for j in range(size):
            stdev = np.float64(np.float32(_stdev(raw[j])))
            mean = np.float64(_mean(head[layout[1] + j], layout[3]))
            z = (np.float64(raw_actions[i, j]) - mean) / stdev
            log_ratio -= 0.5 * z * z + math.log(stdev) + _HALF_LOG_2PI
        if log_ratio > LOG_RATIO_LIMIT:
            log_ratio = LOG_RATIO_LIMIT
        elif log_ratio < -LOG_RATIO_LIMIT:
            log_ratio = -LOG_RATIO_LIMIT
        ratios[i] = math.exp(log_ratio)
