"""Draws from a store of frames and prints what memory that took; a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from gymnasium import spaces

import storage

FRAME = (84, 84)
EPISODE = 500


def make_frames(path: Path, steps: int) -> None:
    """A store of random frames, whose pages are on the disk and no longer in memory."""
    box = spaces.Box(0, 255, FRAME, np.uint8)
    store = storage.create(path, storage.EnvironmentSpec("Frames-v0", box, spaces.Discrete(4)))
    frames = np.random.default_rng(0).integers(0, 256, (97, *FRAME), dtype=np.uint8)
    with store.writer(run="frames") as writer:
        for step in range(steps):
            t = step % EPISODE
            if t == 0:
                writer.begin(0, frames[step % 97], seed=step)
            writer.step(
                0,
                action=step % 4,
                reward=float(step),
                observation=frames[(step + 1) % 97],
                terminated=t == EPISODE - 1,
                truncated=False,
            )
    store.close()
    for file in path.rglob("c.*"):
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def resident() -> tuple[int, int]:
    """Anonymous, and file and shared bytes of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return 1024 * int(sizes["RssAnon"]), 1024 * (int(sizes["RssFile"]) + int(sizes["RssShmem"]))


def draw(path: str, batches: int, limit: int | None) -> None:
    """Draw and feed back; prints anonymous bytes early and at the end, and most mapped bytes."""
    with storage.open(path) as store, store.replay(2**40, private=True, page_limit=limit) as view:
        base, most, early = resident()[1], 0, 0
        for number in range(batches):
            batch = view.sample(32)
            view.feed_back(batch, importance_ratio=np.ones(32, np.float32))
            if number == batches // 10:
                early = resident()[0]
            if number % 16 == 0:
                most = max(most, resident()[1] - base)
        print("MARK", early, resident()[0], most, view.n_steps, flush=True)


if __name__ == "__main__":
    draw(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) or None)
