"""A process that writes Tiny episodes until it is killed, telling of each that was committed."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

import storage
from tests.storage.zoo import Tiny

__all__ = ["write_until_killed"]


def write_until_killed(path: Path, tell: Connection, lanes: int) -> None:
    """Interleave the lanes step by step, so that a kill leaves several episodes open."""
    store = storage.open(path, mode="r+")
    with store.writer(lanes=lanes, run="killed", row_budget=150, publish_interval=0) as writer:
        episodes = [0] * lanes
        steps = [0] * lanes
        while True:
            for lane in range(lanes):
                tiny = Tiny(lane, episodes[lane])
                if steps[lane] == 0:
                    writer.begin(lane, tiny.observation(0), seed=tiny.episode)
                record = writer.step(lane, **tiny.step(steps[lane]))
                steps[lane] += 1
                if record is not None:
                    tell.send(record)
                    episodes[lane] += 1
                    steps[lane] = 0
