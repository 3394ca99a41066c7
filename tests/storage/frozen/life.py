"""What the frozen stores hold: every value follows from the episode's number and the step.

Frozen stores are never made anew: ``version_1.tar.xz`` is what the release of format version 1
wrote. This module says what must be read out of it, and must not change either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

import storage

OBSERVATION = spaces.Dict(
    {
        "arm": spaces.Dict(
            {"angle": spaces.Box(-64, 64, (1, 2), np.float32), "gear": spaces.Discrete(4, start=-3)}
        ),
        "camera": spaces.Box(0, 255, (2, 3), np.uint8),
        "doors": spaces.MultiBinary(3),
    }
)
ACTION = spaces.Tuple(
    (spaces.Box(-1, 1, (2,), np.float32), spaces.Box(-np.inf, np.inf, (), np.float64))
)
INFO = {"fuel": "i2", "wind": ("f8", (2,))}


def spec() -> storage.EnvironmentSpec:
    return storage.EnvironmentSpec(
        "Frozen-v1", OBSERVATION, ACTION, kwargs={"hills": [1, 2.5, None]}, max_episode_steps=64
    )


def observation(episode: int, t: int) -> dict[str, Any]:
    return {
        "arm": {
            "angle": np.array([[episode + t / 8, -t]], np.float32),
            "gear": np.int64(-3 + (episode + t) % 4),
        },
        "camera": np.full((2, 3), 16 * episode + t, np.uint8),
        "doors": np.array([t & 1, t >> 1 & 1, t >> 2 & 1], np.int8),
    }


def info(episode: int, t: int) -> dict[str, Any]:
    """``fuel`` comes with every second observation only."""
    wind = {"wind": np.array([episode / 4, t / 4])}
    return wind if t % 2 else wind | {"fuel": 100 * episode - t}


def step(episode: int, t: int, ending: str | None = None) -> dict[str, Any]:
    """The step that leads to observation t + 1; ``ending`` is how it ends the episode."""
    raw = np.array([t / 4, -t / 4, episode + 0.5], np.float32)
    uniform = t == 0  # drawn from the whole box, so without parameters
    return {
        "action": (np.clip(raw[:2], -1, 1), np.float64(raw[2])),
        "raw_action": raw,
        "reward": episode - t / 2,
        "observation": observation(episode, t + 1),
        "terminated": ending == "terminated",
        "truncated": ending == "truncated",
        "behaviour": None if uniform else np.arange(1, 7) / (t + 1),
        "behaviour_kind": 3 if uniform else 1 if t % 2 else 4,
        "policy_update": 1000 * episode + t,
        "life_lost": t == 1,
        "info": info(episode, t + 1),
    }


EPISODES = (
    # segment, ordinal, number, steps, ending, seed
    (0, 0, 1, 6, "terminated", 0),
    (0, 1, 2, 4, "truncated", 2**63 + 5),
    (0, 3, 4, 3, "salvaged", 44),
    (1, 0, 5, 1, "terminated", None),
    (1, 1, 6, 5, "cut", 66),
)
VOID = (0, 2, 3, 5)
"""Segment, ordinal, number and steps of the episode that a repair took out."""
OPEN = (2, 7, 2)
"""Segment, number and steps of the episode that was open when the store was frozen."""
