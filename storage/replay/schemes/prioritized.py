"""Prioritized experience replay (PER): draws in proportion to p^alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import CheckpointError, SamplingError
from storage.randomness import stream_key
from storage.replay.schemes.priorities import (
    AFTER,
    BEFORE,
    EPSILON,
    HUBER,
    LARGEST,
    RULES,
    empty_tree,
    feed_back_priorities,
    fill_tree,
    largest_priority,
    move_weights,
)
from storage.replay.schemes.prioritized_draw import draw_prioritized
from storage.replay.schemes.sum_tree import SumTree

if TYPE_CHECKING:
    from storage.kernel import Floats32, Integers
    from storage.replay.schemes.priority_settings import PrioritySettings
    from storage.replay.window import Window

__all__ = ["Prioritized"]

_NONE = np.zeros(0, np.float32)
_NO_KEYS = np.zeros(0, np.int64)


class Prioritized:
    """Proportional PER (Schaul et al. 2016), in a sum tree beside the overlay's priority column.

    Satisfies `storage.replay.schemes.scheme.Scheme`. Its own state is the largest priority that was
    ever set; the tree is a pure function of the column.
    """

    name = "per"

    def __init__(self, window: Window, seed: int, settings: PrioritySettings) -> None:
        self._window = window
        self._settings = settings
        self._key = np.array(stream_key(seed, "prioritized draws"), np.uint64)
        self._rules = np.zeros(RULES)
        huber = settings.error == "huber"
        powers = (1.0, settings.alpha) if settings.exponent == "priorities" else (settings.alpha, 1)
        self._rules[[AFTER, BEFORE, EPSILON, HUBER]] = (*powers, settings.epsilon, huber)
        self._rules[LARGEST] = np.float32(settings.initial_constant)
        self._new_tree()

    @property
    def largest_ever(self) -> float:
        """The largest priority that was ever set, at least the settings' `initial_constant`."""
        return float(self._rules[LARGEST])

    @property
    def wants_errors(self) -> bool:
        """Whether entering episodes should come with the errors of their steps."""
        return self._settings.initial == "current_td"

    @property
    def nbytes(self) -> int:
        """Bytes of the tree."""
        return self._tree.nbytes

    def admitted(self, first: int, last: int, errors: Floats32 | None = None) -> None:
        """Give new steps their first priorities, and their slots in the tree."""
        self._enter(first, last, errors, _NO_KEYS)

    def forgotten(self, first: int, last: int) -> None:
        """Empty the slots of steps that left at the head."""
        empty_tree(self._tree.layout, self._mask, first, last)

    def shifted(self, first: int, last: int, by: int) -> None:
        """Move the weights of [first, last) up by `by`, over those of an episode that left."""
        move_weights(self._tree.layout, self._mask, first, last, by)

    def rebuilt(self) -> None:
        """Fill a fresh tree from the overlay's priorities."""
        self._new_tree()
        head, tail = self._window.ends
        self._enter(int(head), int(tail), None, _NO_KEYS)

    def draw(self, positions: Integers, weights: Floats32, index: int) -> None:
        """Draw number `index`; SamplingError if every priority is 0."""
        settings = self._settings
        drawn = draw_prioritized(
            self._tree.layout,
            self._window.ends,
            self._window.steps,
            self._key,
            index,
            settings.beta_at(index),
            settings.stratified,
            positions,
            weights,
        )
        if not drawn:
            raise SamplingError(
                f"all {self._window.n_steps} steps of the window have priority 0, so none can be "
                "drawn; feed back positive errors, or set epsilon above 0"
            )

    def feed_back(self, keys: Integers, errors: Floats32) -> None:
        """Set the priorities of drawn steps."""
        window = self._window
        feed_back_priorities(
            window.episodes,
            window.segments.table,
            keys,
            errors,
            self._tree.layout,
            self._mask,
            self._rules,
        )

    def state_dict(self) -> dict[str, Any]:
        """The largest priority ever."""
        return {"largest_ever": self.largest_ever}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take it back; the tree has been rebuilt already. CheckpointError for no such number."""
        largest = float(state["largest_ever"])
        if not (np.isfinite(largest) and largest >= 0.0):
            raise CheckpointError(
                f"the checkpoint's largest priority is {largest}; take an undamaged one"
            )
        self._rules[LARGEST] = largest

    @property
    def _mask(self) -> int:
        return self._tree.capacity - 1

    def _new_tree(self) -> None:
        whole = self._settings.normalise == "store"
        self._tree = SumTree(self._window.steps.size, minimum=whole)

    def _enter(self, first: int, last: int, errors: Floats32 | None, keys: Integers) -> int:
        """Fill the slots of entering steps; see `fill_tree`."""
        if self._window.steps.size != self._tree.capacity:
            self._new_tree()
            self._fill(int(self._window.ends[0]), first, _NONE, _NO_KEYS)
        self._rules[LARGEST] = max(self.largest_ever, self._largest(first, last))
        return self._fill(first, last, _NONE if errors is None else errors, keys)

    def _fill(self, first: int, last: int, errors: Floats32, keys: Integers) -> int:
        window = self._window
        fresh = fill_tree(
            window.episodes,
            window.segments.table,
            window.steps,
            (first, last),
            self._tree.layout,
            self._rules,
            self._initial(last),
            errors,
            keys,
        )
        return int(fresh)

    def _initial(self, end: int) -> float:
        """Priority of steps that have none yet, all of them before ring position `end`."""
        settings = self._settings
        if settings.initial == "constant":
            return settings.initial_constant
        if settings.initial != "max_current":
            return self.largest_ever
        return self._largest(int(self._window.ends[0]), end) or settings.initial_constant

    def _largest(self, first: int, last: int) -> float:
        window = self._window
        return largest_priority(window.episodes, window.segments.table, window.steps, (first, last))
