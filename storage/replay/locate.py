"""Finding the steps of a batch again, by their identity (segment id, row)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import FeedbackError, SamplingError
from storage.kernel import Index, Integers, Integers32, kernel
from storage.replay.tables import LENGTH, MASK, SEGMENT, SEGMENT_ID, START, owner

if TYPE_CHECKING:
    from storage.replay.batch import Batch
    from storage.replay.window import Window

__all__ = ["checked_identities", "locate", "segment_slots"]


@kernel
def _locate(
    episodes: Integers,
    segments: Integers,
    slot_of: Integers32,
    steps: Integers,
    ends: Integers,
    segment_ids: Integers,
    rows: Integers,
    positions: Integers,
    keys: Integers,
) -> Index:
    """Fill `keys` for steps by segment ids, rows and positions, int64 [B] each.

    The ring entry at a step's position when it was drawn nearly always still names it, and lies in
    the cache; if it does not, the segment's row map knows.
    """
    mask = steps.size - 1
    found = 0
    for i in range(keys.size):
        segment, row, position = segment_ids[i], rows[i], positions[i]
        entry = steps[position & mask]
        episode = entry >> 32
        if (
            position < ends[0]
            or position >= ends[1]
            or episodes[episode, START] + (entry & MASK) != row
            or segments[episodes[episode, SEGMENT], SEGMENT_ID] != segment
        ):
            _, episode = owner(segments, slot_of, segment, row)
            t = row - episodes[episode, START]
            if episode < 0 or t >= episodes[episode, LENGTH]:
                keys[i] = -1
                continue
            entry = episode << 32 | t
        keys[i] = entry
        found += 1
    return found


@kernel
def _resolve(
    segments: Integers, slot_of: Integers32, segment: Integers, row: Integers, slots: Integers
) -> Index:
    """Segment slots of identities (steps or closing rows); gives how many are not in the window."""
    missing = 0
    for i in range(segment.size):
        slots[i] = owner(segments, slot_of, segment[i], row[i])[0]
        missing += slots[i] < 0
    return missing


def locate(window: Window, batch: Batch) -> tuple[Integers, int]:
    """Keys of a batch's steps, int64 [B], and how many of them are in the window.

    A key is (episode slot << 32 | t), or -1 for a step that has left (or a closing row). Raises
    FeedbackError if the batch's identities are not as many as its rows.
    """
    sizes = {len(batch), batch.segment.size}
    keys = np.empty(len(batch), np.int64)
    try:
        position = batch.position
    except AttributeError:
        position = np.zeros(keys.size, np.int64)
    if len(sizes | {position.size}) > 1:
        raise FeedbackError(
            f"the batch has {batch.segment.size} segments, {len(batch)} rows and {position.size} "
            "positions; take batches as views give them. Nothing was changed"
        )
    found = _locate(
        window.episodes,
        window.segments.table,
        window.segments.slot_of,
        window.steps,
        window.ends,
        batch.segment,
        batch.row,
        position,
        keys,
    )
    return keys, int(found)


def checked_identities(segment: Any, row: Any) -> tuple[Integers, Integers]:
    """Segment ids and rows as int64 [k]; SamplingError for anything else."""
    found = np.asarray(segment), np.asarray(row)
    if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in found) or (
        found[0].size != found[1].size
    ):
        raise SamplingError(
            f"segment {found[0].dtype} {found[0].shape} and row {found[1].dtype} "
            f"{found[1].shape}: give as many whole numbers of each, in one dimension"
        )
    return found[0].astype(np.int64), found[1].astype(np.int64)


def segment_slots(window: Window, segment: Integers, row: Integers) -> Integers:
    """Segment slots of rows (steps or closing rows); SamplingError if one is not in the window."""
    slots = np.empty(row.shape, np.int64)
    missing = _resolve(window.segments.table, window.segments.slot_of, segment, row, slots)
    if missing:
        first = int(np.argmax(slots < 0))
        raise SamplingError(
            f"{missing} of {row.size} steps are not in the window, the first one at position "
            f"{first}: segment {segment[first]}, row {row[first]}"
        )
    return slots
