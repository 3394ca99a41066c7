"""Exploration noise: independent at each step, or correlated along an episode.

The Ornstein-Uhlenbeck process has a state x that begins an episode at 0; a step's noise is
xi + 0.85 x, and then x becomes 0.85 x + xi. That is the sum of 0.85^j times the draw of j steps
ago, and as a sum it is computed here: a pure function of the seed, the lane, the environment step
and the steps of the episode so far. No checkpoint holds any of it.
"""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

import numpy as np

from storage.kernel import kernel
from storage.randomness import normal_pair, philox, uniform_double

__all__ = ["NOISE_LIMIT", "OU_DECAY", "WHITE", "EpisodeClock", "Noise", "NoiseName", "noise_pair"]

NoiseName = Literal["gaussian", "ornstein_uhlenbeck"]
"""The setting ``agent.noise``."""

NOISE_LIMIT = 3.0
"""Standard normal draws beyond plus or minus this are replaced by uniform ones within it."""

OU_DECAY: Final = 0.85
"""1 - theta of the Ornstein-Uhlenbeck process, theta = 0.15."""

_ROUNDING: Final = 2.0**-53
"""Draws that weigh less than this are left out: no double would tell them."""


class Noise(NamedTuple):
    """How the noise of a lane's steps hangs together."""

    decay: float = 0.0
    """What a draw weighs at the next step of its episode; 0: the noise is independent."""
    lanes: int = 1
    """Environment lanes of the run: a lane acts at each step index of its own, every so many."""

    @classmethod
    def named(cls, name: NoiseName, lanes: int) -> Noise:
        """The noise of a setting, in a run of so many lanes."""
        return cls(OU_DECAY, lanes) if name == "ornstein_uhlenbeck" else WHITE

    @property
    def reach(self) -> int:
        """How many earlier draws count."""
        return math.ceil(math.log(_ROUNDING) / math.log(self.decay)) if self.decay else 0


WHITE: Final = Noise()
"""Independent noise."""


class EpisodeClock:
    """How many steps each lane's episode has had, from the step indices of a run alone.

    A lane acts once every ``lanes`` steps of the run. Asking changes nothing: the same step index
    gives the same answer until the lane's next episode begins.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._begun: dict[int, int] = {}
        self._starts: dict[int, int] = {}

    def begin(self, lane: int, steps: int) -> None:
        """An episode of the lane begins, or goes on after so many steps of its own."""
        self._begun[lane] = steps

    def steps(self, lane: int, step_index: int) -> int:
        """Steps that the lane's episode had before this one; 0 in a lane that never began."""
        if lane in self._begun:
            self._starts[lane] = step_index - self._begun.pop(lane) * self._lanes
        return (step_index - self._starts.get(lane, step_index)) // self._lanes


@kernel
def _draw(key: tuple[np.uint64, np.uint64], step: int, lane: int, pair: int) -> tuple[float, float]:
    """Two of the standard normal numbers of one act, within [-3, 3]."""
    block = philox(key[0], key[1], np.uint64(step), np.uint64(lane), np.uint64(pair), np.uint64(0))
    first, second = normal_pair(block[0], block[1])
    if abs(first) > NOISE_LIMIT:
        first = NOISE_LIMIT * (2.0 * uniform_double(block[2]) - 1.0)
    if abs(second) > NOISE_LIMIT:
        second = NOISE_LIMIT * (2.0 * uniform_double(block[3]) - 1.0)
    return first, second


@kernel
def noise_pair(
    key: tuple[np.uint64, np.uint64],
    step: int,
    lane: int,
    pair: int,
    decay: float,
    lanes: int,
    past: int,
) -> tuple[float, float]:
    """Noise of two action dimensions at one step, in standard deviations of a single draw.

    The draw of the step itself, and those of the ``past`` steps before, each ``lanes`` step indices
    apart and weighed by ``decay``, summed from the oldest on.
    """
    first, second = _draw(key, step - past * lanes, lane, pair)
    for back in range(past - 1, -1, -1):
        one, other = _draw(key, step - back * lanes, lane, pair)
        first, second = decay * first + one, decay * second + other
    return first, second
