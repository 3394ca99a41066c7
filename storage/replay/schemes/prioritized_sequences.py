"""Prioritized sequence experience replay (PSER): priorities decay backwards along episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage.kernel import Floats, Floats32, Index, Integers, kernel, load_f4
from storage.replay.schemes.priorities import ETA, NEAR, store_errors
from storage.replay.schemes.prioritized import Prioritized
from storage.replay.schemes.sequence_decay import decay_add, decay_max
from storage.replay.schemes.sum_tree import refresh_tree
from storage.replay.tables import MASK, PRIORITY, SEGMENT, START

if TYPE_CHECKING:
    from storage.replay.schemes.priority_settings import PrioritySettings, SequenceSettings
    from storage.replay.window import Window

__all__ = ["PrioritizedSequences"]

_NEAR = 8
"""Steps of a cache line of the tree."""


@kernel
def _without_repeats(keys: Integers) -> Index:
    """Sort keys and keep one of each; gives how many.

    Not by argsort: numba keeps the code of a sort and of an argsort under names that can be equal
    when two processes have compiled them, and then takes one for the other.
    """
    keys.sort()
    count = 0
    for i in range(keys.size):
        if count == 0 or keys[i] != keys[count - 1]:
            keys[count] = keys[i]
            count += 1
    return count


@kernel
def _stored(episodes: Integers, segments: Integers, keys: Integers) -> Floats32:
    """The stored priorities of steps by their keys."""
    priorities = np.empty(keys.size, np.float32)
    for i in range(keys.size):
        episode = episodes[keys[i] >> 32]
        row = episode[START] + (keys[i] & MASK)
        priorities[i] = abs(load_f4(segments[episode[SEGMENT], PRIORITY] + 4 * row))
    return priorities


@kernel
def _decay(
    episodes: Integers,
    segments: Integers,
    tree: tuple[Integers, Index],
    rules: Floats,
    factors: Floats,
    options: tuple[bool, Index],
    sources: tuple[Integers, Integers, Floats32],
) -> None:
    """Phase two and the tree above; `sources` as of `store_errors`.

    `options` are whether sources add up, and the place of `life_lost` or 0.
    """
    adds, life_lost = options
    keys, slots, priorities = sources
    if adds:
        refresh_tree(tree[0], slots)
        keys = keys[: _without_repeats(keys)]
        priorities = _stored(episodes, segments, keys)
        decay_add(episodes, segments, tree, rules, factors, life_lost, keys, priorities)
    else:
        decay_max(episodes, segments, tree, rules, factors, life_lost, keys, priorities)


@kernel
def _feed_back_sequences(
    episodes: Integers,
    segments: Integers,
    steps: Integers,
    errors: Floats32,
    layout: Integers,
    mask: Index,
    rules: Floats,
    factors: Floats,
    adds: bool,
    life_lost: Index,
) -> None:
    """Both phases; `steps` are the keys of the batch."""
    tree, options = (layout, mask), (adds, life_lost)
    keys, slots = np.empty((2, steps.size), np.int64)
    priorities = np.empty(steps.size, np.float32)
    found = (keys, slots, priorities)
    count = store_errors(episodes, segments, steps, errors, tree, rules, found)
    found = (keys[:count], slots[:count], priorities[:count])
    _decay(episodes, segments, tree, rules, factors, options, found)


@kernel
def _decay_from(
    episodes: Integers,
    segments: Integers,
    tree: tuple[Integers, Index],
    rules: Floats,
    factors: Floats,
    options: tuple[bool, Index],
    keys: Integers,
) -> None:
    """Decay from sources whose priorities are the stored ones."""
    sources = (keys, np.empty(0, np.int64), _stored(episodes, segments, keys))
    _decay(episodes, segments, tree, rules, factors, options, sources)


class PrioritizedSequences(Prioritized):
    """PSER (Brittain et al. 2019), by the order-free two-phase update of `sequence_decay`.

    Satisfies `storage.replay.schemes.scheme.Scheme`.
    """

    name = "pser"

    def __init__(
        self, window: Window, seed: int, settings: PrioritySettings, sequences: SequenceSettings
    ) -> None:
        super().__init__(window, seed, settings)
        self._sequences = sequences
        self._rules[ETA] = sequences.eta
        self._rules[NEAR] = min(sequences.reach, _NEAR)
        self._factors = sequences.factors()
        self._options = (sequences.mode == "add", self._life_lost())

    def admitted(self, first: int, last: int, errors: Floats32 | None = None) -> None:
        """As PER; with `decay_on_insert` new steps decay backwards at once."""
        if not self._sequences.decay_on_insert:
            super().admitted(first, last, errors)
            return
        keys = np.empty(last - first, np.int64)
        fresh = keys[: self._enter(first, last, errors, keys)]
        window = self._window
        _decay_from(
            window.episodes,
            window.segments.table,
            (self._tree.layout, self._mask),
            self._rules,
            self._factors,
            self._options,
            fresh,
        )

    def feed_back(self, keys: Integers, errors: Floats32) -> None:
        """Set the priorities of drawn steps and of those before them."""
        window = self._window
        _feed_back_sequences(
            window.episodes,
            window.segments.table,
            keys,
            errors,
            self._tree.layout,
            self._mask,
            self._rules,
            self._factors,
            *self._options,
        )

    def _life_lost(self) -> int:
        """The place of the column in the segment table; 0 where it is not there or not wanted."""
        if not self._sequences.stop_at_life_loss:
            return 0
        try:
            return self._window.segments.column("life_lost")
        except KeyError:
            return 0
