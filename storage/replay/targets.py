"""The value targets of V-RACER, as backward sweeps along episodes (ReF-ER eq. 8).

    V̂tbc_t = V_t + min(1, ρ_t) (r_{t+1} / scale + γ V̂tbc_{t+1} - V_t)

starting at an episode's end from V̂tbc_T = 0 if s_T is terminal and V(s_T) if it was truncated.
It equals V-trace with both clips at 1 and λ = 1 (Espeholt et al., 2018).

Arithmetic is float64, and each target is rounded to the float32 of its column before the next
(earlier) step uses it. That rounding is what makes an early stop exact: every stored target is at
all times the recursion of what is stored beside and behind it, so a sweep that reproduces a stored
target bit for bit would reproduce all earlier ones too, up to the next step whose V or ρ changed.
"""

from __future__ import annotations

import numpy as np

from storage.kernel import (
    Floats,
    Index,
    Integers,
    kernel,
    load_f4,
    load_f8,
    load_i4,
    load_u1,
    store_f4,
)
from storage.replay.tables import (
    LENGTH,
    RATIO,
    REWARD,
    SEGMENT,
    START,
    TARGET,
    TERMINATED,
    VALUE,
)

__all__ = [
    "recompute_targets",
    "set_closing_target",
    "sweep",
    "sweep_two",
    "target_of",
    "value_targets",
]


@kernel
def target_of(
    reward: float, ratio: float, value: float, following: float, discount: float
) -> float:
    """One step of the recursion; `reward` is already divided by the reward scale."""
    clipped = min(1.0, ratio)
    return (value + clipped * (reward - value)) + (clipped * discount) * following


@kernel
def value_targets(
    rewards: Floats, ratios: Floats, values: Floats, closing: float, discount: float
) -> Floats:
    """Value targets float64[T] of one episode held in float64 arrays of length T.

    `closing` is V̂tbc_T: 0 at a terminal state, V(s_T) at a truncated one; rewards[t] is r_{t+1}.
    The target of the action value is rewards[t] + discount * (the next value target)
    (ReF-ER eq. 6 with Q = V).
    """
    targets = np.empty(values.size)
    following = closing
    for t in range(values.size - 1, -1, -1):
        following = target_of(rewards[t], ratios[t], values[t], following, discount)
        targets[t] = following
    return targets


@kernel
def _columns(segments: Integers, slot: Index, row: Index) -> tuple[Index, Index, Index, Index]:
    """Addresses of reward, ratio, value and target at a row."""
    return (
        segments[slot, REWARD] + 8 * row,
        segments[slot, RATIO] + 4 * row,
        segments[slot, VALUE] + 4 * row,
        segments[slot, TARGET] + 4 * row,
    )


@kernel
def _renew(
    columns: tuple[Index, Index, Index, Index],
    t: Index,
    following: np.float32,
    discount: float,
    scale: float,
) -> tuple[np.float32, bool]:
    """Store the target of step t; gives it, and whether its bits were there already."""
    rewards, ratios, values, targets = columns
    reward = load_f8(rewards + 8 * t) / scale
    ratio = np.float64(load_f4(ratios + 4 * t))
    value = np.float64(load_f4(values + 4 * t))
    target = np.float32(target_of(reward, ratio, value, np.float64(following), discount))
    before = load_i4(targets + 4 * t)
    store_f4(targets + 4 * t, target)
    return target, load_i4(targets + 4 * t) == before


@kernel
def sweep(
    segments: Integers, slot: Index, start: Index, last: Index, settings: Floats, early: bool
) -> Index:
    """Recompute the targets of steps last, last - 1, … 0 of the episode that begins at `start`.

    With `early`, stop at the first step whose stored bits come out unchanged. Gives the smallest
    step that was recomputed. `settings` is (far bound, discount, reward scale).
    """
    columns, discount, scale = _columns(segments, slot, start), settings[1], settings[2]
    following = load_f4(columns[3] + 4 * (last + 1))
    for t in range(last, -1, -1):
        following, same = _renew(columns, t, following, discount, scale)
        if same and early:
            return t
    return 0


@kernel
def sweep_two(
    segments: Integers,
    slots: tuple[Index, Index],
    starts: tuple[Index, Index],
    lasts: tuple[Index, Index],
    settings: Floats,
) -> tuple[Index, bool, bool]:
    """Early-stopping sweeps of two episodes side by side, until one of them ends.

    A sweep waits for the rounding of each target before the next; two of them share the waiting.
    Gives how many steps of both were recomputed, at least one, and which sweeps have ended.
    """
    discount, scale = settings[1], settings[2]
    last, other_last = lasts
    columns = _columns(segments, slots[0], starts[0])
    other_columns = _columns(segments, slots[1], starts[1])
    following = load_f4(columns[3] + 4 * (last + 1))
    other = load_f4(other_columns[3] + 4 * (other_last + 1))
    most = min(last, other_last) + 1
    for done in range(most):
        following, same = _renew(columns, last - done, following, discount, scale)
        other, other_same = _renew(other_columns, other_last - done, other, discount, scale)
        if same or other_same:
            return done + 1, same or done == last, other_same or done == other_last
    return most, most > last, most > other_last


@kernel
def set_closing_target(segments: Integers, slot: Index, start: Index, length: Index) -> None:
    """V̂tbc_T of an episode: 0 if its last step terminated it, the stored V(s_T) otherwise."""
    closing = start + length
    target = np.float32(0.0)
    if load_u1(segments[slot, TERMINATED] + closing - 1) == 0:
        target = load_f4(segments[slot, VALUE] + 4 * closing)
    store_f4(segments[slot, TARGET] + 4 * closing, target)


@kernel
def recompute_targets(
    episodes: Integers, segments: Integers, steps: Integers, ends: Integers, settings: Floats
) -> None:
    """Full sweeps of every episode between ring positions ends = (head, tail)."""
    position = ends[0]
    while position < ends[1]:
        episode = episodes[steps[position & (steps.size - 1)] >> 32]
        slot, start, length = episode[SEGMENT], episode[START], episode[LENGTH]
        set_closing_target(segments, slot, start, length)
        sweep(segments, slot, start, length - 1, settings, False)
        position += length
