"""Drawing ring positions in proportion to the weights of a sum tree, and their sampling weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from storage.kernel import Floats, Floats32, Index, Integers, kernel, load_f8, prefetch
from storage.powers import raise_to
from storage.randomness import philox, uniform_double
from storage.replay.schemes.sum_tree import LEVELS, MINIMA, NODES, OFFSETS, find_slots

__all__ = ["draw_prioritized"]


@kernel
def _targets(
    key: np.ndarray[Any, np.dtype[np.uint64]],
    index: Index,
    total: float,
    stratified: bool,
    targets: Any,
) -> None:
    """Points in [0, total]: each in its own of equal shares, or anywhere."""
    size = targets.size
    share = total / size
    zero = np.uint64(0)
    for block in range((size + 3) // 4):
        words = philox(key[0], key[1], np.uint64(block), np.uint64(index), zero, zero)
        for word in range(min(4, size - 4 * block)):
            i = 4 * block + word
            point = uniform_double(words[word])
            targets[i] = (i + point) * share if stratified else point * total


@kernel
def _fill_weights(weights: Floats32, found: Floats, smallest: float, beta: float) -> None:
    """(1 / (N P(i)))^beta over its largest value, which belongs to the smallest tree weight."""
    for i in range(weights.size):
        found[i] = smallest / found[i]
    raise_to(beta, found)
    for i in range(weights.size):
        weights[i] = found[i]


@kernel
def draw_prioritized(
    layout: Integers,
    ends: Integers,
    steps: Integers,
    key: np.ndarray[Any, np.dtype[np.uint64]],
    index: Index,
    beta: float,
    stratified: bool,
    positions: Integers,
    weights: Floats32,
) -> bool:
    """Fill `positions` with draws of P(i) = w_i / sum w, `weights` with (1 / (N P(i)))^beta.

    The weights are divided by the largest one, of the whole tree where its layout keeps smallest
    weights, else of the batch (PSER eqs. 4 and 10). Randomness: Philox blocks (block, index) of the
    key, one for four steps. The drawn entries of the ring `steps`, which a gather reads next, are
    on their way into the cache meanwhile. Gives False, having drawn nothing, if every weight is 0.
    """
    nodes = layout[NODES]
    root = layout[OFFSETS + layout[LEVELS] - 1]
    total = load_f8(nodes + 8 * root)
    if not total > 0.0:
        return False
    ring, mask = steps.ctypes.data, steps.size - 1
    targets = np.empty(positions.size)
    _targets(key, index, total, stratified, targets)
    find_slots(layout, targets, positions)
    smallest = np.inf
    for i in range(positions.size):
        targets[i] = load_f8(nodes + 8 * positions[i])
        smallest = min(smallest, targets[i])
        prefetch(ring + steps.strides[0] * positions[i])
        positions[i] = ends[0] + ((positions[i] - ends[0]) & mask)
    if layout[MINIMA] != 0:
        smallest = load_f8(layout[MINIMA] + 8 * root)
    _fill_weights(weights, targets, smallest, beta)
    return True
