"""Uniform draws: every set of B different steps of the window is equally likely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.kernel import Floats32, Index, Integers, kernel
from storage.randomness import bounded, philox, stream_key

if TYPE_CHECKING:
    from storage.replay.window import Window

__all__ = ["Uniform", "draw_distinct"]

_HASH = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _insert(table: Integers, value: Index) -> bool:
    """Add a value to an open-addressing set (-1: empty); gives whether it was new."""
    mask = table.size - 1
    slot = np.int64((np.uint64(value) * _HASH) >> np.uint64(20)) & mask
    while table[slot] >= 0:
        if table[slot] == value:
            return False
        slot = (slot + 1) & mask
    table[slot] = value
    return True


@kernel
def draw_distinct(
    key: np.ndarray[Any, np.dtype[np.uint64]],
    index: Index,
    chosen: Integers,
    first: Index,
    count: Index,
) -> None:
    """Fill `chosen` with different numbers of [first, first + count), in uniformly random order.

    Floyd's algorithm (Bentley & Floyd, CACM 1987) gives the set and costs the same however close
    chosen.size comes to `count`; a Fisher-Yates pass gives the order. Randomness: Philox blocks
    (block, index) of the key; one block for two numbers.
    """
    size = 4
    while size < 4 * chosen.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    zero = np.uint64(0)
    for block in range((chosen.size + 1) // 2):
        words = philox(key[0], key[1], np.uint64(block), np.uint64(index), zero, zero)
        for half in range(min(2, chosen.size - 2 * block)):
            i = 2 * block + half
            last = count - chosen.size + i
            number = bounded(words[2 * half], last + 1)
            if not _insert(table, number):
                number = last
                _insert(table, number)
            place = bounded(words[2 * half + 1], i + 1)
            chosen[i] = chosen[place]
            chosen[place] = first + number


class Uniform:
    """Uniform draws without repeats inside a batch; sampling weights are 1.

    Satisfies `storage.replay.schemes.scheme.Scheme`; has no state of its own.
    """

    name = "uniform"
    wants_errors = False
    nbytes = 0

    def __init__(self, window: Window, seed: int) -> None:
        self._window = window
        self._key = np.array(stream_key(seed, "replay draws"), np.uint64)

    def admitted(self, first: int, last: int, errors: Floats32 | None = None) -> None:
        """Nothing to do: draws look at the window alone."""

    def forgotten(self, first: int, last: int) -> None:
        """Nothing to do."""

    def shifted(self, first: int, last: int, by: int) -> None:
        """Nothing to do."""

    def rebuilt(self) -> None:
        """Nothing to do."""

    def draw(self, positions: Integers, weights: Floats32, index: int) -> None:
        """Draw number `index`: different steps, each equally likely."""
        head, tail = self._window.ends
        draw_distinct(self._key, index, positions, head, tail - head)
        weights.fill(1.0)

    def feed_back(self, keys: Integers, errors: Floats32) -> None:
        """Uniform draws have no priorities: nothing to do."""

    def state_dict(self) -> dict[str, Any]:
        """Empty."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""
