"""The sweeps that follow a feed-back: each touched episode once, two episodes side by side.

A sweep waits at every step for the rounding of the target before (see `targets`), so two of them
take hardly longer than one. Which episodes share a sweep changes no bit of either.
"""

from __future__ import annotations

import numpy as np

from storage.kernel import Floats, Index, Integers, kernel
from storage.replay.tables import MASK, SEGMENT, START
from storage.replay.targets import sweep, sweep_two

__all__ = ["sweep_touched"]

_FIRST, _END, _EPISODE, _STEP = range(4)
"""A lane: where its episode's keys begin, the end of those that no sweep has covered yet, the
episode's slot, and the step at which its sweep goes on, or -1 where none is under way."""


@kernel
def sweep_touched(episodes: Integers, segments: Integers, keys: Integers, settings: Floats) -> None:
    """Sweep each episode of the sorted keys (episode slot << 32 | t) from its latest step.

    Where a sweep stops early, the episode's next one begins at the next earlier step of the keys.
    """
    lanes = np.full((2, 4), -1, np.int64)
    one, other = lanes[0], lanes[1]
    left = _find_work(keys, one, keys.size)
    left = _find_work(keys, other, left)
    while other[_STEP] >= 0:
        steps, ended, other_ended = sweep_two(
            segments,
            (episodes[one[_EPISODE], SEGMENT], episodes[other[_EPISODE], SEGMENT]),
            (episodes[one[_EPISODE], START], episodes[other[_EPISODE], START]),
            (one[_STEP], other[_STEP]),
            settings,
        )
        _advance(keys, one, one[_STEP] - steps + 1, ended)
        _advance(keys, other, other[_STEP] - steps + 1, other_ended)
        left = _find_work(keys, one, left)
        left = _find_work(keys, other, left)
        if one[_STEP] < 0:
            one, other = other, one
    while one[_STEP] >= 0:
        slot, start = episodes[one[_EPISODE], SEGMENT], episodes[one[_EPISODE], START]
        _advance(keys, one, sweep(segments, slot, start, one[_STEP], settings, True), True)
        left = _find_work(keys, one, left)


@kernel
def _find_work(keys: Integers, lane: Integers, left: Index) -> Index:
    """Give an idle lane its episode's next sweep, or another episode; keys [0, left) are free.

    Gives how many keys are free then.
    """
    if lane[_STEP] >= 0:
        return left
    if lane[_FIRST] == lane[_END] and left > 0:
        lane[_END] = left
        lane[_EPISODE] = keys[left - 1] >> 32
        while left > 0 and keys[left - 1] >> 32 == lane[_EPISODE]:
            left -= 1
        lane[_FIRST] = left
    if lane[_FIRST] < lane[_END]:
        lane[_STEP] = keys[lane[_END] - 1] & MASK
    return left


@kernel
def _advance(keys: Integers, lane: Integers, lowest: Index, ended: bool) -> None:
    """Note that a lane's sweep has come down to step `lowest`, which covers later keys."""
    while lane[_END] > lane[_FIRST] and keys[lane[_END] - 1] & MASK >= lowest:
        lane[_END] -= 1
    lane[_STEP] = -1 if ended else lowest - 1
