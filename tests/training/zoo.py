"""Small environments whose whole behaviour is known."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Counting(gymnasium.Env[Any, Any]):
    """Observation (seed of the episode, step); ends after ``length`` steps; reward = step + 1."""

    def __init__(self, length: int = 3, ending: str = "truncated") -> None:
        self.observation_space = gymnasium.spaces.Box(-1e9, 1e9, (2,), np.float64)
        self.action_space = gymnasium.spaces.Box(-2.0, 10.0, (1,), np.float32)
        self.length = length
        self.ending = ending
        self.actions: list[np.ndarray] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._seed = float(-1 if seed is None else seed % 1_000_000)
        self._step = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.actions.append(np.array(action))
        self._step += 1
        ended = self._step >= self.length
        terminated, truncated = (
            ended and self.ending == "terminated",
            ended and self.ending != "terminated",
        )
        return self._observation(), float(self._step), terminated, truncated, {"at": self._step}

    def _observation(self) -> np.ndarray:
        return np.array([self._seed, self._step], np.float64)


class Drift(gymnasium.Env[Any, Any]):
    """A seeded one-dimensional task: stay near zero. Random start, random length, exact replay."""

    def __init__(self, longest: int = 30) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.longest = longest

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = self.np_random.normal(size=3)
        self._left = int(self.np_random.integers(5, self.longest))
        return self._state.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        push = np.array([action[0], action[1], action[0] - action[1]], np.float64)
        self._state = 0.9 * self._state + 0.3 * push + 0.05 * self.np_random.normal(size=3)
        self._left -= 1
        terminated = bool(np.abs(self._state).max() > 3.0)
        reward = 1.0 - float(self._state @ self._state)
        return self._state.copy(), reward, terminated, self._left <= 0, {}


class Forgetful(Drift):
    """Like :class:`Drift`, but its noise does not follow the reset seed."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, *rest = super().step(action)
        return observation + np.random.default_rng().normal(size=3), *rest


class Alike(gymnasium.Env[Any, Any]):
    """Ends an episode at the tenth change of the action, which nobody who acts greedily makes.

    All observations are alike, the reward is 1, and there is no limit of steps.
    """

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._newest, self._changes = None, 0
        return np.zeros(2), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._changes += self._newest is not None and self._newest != float(action[0])
        self._newest = float(action[0])
        return np.zeros(2), 1.0, self._changes >= 10, False, {}


def make_drift(longest: int = 12) -> Drift:
    return Drift(longest)


gymnasium.register("ZooDrift-v0", entry_point=Drift, max_episode_steps=50)


class LongDrift(Drift):
    """Episodes of at least 45 steps."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        shown = super().reset(seed=seed)
        self._left += 40
        return shown


class TurnsNan(Drift):
    """Shows NaN at its 40th step."""

    def __init__(self) -> None:
        super().__init__()
        self._taken = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._taken += 1
        observation, *rest = super().step(action)
        return (observation * np.nan if self._taken == 40 else observation), *rest


class Choices(gymnasium.Env[Any, Any]):
    """A seeded task with actions 2, 3 and 4: stay near zero. Random start, exact replay."""

    def __init__(self, longest: int = 20) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(3, start=2)
        self.longest = longest

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = self.np_random.normal(size=3)
        self._left = int(self.np_random.integers(5, self.longest))
        return self._shown(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        push = np.roll(np.array([0.4, -0.2, 0.1]), int(action))
        self._state = 0.9 * self._state + push + 0.1 * self.np_random.normal(size=3)
        self._left -= 1
        reward = 2.0 - float(self._state @ self._state)
        terminated = bool(np.abs(self._state).max() > 2.5)
        return self._shown(), reward, terminated, self._left <= 0, {}

    def _shown(self) -> np.ndarray:
        return self._state.copy()


class Pictures(Choices):
    """The same task, shown as two frames of 36 x 36 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Box(0, 255, (2, 36, 36), np.uint8)

    def _shown(self) -> np.ndarray:
        levels = np.clip(128 + 40 * self._state, 0, 255).astype(np.uint8)
        picture = np.zeros((2, 36, 36), np.uint8)
        picture[:, :12], picture[:, 12:24], picture[1, 24:] = levels[0], levels[1], levels[2]
        return picture
