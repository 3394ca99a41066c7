"""The int64 tables through which kernels find the window's rows.

`segments[slot, ...]` is one mapped segment: its id, how many of its rows are mapped, the address
of its row map (int32 a row: episode slot + 1, or 0 where no episode of the window owns the row;
an episode owns its steps and its closing row), and the base address of each column.
`episodes[slot, ...]` is one episode of the window, one cache line.
`steps` is a ring, power of two long: entry `position & (len - 1)` is `episode slot << 32 | t` of
the step at that position, oldest at `head`, newest below `tail`; positions grow forever. `drawn`
beside it says how often and when the step was drawn (see `draws`).

A free segment slot has row limit 0, and `slot_of[segment id]` is -1 unless it is in the window:
kernels check both, so no address of an unmapped segment is ever used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from storage.kernel import Index, Integers, Integers32, kernel, load_f4, load_i4

__all__ = [
    "ADMISSION",
    "COLUMNS",
    "DIVERGENCE",
    "DIVERGENCES",
    "DRAW_COUNT",
    "EPISODE_FIELDS",
    "FAR",
    "FAR_STEPS",
    "FIRST",
    "FIXED_COLUMNS",
    "LAST_DRAWN",
    "LENGTH",
    "MASK",
    "ORDINAL",
    "OVERLAY_COLUMNS",
    "OVERLAY_DTYPES",
    "PRIORITY",
    "RATIO",
    "REWARD",
    "ROW_LIMIT",
    "ROW_MAP",
    "SEGMENT",
    "SEGMENT_ID",
    "START",
    "TARGET",
    "TERMINATED",
    "TRUNCATED",
    "VALUE",
    "divergence_of",
    "owner",
]

SEGMENT_ID, ROW_LIMIT, ROW_MAP, COLUMNS = 0, 1, 2, 3
"""Fields of a segment; from COLUMNS on, the base address of one column each."""

PRIORITY, RATIO, FAR, DIVERGENCE, VALUE, TARGET, DRAW_COUNT, LAST_DRAWN = range(3, 11)
REWARD, TERMINATED, TRUNCATED = range(11, 14)
OVERLAY_DTYPES: dict[str, np.dtype[Any]] = {
    "priority": np.dtype("<f4"),
    "importance_ratio": np.dtype("<f4"),
    "far": np.dtype("u1"),
    "divergence": np.dtype("<f4"),
    "value": np.dtype("<f4"),
    "value_target": np.dtype("<f4"),
    "draw_count": np.dtype("<u4"),
    "last_drawn": np.dtype("<i8"),
}
OVERLAY_COLUMNS = tuple(OVERLAY_DTYPES)
FIXED_COLUMNS = (*OVERLAY_COLUMNS, "reward", "terminated", "truncated")
"""The columns that kernels know by place; the schema's others follow."""

SEGMENT, START, LENGTH, FAR_STEPS, ORDINAL, ADMISSION, FIRST, DIVERGENCES = range(8)
"""Fields of an episode: segment slot, first row, steps T, far steps, ordinal in its segment,
admission number, the ring position of its first step, and the sum of its steps' divergences in
fixed point (see `divergence_of`)."""
EPISODE_FIELDS = 8

MASK = 0xFFFFFFFF


@kernel
def divergence_of(segments: Integers, slot: Index, row: Index) -> Index:
    """A step's stored divergence in units of 2^-20, at most 2^40: sums of these are exact."""
    stored = np.float64(load_f4(segments[slot, DIVERGENCE] + 4 * row))
    return np.int64(min(max(stored, 0.0), 1048576.0) * 1048576.0)


@kernel
def owner(
    segments: Integers, slot_of: Integers32, segment: Index, row: Index
) -> tuple[Index, Index]:
    """(segment slot, episode slot) that owns (segment id, row), or (-1, -1): not in the window."""
    if segment < 0 or segment >= slot_of.size or row < 0:
        return np.int64(-1), np.int64(-1)
    slot = np.int64(slot_of[segment])
    if slot < 0 or row >= segments[slot, ROW_LIMIT]:
        return np.int64(-1), np.int64(-1)
    episode = np.int64(load_i4(segments[slot, ROW_MAP] + 4 * row)) - 1
    if episode < 0:
        return np.int64(-1), np.int64(-1)
    return slot, episode
