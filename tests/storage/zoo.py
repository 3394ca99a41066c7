"""Deterministic episodes and a zoo of spaces for the storage tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

import storage
from storage.writer import Writer

F4_GAMMA = 0.9


def spec(observation: Any, action: Any, **more: Any) -> storage.EnvironmentSpec:
    return storage.EnvironmentSpec("Zoo-v0", observation, action, **more)


def cheetah_spec(**more: Any) -> storage.EnvironmentSpec:
    """The spaces of HalfCheetah."""
    return spec(
        spaces.Box(-np.inf, np.inf, (17,), np.float64), spaces.Box(-1, 1, (6,), np.float32), **more
    )


def f4_spec() -> storage.EnvironmentSpec:
    return spec(spaces.Box(-np.inf, np.inf, (1,), np.float64), spaces.Discrete(16))


@dataclass
class Tiny:
    """A one-number environment whose episodes follow from (lane, episode)."""

    lane: int
    episode: int

    @property
    def length(self) -> int:
        return 1 + (7 * self.lane + 5 * self.episode) % 9

    @property
    def terminated(self) -> bool:
        return (self.lane + self.episode) % 2 == 0

    def observation(self, t: int) -> np.ndarray:
        return np.random.default_rng([self.lane, self.episode, t]).normal(size=3)

    def step(self, t: int) -> dict[str, Any]:
        rng = np.random.default_rng([self.lane, self.episode, t, 1])
        last = t == self.length - 1
        raw = rng.normal(size=2).astype(np.float32)
        return {
            "action": np.clip(raw, -1, 1),
            "raw_action": raw,
            "reward": float(rng.normal()),
            "observation": self.observation(t + 1),
            "terminated": last and self.terminated,
            "truncated": last and not self.terminated,
            "behaviour": rng.uniform(0.1, 1, 4).astype(np.float32),
            "policy_update": 10 * self.episode + t,
        }


def tiny_spec(**more: Any) -> storage.EnvironmentSpec:
    return spec(
        spaces.Box(-np.inf, np.inf, (3,), np.float64), spaces.Box(-1, 1, (2,), np.float32), **more
    )


def play(writer: Writer, lane: int, episode: int, steps: int | None = None) -> Any:
    """Write a Tiny episode (or its first steps); returns its record, None while open."""
    tiny = Tiny(lane, episode)
    writer.begin(lane, tiny.observation(0), seed=episode, lane_episode=episode)
    record = None
    for t in range(tiny.length if steps is None else steps):
        record = writer.step(lane, **tiny.step(t))
    return record


def check_tiny(store: storage.Store, record: Any, steps: int | None = None) -> None:
    """Every value of a committed Tiny episode is what was written."""
    tiny = Tiny(record.lane, record.lane_episode)
    length = tiny.length if steps is None else steps
    assert record.length == length
    rows = slice(record.start, record.start + length + 1)
    columns = {name: store.segment(record.segment).array(name)[rows] for name in store.columns}
    expected = [tiny.step(t) for t in range(length)]
    observations = [tiny.observation(t) for t in range(length + 1)]
    np.testing.assert_array_equal(columns["observation"], observations)
    for name in ("action", "raw_action", "reward", "behaviour", "policy_update"):
        np.testing.assert_array_equal(columns[name][:-1], [step[name] for step in expected])
    assert columns["kind"].tolist() == [1] * length + [2]
    whole = length == tiny.length
    assert columns["terminated"].tolist() == [False] * (length - 1) + [
        whole and tiny.terminated,
        False,
    ]
    assert columns["truncated"].tolist() == [False] * (length - 1) + [
        not (whole and tiny.terminated),
        False,
    ]
    total = 0.0
    for step in expected:
        total += step["reward"]
    assert record.episode_return == total


F4_EPISODES = {"A": (0, 5), "B": (100, 3), "C": (200, 1), "D": (300, 4)}


def write_f4_episode(writer: Writer, name: str) -> Any:
    """Write one episode of the F4 fixture; D stays open."""
    first, steps = F4_EPISODES[name]
    writer.begin(0, np.array([float(first)]), seed=first)
    record = None
    for t in range(steps):
        record = writer.step(
            0,
            action=t,
            reward=1.0,
            observation=np.array([first + t + 1.0]),
            terminated=name in "AC" and t == steps - 1,
            truncated=name == "B" and t == steps - 1,
        )
    return record


@dataclass
class F4:
    """The store of the F4 fixture, its writer still holding D open."""

    path: Path
    store: storage.Store
    writer: Writer


def make_f4(path: Path) -> F4:
    store = storage.create(path, f4_spec())
    writer = store.writer(run="f4", publish_interval=0)
    for name in "ABCD":
        write_f4_episode(writer, name)
    store.refresh()
    return F4(path, store, writer)


SPACES: dict[str, spaces.Space] = {
    "scalar_box": spaces.Box(-2.0, 2.0, (), np.float32),
    "vector_f8": spaces.Box(-np.inf, np.inf, (3,), np.float64),
    "half": spaces.Box(-1, 1, (2, 3), np.float16),
    "image": spaces.Box(0, 255, (6, 5, 3), np.uint8),
    "int8": spaces.Box(-5, 5, (2,), np.int8),
    "uint64": spaces.Box(0, 2**40, (2,), np.uint64),
    "bool_box": spaces.Box(0, 1, (2,), np.bool_),
    "mixed_bounds": spaces.Box(
        np.array([-1, -np.inf, 0], np.float32), np.array([1, 5, np.inf], np.float32)
    ),
    "discrete": spaces.Discrete(5),
    "discrete_start": spaces.Discrete(4, start=-3),
    "multi_discrete": spaces.MultiDiscrete([3, 2, 5]),
    "multi_discrete_2d": spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 1], [0, -2]]),
    "multi_binary": spaces.MultiBinary(4),
    "multi_binary_2d": spaces.MultiBinary((2, 3)),
    "dict": spaces.Dict(
        {
            "arm": spaces.Dict(
                {"angle": spaces.Box(-1, 1, (2, 3), np.float32), "on": spaces.Discrete(2)}
            ),
            "camera": spaces.Box(0, 255, (4, 4), np.uint8),
        }
    ),
    "tuple": spaces.Tuple(
        (spaces.Discrete(3), spaces.Dict({"x": spaces.Box(0, 1, (2,), np.float64)}))
    ),
    "one_leaf_dict": spaces.Dict({"only": spaces.Box(-1, 1, (2,), np.float32)}),
    "stacks": spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (4, 6, 5), np.uint8),
            "depth": spaces.Box(-1, 1, (4,), np.float32),
        }
    ),
}
