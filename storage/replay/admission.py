"""How episodes become part of the window: which of the log's are new, and their first values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from storage.kernel import (
    Floats,
    Floats32,
    Index,
    Integers,
    kernel,
    load_f4,
    load_u1,
    store_f4,
    store_i4,
    store_i8,
    store_u1,
)
from storage.replay.tables import (
    DIVERGENCE,
    DIVERGENCES,
    DRAW_COUNT,
    FAR,
    FAR_STEPS,
    LAST_DRAWN,
    LENGTH,
    PRIORITY,
    RATIO,
    SEGMENT,
    START,
    TARGET,
    VALUE,
    divergence_of,
)
from storage.replay.targets import set_closing_target, sweep

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Log", "acting_errors", "count_stored", "introduce", "new_episodes", "newest"]


class Log(Protocol):
    """What is read of a store's commit log."""

    def records(self, segment_id: int) -> Any:
        """Structured array of a segment's committed episodes, in order of commitment."""


def new_episodes(log: Log, segment_ids: Iterable[int], consumed: dict[int, int]) -> Integers:
    """Episodes that `consumed` (segment id -> next ordinal) does not cover, oldest first.

    Gives int64 [k, 4] of (segment id, ordinal, start, length) and brings `consumed` up to date.
    Order is by end time, then segment and ordinal, so that lanes interleave as they were lived.
    """
    parts, times = [], []
    for segment_id in segment_ids:
        records = log.records(segment_id)
        records = records[np.searchsorted(records["ordinal"], consumed.get(segment_id, 0)) :]
        if not len(records):
            continue
        consumed[segment_id] = int(records["ordinal"][-1]) + 1
        names = ("ordinal", "start", "length")
        columns = [np.full(len(records), segment_id), *(records[name] for name in names)]
        parts.append(np.stack(columns, axis=1).astype(np.int64))
        times.append(np.asarray(records["end_time"]))
    if not parts:
        return np.zeros((0, 4), np.int64)
    episodes = np.concatenate(parts)
    order = np.lexsort((episodes[:, 1], episodes[:, 0], np.concatenate(times)))
    return np.ascontiguousarray(episodes[order])


def newest(episodes: Integers, window: int) -> Integers:
    """The newest episodes whose steps reach `window` (ReF-ER's floor), all if they do not.

    The oldest is dropped while the others hold more than `window` steps.
    """
    steps = np.cumsum(episodes[::-1, 3])[::-1]
    younger = steps - episodes[:, 3]
    return episodes[younger <= window]


@kernel
def _reset_row(segments: Integers, slot: Index, row: Index, value: float) -> None:
    store_f4(segments[slot, VALUE] + 4 * row, np.float32(value))
    store_f4(segments[slot, RATIO] + 4 * row, np.float32(1.0))
    store_f4(segments[slot, DIVERGENCE] + 4 * row, np.float32(0.0))
    store_f4(segments[slot, PRIORITY] + 4 * row, np.float32(0.0))
    store_u1(segments[slot, FAR] + row, np.uint8(0))
    store_i4(segments[slot, DRAW_COUNT] + 4 * row, np.int32(0))
    store_i8(segments[slot, LAST_DRAWN] + 8 * row, np.int64(0))


@kernel
def _set_missing(segments: Integers, slot: Index, row: Index) -> None:
    """A ratio that was never set is 1, and near."""
    if load_f4(segments[slot, RATIO] + 4 * row) == 0.0:
        store_f4(segments[slot, RATIO] + 4 * row, np.float32(1.0))
        store_u1(segments[slot, FAR] + row, np.uint8(0))


@kernel
def count_stored(episode: Integers, segments: Integers) -> None:
    """Set an episode's far steps and sum of divergences from what is stored of its steps."""
    flags = segments[episode[SEGMENT], FAR]
    far, divergences = 0, 0
    for row in range(episode[START], episode[START] + episode[LENGTH]):
        far += load_u1(flags + row) != 0
        divergences += divergence_of(segments, episode[SEGMENT], row)
    episode[FAR_STEPS] = far
    episode[DIVERGENCES] = divergences


@kernel
def acting_errors(episodes: Integers, segments: Integers, entry: Index, errors: Floats32) -> None:
    """|target - value| of an entering episode's steps: rho A as the acting policy saw it.

    `entry` is the ring entry of its first step; `errors` float32 [T].
    """
    episode = episodes[entry >> 32]
    values, targets = segments[episode[SEGMENT], VALUE], segments[episode[SEGMENT], TARGET]
    for t in range(errors.size):
        place = 4 * (episode[START] + t)
        errors[t] = abs(load_f4(targets + place) - load_f4(values + place))


@kernel
def introduce(
    episodes: Integers, segments: Integers, slots: Integers, values: Floats32, settings: Floats
) -> Index:
    """Give the rows of entering episodes their first values and targets; gives their far steps.

    With `values`, float32 [T + 1] of the one episode in `slots`, its V are these, its ρ are 1 and
    nothing of it was ever drawn. Without (empty), stored overlay values stand and rows that have
    none get ρ = 1.
    """
    total = 0
    for k in range(slots.size):
        episode = episodes[slots[k]]
        slot, start, length = episode[SEGMENT], episode[START], episode[LENGTH]
        for t in range(length + 1):
            if values.size:
                _reset_row(segments, slot, start + t, values[t])
            else:
                _set_missing(segments, slot, start + t)
        set_closing_target(segments, slot, start, length)
        sweep(segments, slot, start, length - 1, settings, False)
        count_stored(episode, segments)
        total += episode[FAR_STEPS]
    return total
