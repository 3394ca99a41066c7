"""Drawing stacks of frames, stored one frame a step, beside a bare copy of as many bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from gymnasium.spaces import Box, Discrete

import storage
from bench.bare_gather import BareGather
from bench.cheetah import EPISODE
from bench.effort import Effort
from bench.figure import Figure
from bench.own_buffer import FIELDS
from bench.sampling import touch_pages
from bench.timing import alternate, microseconds
from storage.environment_spec import EnvironmentSpec
from storage.store import Store

__all__ = ["frame_store", "measure"]

SIDE: Final = 84
STACK: Final = 4
_STEPS = 60_000
_BATCH = 32
_TARGET = 1.3


def measure(folder: Path, effort: Effort) -> list[Figure]:
    """A batch's stacks of observations and next observations are five frames a step together.

    The bare copies take five frames each time, too, in one piece: out of the store's own map, and
    out of memory, which the system may keep in larger pages than those of files.
    """
    with (
        frame_store(folder / "store", _STEPS) as store,
        store.replay(window=_STEPS, seed=0, fields=FIELDS) as view,
    ):
        touch_pages(view)
        width = (STACK + 1) * SIDE * SIDE
        frames = store.segment(0).array("observation")
        runs = frames[: len(frames) // (STACK + 1) * (STACK + 1)].reshape(-1, width)
        mapped, memory = BareGather(*runs.shape, runs), BareGather(*runs.shape)
        samples = alternate(
            {
                "draw": microseconds(lambda: view.sample(_BATCH)),
                "the same maps": microseconds(lambda: mapped.draw(_BATCH)),
                "memory": microseconds(lambda: memory.draw(_BATCH)),
            },
            effort.repeats(100),
        )
        details = {"window": view.n_steps, "batch": _BATCH, "copied_bytes": width}
        details |= {"stored_bytes": store.schema.row_bytes}
    return [
        Figure.of(
            f"draw a batch of {_BATCH} stacks{title}",
            "µs",
            samples["draw"],
            samples[place],
            f"copying as many bytes out of {place}",
            target=target,
            details=details,
        )
        for title, place, target in (
            ("", "the same maps", _TARGET),
            (", beside memory", "memory", None),
        )
    ]


@contextmanager
def frame_store(path: Path, steps: int) -> Iterator[Store]:
    """A new store of at least so many steps whose observations stack the four newest frames."""
    spec = EnvironmentSpec(
        id="made-up frames",
        observation_space=Box(0, 255, (STACK, SIDE, SIDE), np.uint8),
        action_space=Discrete(6),
        max_episode_steps=EPISODE,
    )
    draw = np.random.default_rng(0)
    shown = draw.integers(0, 256, (STACK + EPISODE, SIDE, SIDE), np.uint8)
    shown[: STACK - 1] = 0
    stacks = [shown[t : t + STACK] for t in range(EPISODE + 1)]
    with storage.create(path, spec, frame_stack=STACK, first_stack_padding="zero") as store:
        with store.writer(lanes=1, row_budget=2 * steps) as writer:
            for _ in range(-(-steps // EPISODE)):
                writer.begin(0, stacks[0], seed=1)
                for t in range(EPISODE):
                    writer.step(
                        0,
                        action=t % 6,
                        reward=0.0,
                        observation=stacks[t + 1],
                        terminated=False,
                        truncated=t == EPISODE - 1,
                    )
        store.refresh()
        yield store
