"""Blind Cliffwalk: a chain of n states that only one sequence of actions survives.

Schaul et al., "Prioritized Experience Replay", ICLR 2016, appendix B.1; the demonstration that
Prioritized Sequence Experience Replay uses as well.
"""

from __future__ import annotations

from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces

from storage.errors import ConfigError
from storage.kernel import Floats

__all__ = [
    "ACTIONS",
    "LEAST_STATES",
    "BlindCliffwalk",
    "discount",
    "right_action",
    "transitions",
    "true_values",
]

ACTIONS: Final = 2
LEAST_STATES: Final = 2


class BlindCliffwalk(gymnasium.Env[Any, Any]):
    """States 0 … n - 1 in a row, two actions, one of which is right; which one alternates.

    The right action leads to the next state, and from the last one to the end with a reward of 1.
    The wrong one ends the episode with nothing. Nothing is random. An episode's end shows the
    state that it ended in; nobody may learn from it, since every end is a termination.

    Agents that need vectors wrap it in `gymnasium.wrappers.FlattenObservation`, which gives the
    state one-hot.

    Args:
        n: Number of states, at least 2.

    Raises:
        ConfigError: `n` is no whole number from 2.
    """

    def __init__(self, n: int = 8) -> None:
        self.n = _checked(n)
        self.observation_space = spaces.Discrete(n)
        self.action_space = spaces.Discrete(ACTIONS)
        self._state = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begins in state 0."""
        super().reset(seed=seed, options=options)
        self._state = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """One step; the reward is 1 for the right action of the last state and else 0."""
        state = self._state
        if action != right_action(state):
            return state, 0.0, True, False, {}
        if state == self.n - 1:
            return state, 1.0, True, False, {}
        self._state = state + 1
        return self._state, 0.0, False, False, {}


def right_action(state: int) -> int:
    """The action that does not fall off the cliff: 0, 1, 0, 1, … along the chain."""
    return state % ACTIONS


def discount(n: int) -> float:
    """γ = 1 - 1/n."""
    return 1.0 - 1.0 / _checked(n)


def true_values(n: int) -> Floats:
    """Q* as float64 [n, 2]: γ^(n - 1 - i) for the right action of state i, 0 for the wrong one.

    >>> true_values(4).max(axis=1).tolist()
    [0.421875, 0.5625, 0.75, 1.0]
    """
    values = np.zeros((_checked(n), ACTIONS))
    for state in range(n):
        values[state, right_action(state)] = discount(n) ** (n - 1 - state)
    return values


def transitions(n: int) -> int:
    """M = 2^(n + 1) - 2, the steps of all 2^n action sequences until their episodes end."""
    return int(2 ** (_checked(n) + 1) - 2)


def _checked(n: Any) -> int:
    if isinstance(n, int) and not isinstance(n, bool) and n >= LEAST_STATES:
        return n
    raise ConfigError(f"n = {n!r}: Blind Cliffwalk has a whole number of states, at least 2")
