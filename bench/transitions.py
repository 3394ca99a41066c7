"""Made-up transitions, as the peers' buffers keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bench.cheetah import ACTIONS, EPISODE, OBSERVATIONS

__all__ = ["PRIORITIES", "Transitions"]

Floats32 = npt.NDArray[np.float32]

PRIORITIES = (0.01, 1.0)
"""Between which priorities and errors are drawn, uniformly."""


@dataclass(frozen=True, slots=True)
class Transitions:
    """As many transitions as a buffer holds, float32, with a priority each."""

    observation: Floats32
    action: Floats32
    reward: Floats32
    next_observation: Floats32
    truncated: npt.NDArray[np.bool_]
    """Every `EPISODE` steps; nothing is terminated."""
    priority: Floats32

    @classmethod
    def random(cls, count: int, seed: int = 0) -> Self:
        """Normal observations, actions and rewards; uniform priorities."""
        draw = np.random.default_rng(seed)
        observations = draw.standard_normal((count + 1, OBSERVATIONS), np.float32)
        return cls(
            observation=observations[:-1],
            action=draw.standard_normal((count, ACTIONS), np.float32),
            reward=draw.standard_normal(count, np.float32),
            next_observation=observations[1:],
            truncated=np.arange(1, count + 1) % EPISODE == 0,
            priority=draw.uniform(*PRIORITIES, count).astype(np.float32),
        )

    def __len__(self) -> int:
        return len(self.reward)

    def part(self, where: slice | int) -> dict[str, Any]:
        """Some of them, or one, by the names that the peers' buffers use; no priorities."""
        return {
            "obs": self.observation[where],
            "act": self.action[where],
            "rew": self.reward[where],
            "obs_next": self.next_observation[where],
            "terminated": np.zeros_like(self.truncated[where]),
            "truncated": self.truncated[where],
        }
