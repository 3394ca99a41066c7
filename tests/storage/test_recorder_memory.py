"""A recorder's memory does not grow with what it has recorded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import numpy as np
from gymnasium import spaces
import storage
from tests.storage.replay.big_store import resident

path, episodes = sys.argv[1], int(sys.argv[2])
box = spaces.Box(0, 255, (84, 84), np.uint8)
store = storage.create(path, storage.EnvironmentSpec("Frames-v0", box, spaces.Discrete(4)))
frame = np.random.default_rng(0).integers(0, 256, (84, 84), dtype=np.uint8)
with store.writer() as writer:
    for episode in range(episodes):
        writer.begin(0, frame)
        for t in range(100):
            ends = {"terminated": t == 99, "truncated": False}
            writer.step(0, action=1, reward=1.0, observation=frame, **ends)
        if episode + 1 in (episodes // 10, episodes):
            print("MARK", resident()[0], flush=True)
"""


@pytest.mark.soak
def test_memory_is_flat_while_recording_frames(tmp_path: Path) -> None:
    """huggingface/lerobot: the recorder keeps all past episodes; 2,000 are 1.4 GB of frames."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "store"), "2000"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    early, late = (int(line.split()[1]) for line in done.stdout.splitlines() if "MARK" in line)
    assert late - early < 8 * 2**20
