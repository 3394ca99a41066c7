"""Copying rows between mapped columns and buffers, whatever their dtypes and segments.

A plan is int64 [fields, 4]: the column's place in the segment table, bytes of a row, address of
the buffer, and which row after the step's own is meant (1: the next observation, the next value
target; the closing row makes that right at every step).
"""

from __future__ import annotations

import numpy as np

from storage.kernel import (
    Bytes,
    Index,
    Integers,
    copy_bytes,
    kernel,
    load_i4,
    load_i8,
    load_u1,
    prefetch,
    store_i4,
    store_i8,
    store_u1,
)
from storage.replay.draws import mark
from storage.replay.tables import (
    LENGTH,
    MASK,
    SEGMENT,
    SEGMENT_ID,
    START,
    TERMINATED,
    TRUNCATED,
)

__all__ = ["copy_rows", "gather_steps", "scatter_rows"]


FARTHEST = 512
"""Bytes of a row that are prefetched; the hardware follows longer rows by itself."""


@kernel
def _copy_row(target: Index, source: Index, width: Index) -> None:
    """One row; the usual widths without a call to memcpy."""
    if width == 4:
        store_i4(target, load_i4(source))
    elif width == 8:
        store_i8(target, load_i8(source))
    elif width == 1:
        store_u1(target, load_u1(source))
    else:
        copy_bytes(target, source, width)


@kernel
def _ask_for(
    segments: Integers, slots: Integers, rows: Integers, line: Integers, width: Index
) -> None:
    """Prefetch `width` bytes from the row of each step that a plan's line names."""
    for i in range(slots.size):
        first = segments[slots[i], line[0]] + (rows[i] + line[3]) * line[1]
        for cache_line in range(first & ~63, first + min(width, FARTHEST), 64):
            prefetch(cache_line)


@kernel
def _copy_field(
    segments: Integers,
    slots: Integers,
    rows: Integers,
    plan: Integers,
    field: Index,
    asked: bool,
) -> bool:
    """Copy the rows of one line of a plan; gives whether those of the next line are asked for.

    What will be read of a column is asked for first, so that cache misses overlap; once, where the
    row and the next one of the same column are lines of the plan that follow each other.
    """
    column, width, buffer, ahead = plan[field]
    pair = not asked and field + 1 < plan.shape[0] and plan[field + 1, 0] == column
    if not asked:
        _ask_for(segments, slots, rows, plan[field], 2 * width if pair else width)
    for i in range(slots.size):
        source = segments[slots[i], column] + (rows[i] + ahead) * width
        _copy_row(buffer + i * width, source, width)
    return bool(pair)


@kernel
def _copy_flags(
    segments: Integers, slots: Integers, rows: Integers, line: Integers, last: Bytes
) -> None:
    """Copy how steps ended: only an episode's last one can have, so no other is read."""
    for i in range(slots.size):
        flag = load_u1(segments[slots[i], line[0]] + rows[i]) if last[i] else np.uint8(0)
        store_u1(line[2] + i, flag)


@kernel
def copy_rows(segments: Integers, slots: Integers, rows: Integers, plan: Integers) -> None:
    """Copy the rows of every planned column into their buffers, in order."""
    asked = False
    for field in range(plan.shape[0]):
        asked = _copy_field(segments, slots, rows, plan, field, asked)


@kernel
def scatter_rows(segments: Integers, slots: Integers, rows: Integers, plan: Integers) -> None:
    """The reverse of `copy_rows`: buffers into columns (overlay columns only)."""
    for field in range(plan.shape[0]):
        column, width, buffer, ahead = plan[field]
        for i in range(slots.size):
            target = segments[slots[i], column] + (rows[i] + ahead) * width
            _copy_row(target, buffer + i * width, width)


@kernel
def gather_steps(
    episodes: Integers,
    segments: Integers,
    steps: Integers,
    drawn: Integers,
    positions: Integers,
    identity: Integers,
    plan: Integers,
    draw: Index,
) -> None:
    """Gather the steps at ring positions and note that they were drawn.

    The first rows of `identity` int64 [4, B] become segment id, row and segment slot of each step.
    """
    mask = steps.size - 1
    segment, row, slots = identity[0], identity[1], identity[2]
    last = np.empty(positions.size, np.uint8)
    for i in range(positions.size):
        place = positions[i] & mask
        entry = steps[place]
        drawn[place] = mark(drawn[place], draw)
        slot = episodes[entry >> 32, SEGMENT]
        row[i] = episodes[entry >> 32, START] + (entry & MASK)
        last[i] = (entry & MASK) + 1 == episodes[entry >> 32, LENGTH]
        segment[i] = segments[slot, SEGMENT_ID]
        slots[i] = slot
    asked = False
    for field in range(plan.shape[0]):
        if plan[field, 0] == TERMINATED or plan[field, 0] == TRUNCATED:
            _copy_flags(segments, slots, row, plan[field], last)
        else:
            asked = _copy_field(segments, slots, row, plan, field, asked)
