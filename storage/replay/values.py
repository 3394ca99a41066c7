"""What a run has learnt about the steps of its window: V, ρ, far flags and value targets.

These columns live in the overlay; this class is the only one that changes them, and keeps three
things true after every call: n_far is the sum of the stored far flags of the window, every stored
value target is the recursion of what is stored (see `targets`), and a refused call changed nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage.errors import EmptyViewError, FeedbackError, SamplingError
from storage.replay.admission import introduce
from storage.replay.draws import load_draws, store_draws
from storage.replay.feedback import (
    apply_feedback,
    checked,
    recount_far,
    refresh_closing,
)
from storage.replay.refresh import Evaluate, refresh_window
from storage.replay.statistics import WindowStatistics, window_statistics
from storage.replay.targets import recompute_targets

if TYPE_CHECKING:
    from storage.kernel import Floats32, Integers
    from storage.replay.batch import Batch
    from storage.replay.window import Window
    from storage.schema import Schema

__all__ = ["NOTHING", "WindowValues"]

NOTHING: Floats32 = np.zeros(0, np.float32)
"""Stands for values that were not given, where kernels want an array."""
_ROUNDING = -1e-4
"""Computed divergences of nearly equal policies may come out this much below 0; 0 is stored."""


class WindowValues:
    """The learnt columns of a window's rows.

    `settings` is float64 (far bound c_max, discount γ, reward scale).
    """

    def __init__(
        self, schema: Schema, window: Window, far_bound: float, discount: float, scale: float
    ) -> None:
        self._schema = schema
        self._window = window
        self._settings = np.array([checked_bound(far_bound), 0.0, 1.0], np.float64)
        self._n_far = 0
        self.set_targets(discount, scale)

    @property
    def n_steps(self) -> int:
        """Steps in the window."""
        return self._window.n_steps

    @property
    def n_episodes(self) -> int:
        """Episodes in the window."""
        return self._window.n_episodes

    @property
    def n_far(self) -> int:
        """Far steps, by their stored flags (ReF-ER, below eq. 10)."""
        return self._n_far

    @property
    def far_fraction(self) -> float:
        """n_far / n_steps; 0 when the window is empty."""
        return self._n_far / max(self.n_steps, 1)

    @property
    def discount(self) -> float:
        """γ of the value targets."""
        return float(self._settings[1])

    @property
    def reward_scale(self) -> float:
        """What rewards are divided by in the value targets."""
        return float(self._settings[2])

    def refresh_bootstrap(self, batch: Batch, where: Integers, values: Floats32) -> None:
        """Store fresh V(s_T) for batch positions that are the truncated last steps of episodes.

        `where` int64 [k], `values` float32 [k]. The targets of these episodes follow at once, and
        so does `batch.next_value_target[where]`. Steps that have left the window are passed over.
        Raises FeedbackError if a position is not a truncated last step.
        """
        positions = np.asarray(where, np.int64)
        fresh = checked("values", values, positions.size)
        if positions.size and not 0 <= positions.min() <= positions.max() < len(batch):
            raise FeedbackError(f"where must lie in [0, {len(batch)}); nothing was changed")
        wrong = refresh_closing(
            self._window.episodes,
            self._window.segments.table,
            self._window.segments.slot_of,
            batch.segment[positions],
            batch.row[positions],
            fresh,
            self._settings,
        )
        if wrong >= 0:
            raise FeedbackError(
                f"position {positions[wrong]} of the batch (segment "
                f"{batch.segment[positions[wrong]]}, row {batch.row[positions[wrong]]}) is not the "
                "truncated last step of an episode, so it has no V(s_T); nothing was changed"
            )
        if batch.has("next_value_target"):
            batch.next_value_target[positions] = fresh

    def _store_feedback(
        self,
        keys: Integers,
        importance_ratio: Floats32 | None,
        value: Floats32 | None,
        divergence: Floats32 | None,
        far_bound: float | None,
    ) -> None:
        """What `feed_back` does to learnt columns, for steps by keys (see `locate`)."""
        size = keys.size
        values = (
            NOTHING
            if importance_ratio is None
            else checked("importance_ratio", importance_ratio, size, 0.0),
            NOTHING if value is None else checked("value", value, size),
            NOTHING if divergence is None else checked("divergence", divergence, size, _ROUNDING),
        )
        if far_bound is not None:
            self._settings[0] = checked_bound(far_bound)
        self._n_far += apply_feedback(
            self._window.episodes, self._window.segments.table, keys, *values, self._settings
        )

    def set_targets(self, discount: float, reward_scale: float) -> None:
        """Set γ and the reward scale; when either changes, recompute all targets of the window."""
        if not 0.0 <= discount <= 1.0:
            raise SamplingError(f"discount={discount}: give a number from 0 to 1")
        if not (np.isfinite(reward_scale) and reward_scale > 0.0):
            raise SamplingError(f"reward_scale={reward_scale}: give a positive number")
        if (discount, reward_scale) != (self.discount, self.reward_scale):
            self._settings[1:] = discount, reward_scale
            self.recompute_targets()

    def recompute_targets(self) -> None:
        """Full backward sweeps of every episode of the window (ReF-ER eq. 8)."""
        window = self._window
        table = self._window.segments.table
        recompute_targets(window.episodes, table, window.steps, window.ends, self._settings)

    def recount_far(self, far_bound: float) -> int:
        """Set every far flag from its stored ratio under `far_bound`; gives the new n_far."""
        self._settings[0] = checked_bound(far_bound)
        window = self._window
        table = self._window.segments.table
        self._n_far = int(
            recount_far(window.episodes, table, window.steps, window.ends, self._settings[0])
        )
        return self._n_far

    def refresh(self, evaluate: Evaluate, far_bound: float) -> None:
        """Recompute V and ρ of the whole window by `evaluate`, then targets and far flags.

        `evaluate` gets chunks of consecutive rows, closing rows among them. If it fails, the rows
        it had done keep their new values and the targets still agree with what is stored.
        """
        checked_bound(far_bound)
        try:
            refresh_window(self._schema, self._window, evaluate)
        finally:
            self.recompute_targets()
            self.recount_far(far_bound)

    def statistics(self) -> WindowStatistics:
        """Moments of observations and rewards over the window's steps; see WindowStatistics."""
        if self.n_steps == 0:
            raise EmptyViewError("0 steps in the window have no statistics; collect more")
        return window_statistics(self._schema, self._window)

    def _enter(self, identities: Integers, values: Floats32) -> None:
        """Admit episodes to the window and give their rows their first values and targets."""
        window = self._window
        first = int(window.ends[1])
        slots = window.enter(identities)
        table = window.segments.table
        self._n_far += introduce(window.episodes, table, slots, values, self._settings)
        load_draws(window, first, int(window.ends[1]))

    def _leave(self, slot: int) -> bool:
        """Take an episode out of the window; gives whether other positions have moved."""
        window = self._window
        first = window.first(slot)
        store_draws(window, first, first + window.length(slot))
        self._n_far -= window.far_steps(slot)
        return window.leave(slot)

    def _show_draws(self) -> None:
        """Bring the overlay's `draw_count` and `last_drawn` up to date."""
        store_draws(self._window, int(self._window.ends[0]), int(self._window.ends[1]))


def checked_bound(far_bound: float) -> float:
    """c_max as a float, if it is one."""
    if not (np.isfinite(far_bound) and far_bound >= 1.0):
        raise FeedbackError(f"far_bound={far_bound}: c_max is a number from 1; nothing was changed")
    return float(far_bound)
