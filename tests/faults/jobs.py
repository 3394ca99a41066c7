"""What forked children do until somebody stops them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import storage
from storage.retention import drop, droppable
from storage.writer import Writer
from tests.storage.zoo import Tiny, play, tiny_spec

__all__ = ["DRIFT", "command", "go_back", "train_words", "warm", "write"]

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
        assert main(train_words(800)) == 0


def write(
    path: str,
    told: str,
    base: int,
    lanes: int,
    options: dict[str, Any],
    pause: float = 0.0,
    group: int = 0,
) -> None:
    """Write Tiny episodes, lanes in turn, and tell of each that was committed by one write(2).

    Episodes count from ``base``; ``options`` are the writer's; ``pause`` is in seconds an episode.
    With a ``group``, so many are told of at once, after a sync.
    """
    tell = Teller(told, group)
    store = storage.open(path, mode="r+")
    tell({"began": True})
    with store.writer(lanes=lanes, **options) as writer:
        tell.sync = writer.sync
        episodes, steps = [base] * lanes, [0] * lanes
        while True:
            for lane in range(lanes):
                steps[lane] = _step(writer, lane, episodes[lane], steps[lane], tell)
                if steps[lane] == 0:
                    episodes[lane] += 1
                    time.sleep(pause)


def go_back(path: str, base: int) -> None:
    """Again and again a run that goes back to a position, plays on, and drops what it sealed."""
    for episode in count(base, 40):
        run = f"back{episode}"
        with storage.open(path, mode="r+") as store:
            with store.writer(run=run, row_budget=40) as writer:
                _play_some(writer, episode)
                position = writer.position()
                _play_some(writer, episode + 10)
            storage.rewind(store, position, run)
            with store.writer(run=run, row_budget=40, continue_from=position) as writer:
                _play_some(writer, episode + 20)
            store.refresh()
            drop(store, droppable(store, (), (), run))


def _play_some(writer: Writer, first: int) -> None:
    for episode in range(first, first + 10):
        play(writer, 0, episode)
        time.sleep(0.002)


def _step(writer: Writer, lane: int, episode: int, t: int, tell: Teller) -> int:
    """One step; the number of the next, 0 after the last."""
    tiny = Tiny(lane, episode)
    if t == 0:
        writer.begin(lane, tiny.observation(0), seed=episode, lane_episode=episode)
    record = writer.step(lane, **tiny.step(t))
    if record is None:
        return t + 1
    known = {name: int(getattr(record, name)) for name in ("segment", "start", "length")}
    tell(known | {"lane": lane, "episode": episode})
    return 0


class Teller:
    """Lines in a file, each by one write(2), which outlives the process that wrote it."""

    def __init__(self, told: str, group: int) -> None:
        self._file = os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._group = group
        self._waiting: list[str] = []
        self.sync: Callable[[], None] | None = None

    def __call__(self, known: dict[str, Any]) -> None:
        self._waiting.append(json.dumps(known) + "\n")
        if self.sync is None or len(self._waiting) >= self._group:
            if self.sync is not None and self._group:
                self.sync()
            os.write(self._file, "".join(self._waiting).encode())
            self._waiting.clear()
