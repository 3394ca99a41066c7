"""Episodes of stacked frames, and what an environment shows of them, made slowly and plainly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

import storage
from storage.writer import Writer
from tests.storage.zoo import spec

FRAME = (3, 2)
"""The shape of a test image."""


def naive_stack(frames: Any, t: int, size: int, padding: str) -> np.ndarray:
    """The stack at time t of an episode's frames, one frame at a time."""
    parts = []
    for index in range(t - size + 1, t + 1):
        if index >= 0:
            parts.append(frames[index])
        elif padding == "repeat":
            parts.append(frames[0])
        else:
            parts.append(np.zeros_like(frames[0]))
    return np.stack(parts)


@dataclass
class Stacked:
    """An environment's way of stacking: how many frames, the padding, and how many image keys."""

    size: int = 4
    padding: str = "zero"
    keys: int = 1

    @property
    def names(self) -> list[str]:
        return ["observation"] if self.keys == 1 else ["observation.left", "observation.right"]

    def create(self, path: Any) -> storage.Store:
        image = spaces.Box(0, 255, (self.size, *FRAME), np.uint8)
        seen = image if self.keys == 1 else spaces.Dict({"left": image, "right": image})
        return storage.create(
            path,
            spec(seen, spaces.Discrete(2)),
            frame_stack=self.size,
            first_stack_padding=self.padding,
        )

    def frames(self, episode: int, length: int) -> dict[str, np.ndarray]:
        """Frames [T + 1, …] of an episode by column, none of them zero and no two alike."""
        rng = np.random.default_rng([episode, length])
        return {
            name: rng.integers(1, 256, (length + 1, *FRAME), dtype=np.uint8) for name in self.names
        }

    def shown(self, frames: dict[str, np.ndarray], t: int) -> Any:
        """What the environment shows at time t."""
        stacks = {
            name.removeprefix("observation."): naive_stack(array, t, self.size, self.padding)
            for name, array in frames.items()
        }
        return stacks["observation"] if self.keys == 1 else stacks

    def write(self, writer: Writer, frames: dict[str, np.ndarray], *, terminated: bool) -> Any:
        """Write one whole episode of lane 0; gives its record."""
        length = len(frames[self.names[0]]) - 1
        writer.begin(0, self.shown(frames, 0))
        record = None
        for t in range(length):
            record = writer.step(
                0,
                action=t % 2,
                reward=float(t),
                observation=self.shown(frames, t + 1),
                terminated=terminated and t == length - 1,
                truncated=not terminated and t == length - 1,
            )
        return record


def assert_same(actual: Any, expected: Any) -> None:
    """Arrays, or dicts of arrays, of the same numbers, shapes and dtypes."""
    if isinstance(expected, dict):
        assert set(actual) == set(expected)
        for key, value in expected.items():
            assert_same(actual[key], value)
        return
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected, strict=True)
