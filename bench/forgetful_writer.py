"""A stand-in for the store's writer that keeps nothing: the collecting loop without a writer."""

from __future__ import annotations

from typing import Any

from storage.episode_table import EpisodeRecord
from storage.layout import Ending

__all__ = ["ForgetfulWriter"]


class ForgetfulWriter:
    """Takes what a `storage.writer.Writer` of one lane takes, and stores none of it."""

    lanes = 1
    nonfinite_episodes = 0

    def __init__(self) -> None:
        self._steps = 0
        self._episodes = 0

    def begin(self, lane: int, observation: Any, **_: Any) -> None:
        """Forgets an episode's first observation."""
        self._steps = 0

    def step(
        self, lane: int, *, terminated: bool, truncated: bool, **_: Any
    ) -> EpisodeRecord | None:
        """Forgets a step; a record without a return at the episode's end."""
        self._steps += 1
        if not (terminated or truncated):
            return None
        self._episodes += 1
        ending = Ending.TERMINATED if terminated else Ending.TRUNCATED
        return EpisodeRecord(0, self._episodes, 0, self._steps, ending, 0.0, None, 0, 0)

    def open_episode(self, lane: int) -> None:
        """No episode is kept, so none is open."""
