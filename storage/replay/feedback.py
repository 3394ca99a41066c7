"""Feed-back: what an update learnt about the steps it drew, written back by step identity.

Values, importance ratios and divergences are stored, far flags and the far counters follow, then
the value targets of each touched episode are swept once, backwards from its latest step in the
batch (see `targets`). A step that has left the window is dropped and counted as stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.errors import FeedbackError
from storage.kernel import (
    Floats,
    Floats32,
    Index,
    Integers,
    Integers32,
    kernel,
    load_f4,
    load_u1,
    prefetch,
    store_f4,
    store_u1,
)
from storage.replay.sweeps import sweep_touched
from storage.replay.tables import (
    DIVERGENCE,
    DIVERGENCES,
    FAR,
    FAR_STEPS,
    LENGTH,
    MASK,
    RATIO,
    REWARD,
    SEGMENT,
    START,
    TARGET,
    TERMINATED,
    VALUE,
    divergence_of,
    owner,
)
from storage.replay.targets import set_closing_target, sweep

__all__ = ["Feedback", "apply_feedback", "checked", "is_far", "recount_far", "refresh_closing"]

SMALLEST_RATIO = np.float32(1.1754944e-38)
"""Stored for a ratio of 0, because a stored 0 means that no ratio was ever set."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What became of one feed-back."""

    applied: int
    """Steps whose values were stored."""
    stale: int
    """Steps that were dropped because they had left the window."""


@kernel
def is_far(ratio: float, bound: float) -> bool:
    """ReF-ER's far-policy test, ρ > c or ρ < 1/c (below eq. 10); ties are near."""
    return ratio > bound or ratio < 1.0 / bound


@kernel
def _store_step(
    segments: Integers, slot: Index, row: Index, ratio: Floats32, i: Index, bound: float
) -> Index:
    """Store one importance ratio and its far flag; gives the change of the far count."""
    stored = np.float32(np.maximum(ratio[i], SMALLEST_RATIO))
    flag = segments[slot, FAR] + row
    before = np.int64(load_u1(flag) != 0)
    after = np.int64(is_far(np.float64(stored), bound))
    store_f4(segments[slot, RATIO] + 4 * row, stored)
    store_u1(flag, np.uint8(after))
    return after - before


@kernel
def apply_feedback(
    episodes: Integers,
    segments: Integers,
    keys: Integers,
    ratio: Floats32,
    value: Floats32,
    divergence: Floats32,
    settings: Floats,
) -> Index:
    """Store feed-back of the steps of `keys` (see `locate`) and sweep; gives the change of n_far.

    Importance ratio, value and divergence are float32 [B] each, or empty: not given. `settings` is
    (far bound, discount, reward scale).
    """
    touched = np.empty(keys.size, np.int64)
    applied = 0
    change = 0
    for i in range(keys.size):
        if keys[i] < 0:
            continue
        episode = keys[i] >> 32
        slot = episodes[episode, SEGMENT]
        row = episodes[episode, START] + (keys[i] & MASK)
        prefetch(segments[slot, REWARD] + 8 * row)
        prefetch(segments[slot, TARGET] + 4 * row)
        if ratio.size:
            moved = _store_step(segments, slot, row, ratio, i, settings[0])
            episodes[episode, FAR_STEPS] += moved
            change += moved
        if value.size:
            store_f4(segments[slot, VALUE] + 4 * row, value[i])
        if divergence.size:
            before = divergence_of(segments, slot, row)
            store_f4(segments[slot, DIVERGENCE] + 4 * row, max(divergence[i], np.float32(0.0)))
            episodes[episode, DIVERGENCES] += divergence_of(segments, slot, row) - before
        touched[applied] = keys[i]
        applied += 1
    if value.size or ratio.size:
        touched = touched[:applied]
        touched.sort()
        sweep_touched(episodes, segments, touched, settings)
    return change


@kernel
def refresh_closing(
    episodes: Integers,
    segments: Integers,
    slot_of: Integers32,
    segment: Integers,
    rows: Integers,
    values: Floats32,
    settings: Floats,
) -> Index:
    """Store V(s_T) of episodes named by their truncated last steps, and sweep each from there.

    Gives the position of a step that is no such step, having changed nothing; -1 if there is none.
    """
    for check in (True, False):
        for i in range(segment.size):
            slot, episode = owner(segments, slot_of, segment[i], rows[i])
            if episode < 0:
                continue
            start, length = episodes[episode, START], episodes[episode, LENGTH]
            closing = start + length
            if rows[i] != closing - 1 or load_u1(segments[slot, TERMINATED] + rows[i]):
                return i
            if not check:
                store_f4(segments[slot, VALUE] + 4 * closing, values[i])
                set_closing_target(segments, slot, start, length)
                sweep(segments, slot, start, length - 1, settings, True)
    return -1


@kernel
def recount_far(
    episodes: Integers, segments: Integers, steps: Integers, ends: Integers, bound: float
) -> Index:
    """Set every far flag from the stored ratios under `bound`; gives n_far of the window."""
    total = 0
    position = ends[0]
    while position < ends[1]:
        slot = steps[position & (steps.size - 1)] >> 32
        far = recount_episode(episodes[slot], segments, bound)
        episodes[slot, FAR_STEPS] = far
        total += far
        position += episodes[slot, LENGTH]
    return total


@kernel
def recount_episode(episode: Integers, segments: Integers, bound: float) -> Index:
    """Set the far flags of one episode from its stored ratios; gives how many are far."""
    ratios = segments[episode[SEGMENT], RATIO]
    flags = segments[episode[SEGMENT], FAR]
    far = 0
    for row in range(episode[START], episode[START] + episode[LENGTH]):
        flag = np.uint8(is_far(np.float64(load_f4(ratios + 4 * row)), bound))
        store_u1(flags + row, flag)
        far += int(flag)
    return far


@kernel
def _first_bad(values: Floats32, lowest: float) -> Index:
    """The position of the first value that is not finite or below `lowest`; -1 if none is."""
    for i in range(values.size):
        if not (np.isfinite(values[i]) and values[i] >= lowest):
            return i
    return -1


def checked(name: str, given: Any, length: int, lowest: float = -np.inf) -> npt.NDArray[np.float32]:
    """Feed-back as float32 [length], finite and not below `lowest`; FeedbackError otherwise."""
    try:
        values = np.asarray(given)
    except (TypeError, RuntimeError, ValueError) as error:
        raise FeedbackError(
            f"{name} is no array ({error}); give floats, of tensors .detach().cpu().float(). "
            "Nothing was changed"
        ) from None
    if values.dtype.kind != "f":
        raise FeedbackError(f"{name} has dtype {values.dtype}; give floats. Nothing was changed")
    if values.shape != (length,):
        raise FeedbackError(
            f"{name} has shape {values.shape}; ({length},) is needed, one value a step. "
            "Nothing was changed"
        )
    if values.dtype != np.float32:
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    values = np.ascontiguousarray(values)
    if _first_bad(values, lowest) >= 0:
        raise _refusal(name, values, lowest)
    return values


def _refusal(name: str, values: npt.NDArray[np.float32], lowest: float) -> FeedbackError:
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= lowest)))
    shown = ", ".join(f"{i}: {values[i]}" for i in bad[:8])
    wanted = "finite" if lowest == -np.inf else "finite and not negative"
    return FeedbackError(
        f"{name} must be {wanted}; {bad.size} of {values.size} are not, at positions "
        f"{shown}{', …' if bad.size > 8 else ''}. Nothing was changed"
    )
