"""A small game of frames, lives and known episodes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Frames(gymnasium.Env[Any, Any]):
    """Random frames of 6 x 5 pixels; action 0 loses one of three lives, the last one ends it."""

    def __init__(self, longest: int = 9, *, hides_lives: bool = False) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (6, 5), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.longest = longest
        self.hides_lives = hides_lives

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._lives, self._left = 3, self.longest
        return self._frame(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._lives -= int(action == 0)
        self._left -= 1
        return self._frame(), 1.0, self._lives == 0, self._left == 0, self._info()

    def _frame(self) -> np.ndarray:
        return self.np_random.integers(0, 256, (6, 5), np.uint8)

    def _info(self) -> dict[str, Any]:
        return {} if self.hides_lives else {"lives": self._lives}


class StrictFrames(Frames):
    """Declares how a store records it."""

    def __init__(self, longest: int = 9, *, hides_lives: bool = False) -> None:
        from training.environments.recording import Recording

        super().__init__(longest, hides_lives=hides_lives)
        self.recording = Recording(life_loss=True)
