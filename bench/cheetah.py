"""The sizes that all figures share, those of HalfCheetah-v5, and made-up steps of these sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from storage.environment_spec import EnvironmentSpec

__all__ = ["ACTIONS", "BATCH", "ENVIRONMENT", "EPISODE", "HIDDEN", "OBSERVATIONS", "Steps", "spec"]

ENVIRONMENT: Final = "HalfCheetah-v5"
OBSERVATIONS: Final = 17
ACTIONS: Final = 6
HIDDEN: Final = 128
BATCH: Final = 256
EPISODE: Final = 1000


@dataclass(frozen=True, slots=True)
class Steps:
    """A made-up episode of `EPISODE` steps: arrays as environment and policy hand them over."""

    observations: list[npt.NDArray[np.floating[Any]]]
    actions: list[npt.NDArray[np.float32]]
    raw_actions: list[npt.NDArray[np.float32]]
    behaviours: list[npt.NDArray[np.float32]]
    rewards: list[float]

    @classmethod
    def random(cls, seed: int = 0, dtype: type[np.floating[Any]] = np.float64) -> Steps:
        """Normal observations (of that dtype) and actions, constant deviations."""
        draw = np.random.default_rng(seed)
        raw = draw.normal(0, 0.4, (EPISODE, ACTIONS)).astype(np.float32)
        behaviours = np.full((EPISODE, 2 * ACTIONS), 0.4, np.float32)
        return cls(
            list(draw.normal(size=(EPISODE + 1, OBSERVATIONS)).astype(dtype)),
            list(np.clip(raw, -1, 1)),
            list(raw),
            list(behaviours),
            [float(r) for r in draw.normal(size=EPISODE)],
        )


def spec(dtype: type[np.floating[Any]] = np.float64) -> EnvironmentSpec:
    """The environment's spaces, without an environment; observations of that dtype."""
    infinite: Any = np.inf
    return EnvironmentSpec(
        id=ENVIRONMENT,
        observation_space=Box(-infinite, infinite, (OBSERVATIONS,), dtype),
        action_space=Box(-1, 1, (ACTIONS,), np.float32),
        max_episode_steps=EPISODE,
    )
