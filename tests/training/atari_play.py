"""Atari episodes of random actions, and naive twins of what they show."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from training.environments.atari_game import AtariGame


class Played(NamedTuple):
    """An episode as it was shown."""

    observations: list[np.ndarray]
    actions: list[int]
    rewards: list[float]
    lives: list[int]
    """Of the reset and of every step."""
    terminated: bool
    truncated: bool

    @property
    def digest(self) -> str:
        """Changes with any bit of the episode."""
        frames = b"".join(each.tobytes() for each in self.observations)
        return hashlib.sha256(frames + repr(self[1:]).encode()).hexdigest()


def play(game: Any, seed: int, steps: int = 10**6, action: int | None = None) -> Played:
    """Random actions (or always the same one) to the episode's end, or for so many steps."""
    rng = np.random.default_rng(seed)
    observation, info = game.reset(seed=seed)
    played = Played([observation], [], [], [info["lives"]], False, False)
    while len(played.actions) < steps:
        chosen = int(rng.integers(game.action_space.n)) if action is None else action
        observation, reward, terminated, truncated, info = game.step(chosen)
        for values, value in zip(played, (observation, chosen, reward, info["lives"])):  # noqa: B905
            values.append(value)  # type: ignore[attr-defined]
        if terminated or truncated:
            return played._replace(terminated=terminated, truncated=truncated)
    return played


def shrink(frame: np.ndarray, size: int = 84) -> np.ndarray:
    """The frame by area interpolation, as float64: every pixel is a mean over its rectangle."""
    rows, columns = (_weights(length, size) for length in frame.shape)
    return rows @ frame.astype(np.float64) @ columns.T


def _weights(length: int, size: int) -> np.ndarray:
    scale = length / size
    ends = np.arange(length + 1)
    overlaps = [
        np.minimum(ends[1:], (pixel + 1) * scale) - np.maximum(ends[:-1], pixel * scale)
        for pixel in range(size)
    ]
    return np.maximum(np.stack(overlaps), 0.0) / scale


def digest_of(game: str, seed: int, steps: int, **settings: Any) -> str:
    """The digest of an episode in a game of its own."""
    from training.environments.atari_settings import AtariSettings

    env = AtariGame(game, AtariSettings(**settings))
    digest = play(env, seed, steps).digest
    env.close()
    return digest
