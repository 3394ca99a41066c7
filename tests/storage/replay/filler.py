"""Writes episodes into real stores for the replay tests, and remembers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

import storage
from storage.replay import ReplayView

GAMMA = 0.9


class Filler:
    """Writes episodes of given lengths; keeps what it wrote, by identity (segment, row)."""

    def __init__(self, path: Path, width: int = 1, **writing: Any) -> None:
        spec = storage.EnvironmentSpec(
            id="Toy-v0",
            observation_space=spaces.Box(-np.inf, np.inf, (width,), np.float64),
            action_space=spaces.Box(-1.0, 1.0, (2,), np.float32),
        )
        self.store = storage.create(path, spec)
        self.width = width
        self.writer = self.store.writer(**writing)
        self.episodes: list[storage.EpisodeRecord] = []
        self.rng = np.random.default_rng(0)
        self.observations: dict[tuple[int, int], np.ndarray] = {}
        self.rewards: dict[tuple[int, int], float] = {}
        self.terminal: dict[tuple[int, int], bool] = {}

    def observation(self, value: float | None) -> np.ndarray:
        if value is None:
            return self.rng.normal(size=self.width)
        return np.full(self.width, value)

    def episode(
        self,
        length: int,
        terminated: bool = True,
        first: float | None = None,
        rewards: Any = None,
        lane: int = 0,
        both: bool = False,
    ) -> storage.EpisodeRecord:
        """One episode; observations first, first + 1, … or random, rewards given or random."""
        rewards = self.rng.normal(size=length) if rewards is None else np.full(length, rewards)
        seen = [self.observation(None if first is None else first + t) for t in range(length + 1)]
        self.writer.begin(lane, seen[0])
        record = None
        for t in range(length):
            last = t == length - 1
            raw = self.rng.normal(size=2).astype(np.float32)
            record = self.writer.step(
                lane,
                action=np.clip(raw, -1, 1),
                raw_action=raw,
                behaviour=np.array([0, 0, 1, 1], np.float32),
                behaviour_kind=1,
                reward=float(rewards[t]),
                observation=seen[t + 1],
                terminated=last and (terminated or both),
                truncated=last and (not terminated or both),
            )
        assert record is not None
        for t in range(length + 1):
            self.observations[record.segment, record.start + t] = seen[t]
            if t < length:
                identity = (record.segment, record.start + t)
                self.rewards[identity] = float(rewards[t])
                self.terminal[identity] = t == length - 1 and (terminated or both)
        self.episodes.append(record)
        return record

    def view(self, window: int = 10_000, **options: Any) -> ReplayView:
        """A view of what was written so far, gamma 0.9."""
        return ReplayView(self.store, window=window, **{"discount": GAMMA, **options})

    def close(self) -> None:
        self.writer.close()
        self.store.close()


def drawn_rows(view: ReplayView, size: int, rounds: int) -> list[list[int]]:
    """Rows of some batches; importable, so that other processes can run it."""
    return [view.sample(size).row.tolist() for _ in range(rounds)]
