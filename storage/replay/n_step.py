"""n-step returns of drawn steps: built from the window's rows, kept nowhere.

    G_t = Σ_{k < m} γ^k r_{t+k+1},   m = min(n, steps left in the episode),

to be continued by γ^m times what a bootstrap makes of o_{t+m} (Sutton and Barto, 2018, eq. 7.1).
The sum ends with its episode. Where that was terminated nothing continues it: the discount is 0;
where it was truncated, or cut, its final observation does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.errors import ConfigError, SamplingError
from storage.kernel import Floats, Index, Integers, kernel, load_f8, load_u1
from storage.replay.locate import locate
from storage.replay.observations import Observations
from storage.replay.tables import LENGTH, MASK, REWARD, SEGMENT, START, TERMINATED

if TYPE_CHECKING:
    from storage.replay.batch import Batch, Values
    from storage.replay.values import WindowValues

__all__ = ["NStep", "NStepReturns"]

_NO_COLUMN = -1


@dataclass(frozen=True, slots=True)
class NStepReturns:
    """Returns of B drawn steps."""

    reward: Floats
    """G_t, float64 [B]: discounted sum of the rewards of `steps` steps, unscaled."""
    discount: Floats
    """float64 [B]: γ^m, or 0 where nothing follows."""
    steps: Integers
    """m, int64 [B], from 1 to n."""
    observation: Values
    """o_{t+m} [B, …], laid out like a batch's observation; overwritten by the next call."""


@kernel
def _add_up(
    episodes: Integers,
    segments: Integers,
    keys: Integers,
    n: Index,
    gamma: float,
    lives: Index,
    sums: Floats,
    places: Integers,
) -> None:
    """Fill `sums` [2, B] with returns and discounts, `places` [3, B] with m, segment slot and row.

    `keys` name steps of the window (see `locate`); `lives` is the place of the column of lost
    lives, below 0 if they do not matter. Rows of the step's own episode alone are read.
    """
    for i in range(keys.size):
        episode, t = episodes[keys[i] >> 32], keys[i] & MASK
        slot, row = episode[SEGMENT], episode[START] + t
        most = min(n, episode[LENGTH] - t)
        total, power, taken = 0.0, 1.0, 0
        while taken < most:
            total += power * load_f8(segments[slot, REWARD] + 8 * row)
            power *= gamma
            over = load_u1(segments[slot, TERMINATED] + row)
            if lives >= 0:
                over |= load_u1(segments[slot, lives] + row)
            taken += 1
            row += 1
            if over:
                power = 0.0
                break
        sums[0, i], sums[1, i] = total, power
        places[0, i], places[1, i], places[2, i] = taken, slot, row


class NStep:
    """Makes n-step returns of the batches of a view.

    `discount` is γ. With `stop_at_life_loss` a lost life ends the sum as a terminal state does: the
    discount is 0 (the column life_lost says where). Raises ConfigError for settings that cannot be.
    """

    def __init__(
        self,
        view: WindowValues,
        n: int = 3,
        discount: float = 0.99,
        *,
        stop_at_life_loss: bool = False,
    ) -> None:
        self._n, self._discount = _checked(n, discount)
        self._window, schema = view._window, view._schema
        self._observations = Observations(view)
        self._lives = _NO_COLUMN
        if stop_at_life_loss:
            if not schema.life_loss:
                raise ConfigError(
                    "stop_at_life_loss=True, but this store has no column life_lost; leave it out, "
                    "or collect into a store that was created with life_loss=True"
                )
            self._lives = self._window.segments.column("life_lost")

    def __call__(self, batch: Batch) -> NStepReturns:
        """The returns of a batch's steps. SamplingError if one of them has left the window."""
        window = self._window
        keys, found = locate(window, batch)
        if found < keys.size:
            raise _gone(batch, keys, found)
        sums, places = np.empty((2, keys.size)), np.empty((3, keys.size), np.int64)
        _add_up(
            window.episodes,
            window.segments.table,
            keys,
            self._n,
            self._discount,
            self._lives,
            sums,
            places,
        )
        steps, slots, rows = places
        observation = self._observations.at(slots, rows)
        return NStepReturns(sums[0], sums[1], steps, observation)


def _checked(n: Any, discount: float) -> tuple[int, float]:
    """The settings, if they can be."""
    if not (isinstance(n, (int, np.integer)) and n >= 1):
        raise ConfigError(f"n={n!r}: give a whole number of steps, at least 1")
    if not 0.0 <= discount <= 1.0:
        raise ConfigError(f"discount={discount}: give a number from 0 to 1")
    return int(n), float(discount)


def _gone(batch: Batch, keys: Integers, found: int) -> SamplingError:
    first = int(np.argmax(keys < 0))
    return SamplingError(
        f"{keys.size - found} of {keys.size} steps have left the window since they were drawn, "
        f"the first one at position {first}: segment {batch.segment[first]}, row "
        f"{batch.row[first]}. Make returns before episodes are forgotten (view.forget, "
        "view.advance), or draw anew."
    )
