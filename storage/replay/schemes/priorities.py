"""Priorities: from errors to stored priorities, and from these to the weights of the sum tree.

A step's priority p lies in the overlay, float32: 0.0 means that it has none yet, -0.0 that it is 0
and the step never drawn. The tree's weight is a pure function of it, so the tree can be rebuilt
from the column at any time. A step's slot in the tree is its ring position modulo the ring's size.
"""

from __future__ import annotations

import numpy as np

from storage.kernel import (
    Floats,
    Floats32,
    Index,
    Integers,
    kernel,
    load_f4,
    load_f8,
    load_i4,
    prefetch,
    store_f4,
    store_f8,
)
from storage.powers import power, raise_to
from storage.replay.schemes.sum_tree import NODES, refresh_tree
from storage.replay.tables import (
    FIRST,
    LENGTH,
    MASK,
    PRIORITY,
    SEGMENT,
    START,
)

__all__ = [
    "AFTER",
    "BEFORE",
    "EPSILON",
    "ETA",
    "HUBER",
    "LARGEST",
    "NEAR",
    "RULES",
    "empty_tree",
    "feed_back_priorities",
    "fill_tree",
    "largest_priority",
    "move_weights",
    "new_priority",
    "put",
    "store_errors",
]

AFTER, BEFORE, EPSILON, ETA, HUBER, NEAR, LARGEST = range(7)
"""Rules, float64: alpha of the tree's weights, alpha of the stored priorities, epsilon, eta,
whether errors pass through the Huber loss, how many steps before a drawn one are worth asking for
early, and the largest priority that was ever set."""
RULES = 7

_BLOCK = 4096
_FLOAT32_MAX = 3.4028234663852886e38


@kernel
def new_priority(error: float, rules: Floats) -> float:
    """(|error| + epsilon) to the power of alpha where stored priorities have it (PSER eq. 3)."""
    size = abs(error)
    if rules[HUBER] != 0.0:
        size = 0.5 * size * size if size <= 1.0 else size - 0.5
    return min(power(size + rules[EPSILON], rules[BEFORE]), _FLOAT32_MAX)


@kernel
def put(nodes: Index, slot: Index, address: Index, priority: np.float32, rules: Floats) -> None:
    """Store a priority in its row and its weight p^alpha in the tree's slot (PSER eq. 4)."""
    store_f4(address, priority if priority > 0.0 else np.float32(-0.0))
    store_f8(nodes + 8 * slot, power(np.float64(priority), rules[AFTER]))


@kernel
def store_errors(
    episodes: Integers,
    segments: Integers,
    steps: Integers,
    errors: Floats32,
    tree: tuple[Integers, Index],
    rules: Floats,
    found: tuple[Integers, Integers, Floats32],
) -> Index:
    """Give the steps of the keys `steps` the priorities of their new errors.

    p = max(new, eta p_stored) with the priority that is stored before any is changed (PSER eq. 9);
    of a step named twice the last one holds. `tree` is (layout, ring mask). Steps that have left
    the window are passed over. `found` becomes, of the others: their keys, their tree slots, and
    the priorities as stored. Gives how many they are.
    """
    layout, mask = tree
    keys, slots, priorities = found
    addresses = np.empty(steps.size, np.int64)
    near = np.int64(rules[NEAR])
    count = 0
    for i in range(steps.size):
        if steps[i] < 0:
            continue
        episode, t = steps[i] >> 32, steps[i] & MASK
        keys[count] = steps[i]
        slots[count] = (episodes[episode, FIRST] + t) & mask
        row = episodes[episode, START] + t
        addresses[count] = segments[episodes[episode, SEGMENT], PRIORITY] + 4 * row
        priorities[count] = new_priority(np.float64(errors[i]), rules)
        prefetch(addresses[count])
        prefetch(layout[NODES] + 8 * slots[count])
        if near > 0:
            prefetch(addresses[count] - 4 * near)
            prefetch(layout[NODES] + 8 * ((slots[count] - near) & mask))
        count += 1
    if rules[ETA] > 0.0:
        for i in range(count):
            kept = rules[ETA] * np.float64(load_f4(addresses[i]))
            priorities[i] = max(np.float64(priorities[i]), kept)
    weights = priorities[:count].astype(np.float64)
    raise_to(rules[AFTER], weights)
    for i in range(count):
        priority = priorities[i]
        store_f4(addresses[i], priority if priority > 0.0 else np.float32(-0.0))
        store_f8(layout[NODES] + 8 * slots[i], weights[i])
    largest = np.float32(0.0)
    for i in range(count):
        priorities[i] = abs(load_f4(addresses[i]))
        largest = max(largest, priorities[i])
    rules[LARGEST] = max(rules[LARGEST], np.float64(largest))
    return count


