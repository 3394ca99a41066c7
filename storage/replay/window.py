"""The window: which steps replay may draw now, and where each of them lies.

The memory of ReF-ER is whole episodes, oldest first, floating in [N, N + longest episode). An
episode enters at the tail of the ring; the oldest leaves by moving the head, any other one by
squeezing the ring, so that every drawable step is one entry and a uniform draw is one lookup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage.kernel import Index, Integers, kernel, store_i4
from storage.replay.tables import (
    ADMISSION,
    EPISODE_FIELDS,
    FAR_STEPS,
    FIRST,
    LENGTH,
    MASK,
    ORDINAL,
    ROW_MAP,
    SEGMENT,
    SEGMENT_ID,
    START,
)

if TYPE_CHECKING:
    from storage.replay.segment_table import SegmentTable

__all__ = ["Window", "list_rows"]


@kernel
def _enter(
    episodes: Integers, segments: Integers, steps: Integers, slots: Integers, entering: Integers
) -> None:
    """Write the entering episodes [k, EPISODE_FIELDS] into their slots, row maps and the ring."""
    mask = steps.size - 1
    for k in range(slots.size):
        slot = slots[k]
        episodes[slot] = entering[k]
        start, length, first = entering[k, START], entering[k, LENGTH], entering[k, FIRST]
        row_map = segments[entering[k, SEGMENT], ROW_MAP]
        for t in range(length + 1):
            store_i4(row_map + 4 * (start + t), np.int32(slot + 1))
        for t in range(length):
            steps[(first + t) & mask] = slot << 32 | t


@kernel
def _leave(episodes: Integers, segments: Integers, slot: Index) -> None:
    """Take an episode's rows out of its segment's row map."""
    start = episodes[slot, START]
    row_map = segments[episodes[slot, SEGMENT], ROW_MAP]
    for row in range(start, start + episodes[slot, LENGTH] + 1):
        store_i4(row_map + 4 * row, np.int32(0))


@kernel
def _squeeze(episodes: Integers, ring: Integers, head: Index, slot: Index) -> None:
    """Close the gap that an episode leaves in the ring by moving all older steps towards it."""
    mask = len(ring) - 1
    first, length = episodes[slot, FIRST], episodes[slot, LENGTH]
    for position in range(first - 1, head - 1, -1):
        entry = ring[position & mask, 0]
        ring[(position + length) & mask] = ring[position & mask]
        if entry & MASK == 0:
            episodes[entry >> 32, FIRST] = position + length


@kernel
def _regrow(ring: Integers, grown: Integers, head: Index, tail: Index) -> None:
    for position in range(head, tail):
        grown[position & (len(grown) - 1)] = ring[position & (len(ring) - 1)]


@kernel
def list_rows(
    episodes: Integers, steps: Integers, ends: Integers, slots: Integers, rows: Integers
) -> Index:
    """All rows of the window, oldest episode first, each with its closing row, as (slot, row)."""
    count = 0
    position = ends[0]
    while position < ends[1]:
        episode = episodes[steps[position & (steps.size - 1)] >> 32]
        for t in range(episode[LENGTH] + 1):
            slots[count] = episode[SEGMENT]
            rows[count] = episode[START] + t
            count += 1
        position += episode[LENGTH]
    return count


@kernel
def _list_episodes(episodes: Integers, steps: Integers, ends: Integers, order: Integers) -> None:
    position = ends[0]
    for k in range(order.size):
        order[k] = steps[position & (steps.size - 1)] >> 32
        position += episodes[order[k], LENGTH]


@kernel
def _far_steps(episodes: Integers, steps: Integers, ends: Integers) -> Index:
    total = 0
    position = ends[0]
    while position < ends[1]:
        episode = episodes[steps[position & (steps.size - 1)] >> 32]
        total += episode[FAR_STEPS]
        position += episode[LENGTH]
    return total


@kernel
def _highest(episodes: Integers, steps: Integers, ends: Integers, field: Index) -> Index:
    """The slot of the episode with the most of a field a step; of equals the oldest.

    The newest episode is never chosen, unless there is no other.
    """
    chosen = steps[ends[0] & (steps.size - 1)] >> 32
    highest = -1.0
    position = ends[0]
    while position < ends[1]:
        slot = steps[position & (steps.size - 1)] >> 32
        length = episodes[slot, LENGTH]
        position += length
        share = episodes[slot, field] / length
        if share > highest and position < ends[1]:
            chosen, highest = slot, share
    return chosen


class Window:
    """Episodes of the replay memory; see `tables` for the layout of the arrays.

    `ends` is int64 (head, tail): positions of the oldest step and of the next one to enter.
    """

    def __init__(self, segments: SegmentTable) -> None:
        self.segments = segments
        self.episodes = np.zeros((64, EPISODE_FIELDS), np.int64)
        self._set_ring(np.zeros((1024, 2), np.int64))
        self.ends = np.zeros(2, np.int64)
        self._free = list(range(63, -1, -1))
        self._admissions = 0
        self.n_episodes = 0

    @property
    def n_steps(self) -> int:
        """Number of steps that can be drawn."""
        return int(self.ends[1] - self.ends[0])

    @property
    def n_rows(self) -> int:
        """Steps and closing rows."""
        return self.n_steps + self.n_episodes

    @property
    def nbytes(self) -> int:
        """Bytes of the ring, of the episodes' table and of the segments' tables."""
        return self._ring.nbytes + self.episodes.nbytes + self.segments.nbytes

    def enter(self, identities: Integers) -> Integers:
        """Admit episodes, oldest first: int64 [k, 4] of (segment id, ordinal, start, length >= 1).

        Gives their episode slots, int64 [k].
        """
        count = len(identities)
        arriving = int(identities[:, 3].sum())
        entering = np.zeros((count, EPISODE_FIELDS), np.int64)
        entering[:, SEGMENT] = self._hold(identities)
        try:
            self._reserve(self.n_steps + arriving)
            slots = self._take_slots(count)
        except MemoryError:
            self._let_go(entering[:, SEGMENT])
            raise
        entering[:, ORDINAL] = identities[:, 1]
        entering[:, START] = identities[:, 2]
        entering[:, LENGTH] = identities[:, 3]
        entering[:, ADMISSION] = self._admissions + np.arange(count)
        entering[:, FIRST] = self.ends[1] + np.cumsum(identities[:, 3]) - identities[:, 3]
        _enter(self.episodes, self.segments.table, self.steps, slots, entering)
        self.ends[1] += arriving
        self.n_episodes += count
        self._admissions += count
        return slots

    def oldest(self) -> int:
        """The episode slot of the oldest episode; the window must not be empty."""
        return int(self.steps[self.ends[0] & (self.steps.size - 1)]) >> 32

    def most(self, field: int) -> int:
        """The slot of the episode with the most of a counter (`FAR_STEPS`, …) a step."""
        return int(_highest(self.episodes, self.steps, self.ends, field))

    def first(self, slot: int) -> int:
        """Ring position of an episode's first step."""
        return int(self.episodes[slot, FIRST])

    def length(self, slot: int) -> int:
        """Steps of one episode."""
        return int(self.episodes[slot, LENGTH])

    def far_steps(self, slot: int) -> int:
        """Far steps of one episode."""
        return int(self.episodes[slot, FAR_STEPS])

    def leave(self, slot: int) -> bool:
        """Take one episode out of the window; gives whether other steps' positions have moved."""
        moved = int(self.episodes[slot, FIRST]) != int(self.ends[0])
        if moved:
            _squeeze(self.episodes, self._ring, int(self.ends[0]), slot)
        self.ends[0] += self.length(slot)
        _leave(self.episodes, self.segments.table, slot)
        self.segments.release(int(self.episodes[slot, SEGMENT]))
        self._free.append(slot)
        self.n_episodes -= 1
        return moved

    def clear(self) -> None:
        """Empty the window and unmap its segments."""
        self.segments.clear()
        self.ends[:] = 0
        self._free = list(range(len(self.episodes) - 1, -1, -1))
        self._admissions = 0
        self.n_episodes = 0

    def start_at(self, head: int, size: int) -> None:
        """Let an empty window's first step enter at ring position `head`, the ring be `size` long.

        `size` is a power of two. Steps of two windows lie in the same places of their rings when
        both started alike, which is what makes draws by a tree of places equal bit for bit.
        """
        self._set_ring(np.zeros((size, 2), np.int64))
        self.ends[:] = head

    def rows(self) -> tuple[Integers, Integers]:
        """(segment slots, rows) of all steps and closing rows, oldest episode first."""
        slots, rows = np.empty((2, self.n_rows), np.int64)
        list_rows(self.episodes, self.steps, self.ends, slots, rows)
        return slots, rows

    def identities(self) -> Integers:
        """int64 [episodes, 4] of (segment id, ordinal, start, length), in order of admission."""
        order = np.empty(self.n_episodes, np.int64)
        _list_episodes(self.episodes, self.steps, self.ends, order)
        fields = self.episodes[order][:, [SEGMENT, ORDINAL, START, LENGTH]]
        fields[:, 0] = self.segments.table[fields[:, 0], SEGMENT_ID]
        return fields

    def count_far(self) -> int:
        """n_far: the sum of the episodes' counters."""
        return int(_far_steps(self.episodes, self.steps, self.ends))

    def _hold(self, identities: Integers) -> Integers:
        """Map the segments of arriving episodes; gives the segment slot of each. All or none.

        The ring grows afterwards, so that no scheme misses a growth.
        """
        ends = identities[:, 2] + identities[:, 3] + 1
        slots = np.full(len(identities), -1, np.int64)
        try:
            for segment in np.unique(identities[:, 0]):
                here = identities[:, 0] == segment
                count = int(here.sum())
                slots[here] = self.segments.hold(int(segment), int(ends[here].max()), count)
        except BaseException:
            self._let_go(slots[slots >= 0])
            raise
        return slots

    def _let_go(self, slots: Integers) -> None:
        """Take back `_hold`."""
        for slot in slots:
            self.segments.release(int(slot))

    def _take_slots(self, count: int) -> Integers:
        if count > len(self._free):
            used = len(self.episodes)
            grown = np.zeros((2 * max(used, count), EPISODE_FIELDS), np.int64)
            grown[:used] = self.episodes
            self.episodes = grown
            self._free[:0] = range(len(grown) - 1, used - 1, -1)
        return np.array([self._free.pop() for _ in range(count)], np.int64)

    def _reserve(self, count: int) -> None:
        """Make the ring hold `count` steps; positions do not change."""
        if count > self.steps.size:
            grown = np.zeros((1 << (count - 1).bit_length(), 2), np.int64)
            _regrow(self._ring, grown, int(self.ends[0]), int(self.ends[1]))
            self._set_ring(grown)

    def _set_ring(self, ring: Integers) -> None:
        """`steps` and `drawn` are the two columns of one array: a step's lie in one cache line."""
        self._ring = ring
        self.steps, self.drawn = ring[:, 0], ring[:, 1]
