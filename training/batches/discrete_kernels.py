"""Kernels of one discrete action: distributions over actions, draws from them, importance ratios.

Probabilities of all actions are (n,), in the order of the space; an action is its index from 0. A
policy is ``epsilon`` and ``temperature``: with a temperature of 0 epsilon-greedy, else the softmax
of the values over it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from storage.kernel import Bytes, Floats32, Index, Integers, kernel
from storage.layout import BehaviourKind
from storage.randomness import philox, uniform_double
from training.gaussian import LOG_RATIO_LIMIT

__all__ = [
    "choose",
    "fill_discrete_batch",
    "fill_policy",
    "greedy",
    "probability_ratios",
]

CATEGORICAL = int(BehaviourKind.CATEGORICAL)
_LARGEST_RATIO, _SMALLEST_RATIO = math.exp(LOG_RATIO_LIMIT), math.exp(-LOG_RATIO_LIMIT)


@kernel
def greedy(values: Floats32) -> Index:
    """The first of the actions with the largest value."""
    best = 0
    for i in range(1, values.size):
        if values[i] > values[best]:
            best = i
    return best


@kernel
def fill_policy(
    values: Floats32, epsilon: float, temperature: float, probabilities: Floats32
) -> None:
    """Probabilities of all actions under a policy, float32 (n,), from their values."""
    size, best = values.size, greedy(values)
    if temperature == 0.0:
        for i in range(size):
            probabilities[i] = epsilon / size + (1.0 - epsilon if i == best else 0.0)
        return
    largest, total = np.float64(values[best]), 0.0
    for i in range(size):
        total += math.exp((np.float64(values[i]) - largest) / temperature)
    for i in range(size):
        share = math.exp((np.float64(values[i]) - largest) / temperature) / total
        probabilities[i] = share


@kernel
def choose(
    key: tuple[np.uint64, np.uint64], step: int, lane: int, probabilities: Floats32
) -> Index:
    """Draw an action: a pure function of key, step and lane."""
    block = philox(key[0], key[1], np.uint64(step), np.uint64(lane), np.uint64(0), np.uint64(0))
    total = 0.0
    for i in range(probabilities.size):
        total += np.float64(probabilities[i])
    left, possible = uniform_double(block[0]) * total, 0
    for i in range(probabilities.size):
        if probabilities[i] > 0.0:
            possible = i
            left -= np.float64(probabilities[i])
            if left < 0.0:
                break
    return possible


@kernel
def _usable(behaviour: Floats32, kind: int, action: Index) -> bool:
    """Whether a behaviour is a distribution over actions that could have drawn this one."""
    if kind != CATEGORICAL or not 0 <= action < behaviour.size or not behaviour[action] > 0.0:
        return False
    possible = True
    for i in range(behaviour.size):
        possible &= 0.0 <= behaviour[i] <= 1.0
    return possible


@kernel
def probability_ratios(
    values: Floats32,
    epsilon: float,
    temperature: float,
    actions: Integers,
    behaviour: Floats32,
    kinds: Bytes,
    ratios: Floats32,
) -> None:
    """Fill rho = pi(a|s) / mu(a|s), (B,), within exp(-7) and exp(7), from values (B, n).

    NaN where a row's behaviour is none over these actions.
    """
    probabilities = np.empty(values.shape[1], np.float32)
    for i in range(values.shape[0]):
        if not _usable(behaviour[i], kinds[i], actions[i]):
            ratios[i] = np.nan
            continue
        fill_policy(values[i], epsilon, temperature, probabilities)
        ratio = np.float64(probabilities[actions[i]]) / np.float64(behaviour[i, actions[i]])
        ratios[i] = min(max(ratio, _SMALLEST_RATIO), _LARGEST_RATIO)


@kernel
def fill_discrete_batch(
    action: Integers,
    behaviour: Floats32,
    kind: Bytes,
    given: tuple[Any, Any, Any],
    filled_action: Integers,
    filled_behaviour: Floats32,
    vectors: tuple[Floats32, Floats32, Floats32],
) -> int:
    """Fill a batch of B steps; gives the first row of unusable behaviour, or -1.

    ``action`` are indices; ``given``: reward, whether nothing follows (both of any dtype) and
    sampling weight, (B,); ``vectors``: reward, 1 where something follows, sampling weight.
    """
    reward, continuing, weight = vectors
    for i in range(action.size):
        if not _usable(behaviour[i], kind[i], action[i]):
            return i
        filled_action[i] = action[i]
        for j in range(behaviour.shape[1]):
            filled_behaviour[i, j] = behaviour[i, j]
        reward[i] = np.float32(given[0][i])
        continuing[i] = np.float32(0.0 if given[1][i] else 1.0)
        weight[i] = given[2][i]
    return -1