@kernel
def feed_back_priorities(
    episodes: Integers,
    segments: Integers,
    steps: Integers,
    errors: Floats32,
    layout: Integers,
    mask: Index,
    rules: Floats,
) -> None:
    """`store_errors` and the tree above."""
    tree = (layout, mask)
    keys, slots = np.empty((2, steps.size), np.int64)
    found = (keys, slots, np.empty(steps.size, np.float32))
    count = store_errors(episodes, segments, steps, errors, tree, rules, found)
    refresh_tree(layout, slots[:count])


@kernel
def fill_tree(
    episodes: Integers,
    segments: Integers,
    steps: Integers,
    span: tuple[Index, Index],
    layout: Integers,
    rules: Floats,
    initial: float,
    errors: Floats32,
    keys: Integers,
) -> Index:
    """Fill the tree's slots of the steps at ring positions [first, last) from the column.

    Steps without a (valid) priority get that of their error, float32 [last - first], or `initial`
    where `errors` is empty; their keys go to `keys`, unless that is empty. Gives how many they are.
    """
    first, last = span
    mask = steps.size - 1
    slots = np.empty(_BLOCK, np.int64)
    fresh = 0
    known, weight = np.float32(0.0), 0.0
    for begin in range(first, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        for position in range(begin, end):
            entry = steps[position & mask]
            episode = entry >> 32
            row = episodes[episode, START] + (entry & MASK)
            address = segments[episodes[episode, SEGMENT], PRIORITY] + 4 * row
            priority = load_f4(address)
            if load_i4(address) == 0 or not (np.isfinite(priority) and priority >= 0.0):
                given = new_priority(errors[position - first], rules) if errors.size else initial
                priority = np.float32(given)
                store_f4(address, priority if priority > 0.0 else np.float32(-0.0))
                rules[LARGEST] = max(rules[LARGEST], np.float64(priority))
                if keys.size:
                    keys[fresh] = episode << 32 | (entry & MASK)
                fresh += 1
            if priority != known:
                known, weight = priority, power(np.float64(abs(priority)), rules[AFTER])
            store_f8(layout[NODES] + 8 * (position & mask), weight)
            slots[position - begin] = position & mask
        refresh_tree(layout, slots[: end - begin])
    return fresh


@kernel
def empty_tree(layout: Integers, mask: Index, first: Index, last: Index) -> None:
    """Set the weights of ring positions [first, last) to 0."""
    slots = np.empty(_BLOCK, np.int64)
    for begin in range(first, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        for position in range(begin, end):
            store_f8(layout[NODES] + 8 * (position & mask), 0.0)
            slots[position - begin] = position & mask
        refresh_tree(layout, slots[: end - begin])


@kernel
def move_weights(layout: Integers, mask: Index, first: Index, last: Index, by: Index) -> None:
    """Move the weights of ring positions [first, last) to [first + by, last + by)."""
    nodes = layout[NODES]
    for position in range(last - 1, first - 1, -1):
        weight = load_f8(nodes + 8 * (position & mask))
        store_f8(nodes + 8 * ((position + by) & mask), weight)
    slots = np.empty(_BLOCK, np.int64)
    for begin in range(first + by, last + by, _BLOCK):
        end = min(begin + _BLOCK, last + by)
        for position in range(begin, end):
            slots[position - begin] = position & mask
        refresh_tree(layout, slots[: end - begin])


@kernel
def largest_priority(
    episodes: Integers, segments: Integers, steps: Integers, span: tuple[Index, Index]
) -> float:
    """The largest valid priority that is stored for ring positions [first, last); 0 without one."""
    first, last = span
    largest = np.float32(0.0)
    position = first
    while position < last:
        entry = steps[position & (steps.size - 1)]
        episode = episodes[entry >> 32]
        t = entry & MASK
        address = segments[episode[SEGMENT], PRIORITY] + 4 * (episode[START] + t)
        count = min(episode[LENGTH] - t, last - position)
        for i in range(count):
            priority = load_f4(address + 4 * i)
            if priority > largest and np.isfinite(priority):
                largest = priority
        position += count
    return np.float64(largest)
