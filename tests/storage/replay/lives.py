"""Real stores whose episodes lose lives, for the tests of priorities that decay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

import storage
from storage.replay import ReplayView
from tests.storage.replay.priority_model import Lived


class Lives:
    """Writes episodes and remembers at which of their steps a life was lost."""

    def __init__(self, path: Path, *, life_loss: bool = True, **writing: Any) -> None:
        spec = storage.EnvironmentSpec(
            id="Toy-v0",
            observation_space=spaces.Box(-np.inf, np.inf, (1,), np.float64),
            action_space=spaces.Discrete(2),
        )
        self.life_loss = life_loss
        self.store = storage.create(path, spec, life_loss=life_loss)
        self.writer = self.store.writer(**writing)

    def episode(self, lost: Sequence[bool]) -> tuple[storage.EpisodeRecord, Lived]:
        """One episode of as many steps as there are flags."""
        self.writer.begin(0, np.zeros(1))
        record = None
        for t, flag in enumerate(lost):
            extra = {"life_lost": bool(flag)} if self.life_loss else {}
            record = self.writer.step(
                0,
                action=0,
                reward=0.0,
                observation=np.zeros(1),
                terminated=t == len(lost) - 1,
                truncated=False,
                **extra,
            )
        assert record is not None
        return record, Lived(record.segment, record.start, [bool(flag) for flag in lost])

    def view(self, window: int = 10_000, **options: Any) -> ReplayView:
        return ReplayView(self.store, window=window, **{"scheme": "pser", **options})

    def close(self) -> None:
        self.writer.close()
        self.store.close()
