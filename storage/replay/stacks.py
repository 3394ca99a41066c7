"""Stacks of frames, put together from rows that hold one frame each.

Frames of an episode are consecutive rows, so the stack at step t is rows t - k + 1 … t: one copy.
Only where that would reach back past the episode's start, padding is copied as well. The stacks of
a step and of the next one are k + 1 frames together, copied once.

A plan is int64 [columns, STACK_FIELDS]: the column's place in the segment table, bytes of a frame,
address of the buffer, its bytes a step, frames copied a step, the first of them counted from the
step's own row, and whether an episode's first frame repeats before it (1) or zeros stand there (0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.kernel import (
    Index,
    Integers,
    address_of,
    copy_bytes,
    kernel,
    load_i4,
    prefetch,
    store_u1,
)
from storage.replay.tables import ROW_MAP, START

__all__ = [
    "STACK_FIELDS",
    "copy_stacks",
    "gather_stacks",
    "stack_line",
    "stack_views",
]

STACK_FIELDS = 7
PAGE = 4096
"""Bytes that the hardware reads ahead in at most; each page's first line is prefetched."""

Array = npt.NDArray[Any]


def stack_views(
    size: int, frame_stack: int, dtype: np.dtype[Any], shape: tuple[int, ...], aheads: Sequence[int]
) -> list[Array]:
    """Stacks [size, k, …] of one column for each of `aheads`, all of them views of one buffer.

    `aheads`, rising, are the rows after a step's own that end a stack: 0 for its observation, 1
    for the next one.
    """
    frames = np.zeros((size, frame_stack + aheads[-1] - aheads[0], *shape), dtype)
    firsts = [ahead - aheads[0] for ahead in aheads]
    return [frames[:, first : first + frame_stack] for first in firsts]


def stack_line(
    place: int, stacks: Array, aheads: Sequence[int], repeats: bool
) -> tuple[int, int, int, int, int, int, int]:
    """The plan's line for what `stack_views` gave: `stacks` is the first view of that buffer."""
    frame_stack = stacks.shape[1]
    frames = frame_stack + aheads[-1] - aheads[0]
    first = aheads[0] - frame_stack + 1
    step = stacks.strides[0]
    return place, step // frames, address_of(stacks), step, frames, first, int(repeats)


@kernel
def _pad(target: Index, count: Index, width: Index, first_frame: Index, repeats: Index) -> None:
    """What stands before an episode's first frame, `count` times."""
    if repeats:
        for j in range(count):
            copy_bytes(target + j * width, first_frame, width)
    else:
        for byte in range(count * width):
            store_u1(target + byte, np.uint8(0))


@kernel
def copy_stacks(
    segments: Integers, slots: Integers, rows: Integers, starts: Integers, plan: Integers
) -> None:
    """Copy the stacks at rows (steps or closing rows) of episodes whose first rows are `starts`."""
    for line in range(plan.shape[0]):
        column, width, buffer, step, frames, first, repeats = plan[line]
        for i in range(slots.size):
            if i + 1 < slots.size:
                following = segments[slots[i + 1], column] + (rows[i + 1] + first) * width
                for page in range(0, frames * width, PAGE):
                    prefetch(following + page)
            target = buffer + i * step
            first_frame = segments[slots[i], column] + starts[i] * width
            begin = rows[i] - starts[i] + first
            missing = max(0, -begin)
            if missing:
                _pad(target, missing, width, first_frame, repeats)
            source = first_frame + (begin + missing) * width
            copy_bytes(target + missing * width, source, (frames - missing) * width)


@kernel
def gather_stacks(
    episodes: Integers, segments: Integers, slots: Integers, rows: Integers, plan: Integers
) -> None:
    """Copy the stacks at rows of the window, steps or closing rows, given by segment slot."""
    starts = np.empty_like(rows)
    for i in range(rows.size):
        episode = load_i4(segments[slots[i], ROW_MAP] + 4 * rows[i]) - 1
        starts[i] = episodes[episode, START]
    copy_stacks(segments, slots, rows, starts, plan)
