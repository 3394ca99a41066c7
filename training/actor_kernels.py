"""Kernels of the lean actor: scale, run through the layers, draw, one row at a time.

How many rows are evaluated together changes no bit of any of them. ``weights`` and ``biases`` hold
the layers, the head last; ``links`` says which layers add the one before; ``scaling`` is (2, O):
mean and standard deviation of the observation; ``raw_stdev`` is empty where the head gives it.
"""

from __future__ import annotations

import math

import numpy as np

from storage.kernel import Bytes, Floats, Floats32, kernel, summing_kernel
from storage.randomness import normal_pair, philox, uniform_double
from training.behaviour import behaviour_log_density
from training.gaussian import LOG_RATIO_LIMIT

__all__ = ["NOISE_LIMIT", "act_row", "evaluate_rows"]

NOISE_LIMIT = 3.0
"""Standard normal draws beyond plus or minus this are replaced by uniform ones within it."""

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_ONE = np.float32(1.0)
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
def _forward(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
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
            activated = fresh[i] / (_ONE + abs(fresh[i]))
            hidden[i] = activated + hidden[i] if links[layer] else activated
    _affine(weights[last], biases[last], hidden, head)
    return head


@kernel
def _stdev(raw: float) -> float:
    """Standard deviation of a raw number, as `training.gaussian.stdev_from_raw`."""
    return 0.5 * math.exp(math.asinh(raw))


@kernel
def _noise(
    key: tuple[np.uint64, np.uint64], step: int, lane: int, pair: int
) -> tuple[float, float]:
    """Two of the standard normal numbers of one act, within [-3, 3]."""
    block = philox(key[0], key[1], np.uint64(step), np.uint64(lane), np.uint64(pair), np.uint64(0))
    first, second = normal_pair(block[0], block[1])
    if abs(first) > NOISE_LIMIT:
        first = NOISE_LIMIT * (2.0 * uniform_double(block[2]) - 1.0)
    if abs(second) > NOISE_LIMIT:
        second = NOISE_LIMIT * (2.0 * uniform_double(block[3]) - 1.0)
    return first, second


@kernel
def act_row(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
    raw_stdev: Floats32,
    scaling: Floats,
    observation: Floats,
    scratch: Floats32,
    key: tuple[np.uint64, np.uint64],
    step: int,
    lane: int,
    greedy: bool,
    action: Floats32,
) -> float:
    """Fill ``action`` (3, A) with draw, mean and stdev; return V(s)."""
    head = _forward(weights, biases, links, scaling, observation, scratch)
    size = action.shape[1]
    raw = raw_stdev if raw_stdev.shape[0] else head[1 + size :]
    noise = (0.0, 0.0)
    for j in range(size):
        if j % 2 == 0 and not greedy:
            noise = _noise(key, step, lane, j // 2)
        stdev = np.float32(_stdev(raw[j]))
        action[0, j] = head[1 + j] + stdev * (noise[0] if j % 2 == 0 else noise[1])
        action[1, j] = head[1 + j]
        action[2, j] = stdev
    return float(head[0])


@kernel
def evaluate_rows(
    weights: tuple[Floats32, ...],
    biases: tuple[Floats32, ...],
    links: Bytes,
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
        head = _forward(weights, biases, links, scaling, observations[i], scratch)
        values[i] = head[0]
        if not size:
            continue
        raw = raw_stdev if raw_stdev.shape[0] else head[1 + size :]
        log_ratio = -behaviour_log_density(raw_actions[i], behaviour[i], kinds[i])
        for j in range(size):
            stdev = np.float64(np.float32(_stdev(raw[j])))
            z = (np.float64(raw_actions[i, j]) - np.float64(head[1 + j])) / stdev
            log_ratio -= 0.5 * z * z + math.log(stdev) + _HALF_LOG_2PI
        if log_ratio > LOG_RATIO_LIMIT:
            log_ratio = LOG_RATIO_LIMIT
        elif log_ratio < -LOG_RATIO_LIMIT:
            log_ratio = -LOG_RATIO_LIMIT
        ratios[i] = math.exp(log_ratio)
