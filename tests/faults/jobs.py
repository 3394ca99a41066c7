"""What forked children do until somebody stops them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import storage
from storage.writer import Writer
from tests.storage.zoo import Tiny, play, tiny_spec

__all__ = ["DRIFT", "command", "train_words", "warm", "write"]

DRIFT = "tests.training.zoo.make_drift"
"""Episodes of 5 to 11 steps, which follow from their reset seeds."""


def train_words(steps: int, *more: str) -> list[str]:
    """The cheapest run that does all that a run does; checkpoints come every few milliseconds."""
    return [
        "train",
        "--name=run",
        f"--environment.id={DRIFT}",
        "--agent.hidden=[8, 8]",
        "--agent.batch_size=16",
        "--replay.window=400",
        f"--loop.steps={steps}",
        "--loop.warmup=64",
        "--loop.round_steps=16",
        "--checkpoint.every_steps=64",
        "--logging.every_steps=32",
        "--logging.tensorboard=false",
        "--evaluation.every_steps=256",
        "--evaluation.episodes=1",
        *more,
    ]


def command(words: list[str]) -> int:
    """The ``sharpwave`` command, as its entry point starts it."""
    from pipeline.cli import main

    sys.argv = ["sharpwave", *words]
    return main()


def warm(folder: str, learning: bool) -> None:
    """Import and compile everything that children will need."""
    store = storage.create(Path(folder) / "store", tiny_spec())
    with store.writer() as writer:
        play(writer, 0, 0)
    _ = store.episodes
    if learning:
        from pipeline.cli import main

        os.chdir(folder)
        assert main(["collect", DRIFT, "--steps=50", "--store=collected"]) == 0
        assert main(train_words(160)) == 0


def write(path: str, told: str, base: int, lanes: int, options: dict[str, Any]) -> None:
    """Write Tiny episodes, lanes in turn, and tell of each that was committed by one write(2).

    Episodes count from ``base``; ``options`` are the writer's.
    """
    tell = os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    store = storage.open(path, mode="r+")
    os.write(tell, b'{"began": true}\n')
    with store.writer(lanes=lanes, **options) as writer:
        episodes, steps = [base] * lanes, [0] * lanes
        while True:
            for lane in range(lanes):
                steps[lane] = _step(writer, lane, episodes[lane], steps[lane], tell)
                episodes[lane] += steps[lane] == 0


def _step(writer: Writer, lane: int, episode: int, t: int, tell: int) -> int:
    """One step; the number of the next, 0 after the last."""
    tiny = Tiny(lane, episode)
    if t == 0:
        writer.begin(lane, tiny.observation(0), seed=episode, lane_episode=episode)
    record = writer.step(lane, **tiny.step(t))
    if record is None:
        return t + 1
    known = {name: int(getattr(record, name)) for name in ("segment", "start", "length")}
    os.write(tell, (json.dumps(known | {"lane": lane, "episode": episode}) + "\n").encode())
    return 0
