"""How often and when steps were drawn: kept in the ring, beside each step's entry.

A draw touches the ring entry anyway; counting there costs no memory access of its own, where the
overlay's columns would cost two. The columns `draw_count` and `last_drawn` are brought up to date
when somebody is to see them: before an episode leaves, a column is read, a state is saved, or the
view is closed.

A count lies in the low 28 bits and stays there at its largest, the number of the last draw above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage.kernel import Index, Integers, kernel, load_i8, load_u4, store_i4, store_i8
from storage.replay.tables import DRAW_COUNT, LAST_DRAWN, MASK, SEGMENT, START

if TYPE_CHECKING:
    from storage.replay.window import Window

__all__ = ["COLUMNS", "load_draws", "mark", "store_draws", "store_draws_at"]

COLUMNS = ("draw_count", "last_drawn")
_BITS = 28
_MOST = (1 << _BITS) - 1


@kernel
def mark(drawn: Index, draw: Index) -> Index:
    """What stands in the ring after one more draw."""
    return draw << _BITS | min((drawn & _MOST) + 1, _MOST)


@kernel
def _store(
    episodes: Integers, segments: Integers, steps: Integers, drawn: Integers, place: Index
) -> None:
    entry = steps[place]
    episode = episodes[entry >> 32]
    row = episode[START] + (entry & MASK)
    count = np.int32(drawn[place] & _MOST)
    store_i4(segments[episode[SEGMENT], DRAW_COUNT] + 4 * row, count)
    store_i8(segments[episode[SEGMENT], LAST_DRAWN] + 8 * row, drawn[place] >> _BITS)


@kernel
def _store_positions(
    episodes: Integers, segments: Integers, steps: Integers, drawn: Integers, positions: Integers
) -> None:
    for i in range(positions.size):
        _store(episodes, segments, steps, drawn, positions[i] & (steps.size - 1))


@kernel
def _store_span(
    episodes: Integers,
    segments: Integers,
    steps: Integers,
    drawn: Integers,
    first: Index,
    last: Index,
) -> None:
    for position in range(first, last):
        _store(episodes, segments, steps, drawn, position & (steps.size - 1))


@kernel
def _load_span(
    episodes: Integers,
    segments: Integers,
    steps: Integers,
    drawn: Integers,
    first: Index,
    last: Index,
) -> None:
    for position in range(first, last):
        place = position & (steps.size - 1)
        episode = episodes[steps[place] >> 32]
        row = episode[START] + (steps[place] & MASK)
        count = np.int64(load_u4(segments[episode[SEGMENT], DRAW_COUNT] + 4 * row))
        draw = load_i8(segments[episode[SEGMENT], LAST_DRAWN] + 8 * row)
        drawn[place] = max(draw, 0) << _BITS | min(count, _MOST)


def store_draws(window: Window, first: int, last: int) -> None:
    """Bring the overlay's columns up to date for ring positions [first, last)."""
    table = window.segments.table
    _store_span(window.episodes, table, window.steps, window.drawn, first, last)


def store_draws_at(window: Window, positions: Integers) -> None:
    """Bring the overlay's columns up to date for some ring positions, int64 [k]."""
    table = window.segments.table
    _store_positions(window.episodes, table, window.steps, window.drawn, positions)


def load_draws(window: Window, first: int, last: int) -> None:
    """Take what the overlay's columns hold of ring positions [first, last) into the ring."""
    table = window.segments.table
    _load_span(window.episodes, table, window.steps, window.drawn, first, last)
