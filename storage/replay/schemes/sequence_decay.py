"""PSER's decay: what new priorities give to the steps before them in their episodes.

Two phases, so that the order of a batch plays no role: all new priorities are stored first (see
`priorities`), then every one of them is carried back over its window. Nothing reaches across an
episode's first step, nor, where it is asked for, across a step at which a life was lost.
"""

from __future__ import annotations

import numpy as np

from storage.kernel import Floats, Floats32, Index, Integers, kernel, load_f4, load_u1
from storage.replay.schemes.priorities import LARGEST, put
from storage.replay.schemes.sum_tree import NODES, refresh_tree
from storage.replay.tables import FIRST, MASK, PRIORITY, SEGMENT, START

__all__ = ["decay_add", "decay_max"]

_ROOM = 1024


@kernel
def _lost_life(segments: Integers, slot: Index, life_lost: Index, row: Index) -> bool:
    """Whether a life was lost at a step; `life_lost` is the column's place, 0 for none."""
    return bool(life_lost > 0 and load_u1(segments[slot, life_lost] + row) != 0)


@kernel
def decay_max(
    episodes: Integers,
    segments: Integers,
    tree: tuple[Integers, Index],
    rules: Floats,
    factors: Floats,
    life_lost: Index,
    keys: Integers,
    priorities: Floats32,
) -> None:
    """p_{n-i} = max(p_n decay^i, p_{n-i}) for each source n (PSER eq. 6); refreshes the tree.

    `keys` (episode slot << 32 | t) and `priorities` are the sources, in any order, whose own
    weights are set and above which the tree is not refreshed yet; `factors` are decay^1 … decay^W;
    `tree` is (layout, ring mask).
    """
    layout, mask = tree
    changed = np.empty(_ROOM, np.int64)
    count = 0
    for source in range(keys.size):
        episode, t = keys[source] >> 32, keys[source] & MASK
        changed[count] = (episodes[episode, FIRST] + t) & mask
        count += 1
        if count == _ROOM:
            refresh_tree(layout, changed)
            count = 0
        slot, start = episodes[episode, SEGMENT], episodes[episode, START]
        column = segments[slot, PRIORITY]
        for i in range(min(factors.size, t)):
            before = t - 1 - i
            row = start + before
            if _lost_life(segments, slot, life_lost, row):
                break
            carried = np.float32(np.float64(priorities[source]) * factors[i])
            if carried == 0.0:
                break
            if carried > load_f4(column + 4 * row):
                place = (episodes[episode, FIRST] + before) & mask
                put(layout[NODES], place, column + 4 * row, carried, rules)
                changed[count] = place
                count += 1
                if count == _ROOM:
                    refresh_tree(layout, changed)
                    count = 0
    refresh_tree(layout, changed[:count])


@kernel
def _carried(
    keys: Integers, priorities: Floats32, factors: Floats, span: tuple[Index, Index], key: Index
) -> float:
    """The sum of p_n decay^i of the sources at places [first, last] of the keys, nearest first."""
    total = 0.0
    for source in range(span[0], span[1] + 1):
        total += np.float64(priorities[source]) * factors[keys[source] - key - 1]
    return total


@kernel
def decay_add(
    episodes: Integers,
    segments: Integers,
    tree: tuple[Integers, Index],
    rules: Floats,
    factors: Floats,
    life_lost: Index,
    keys: Integers,
    priorities: Floats32,
) -> None:
    """p_{n-i} = min(p_n decay^i + p_{n-i}, largest ever) (PSER eq. 7), summed over all sources.

    As `decay_max`, but with `keys` ascending and without repeats, and only above the steps that it
    raises is the tree refreshed. What sources give to one another adds to the priorities that were
    stored before; the sum is capped once.
    """
    layout, mask = tree
    reach = factors.size
    changed = np.empty(_ROOM, np.int64)
    count = 0
    nearest = keys.size - 1
    farthest = nearest
    key = keys[nearest] - 1 if keys.size else np.int64(-1)
    while nearest >= 0:
        episode, t = keys[nearest] >> 32, key & MASK
        same = key >= 0 and key >> 32 == episode
        slot, row = episodes[episode, SEGMENT], episodes[episode, START] + t
        while farthest >= nearest and keys[farthest] > key + reach:
            farthest -= 1
        ended = not same or farthest < nearest
        if ended or _lost_life(segments, slot, life_lost, row):
            # No source reaches further back: go on before the next one that is left.
            while nearest >= 0 and keys[nearest] > (key if same else (episode << 32) - 1):
                nearest -= 1
            farthest = nearest
            key = keys[nearest] - 1 if nearest >= 0 else np.int64(-1)
            continue
        address = segments[slot, PRIORITY] + 4 * row
        given = _carried(keys, priorities, factors, (nearest, farthest), key)
        raised = np.float32(min(np.float64(abs(load_f4(address))) + given, rules[LARGEST]))
        place = (episodes[episode, FIRST] + t) & mask
        put(layout[NODES], place, address, raised, rules)
        changed[count] = place
        count += 1
        if count == _ROOM:
            refresh_tree(layout, changed)
            count = 0
        if nearest > 0 and keys[nearest - 1] == key:
            nearest -= 1
        key -= 1
    refresh_tree(layout, changed[:count])
