"""How version_1.tar.xz was made. Not run by anything: the archive is what must stay readable.

``python tests/storage/frozen/make_version_1.py ARCHIVE`` at the release of format version 1. A
later version gets a script, an archive and tests of its own.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

import storage
from storage.repairing import repair
from storage.writer import Writer
from tests.storage.frozen import life


def write(writer: Writer, number: int, steps: int, seed: int | None, ending: str | None) -> None:
    first = life.observation(number, 0)
    writer.begin(0, first, seed=seed, lane_episode=number, info=life.info(number, 0))
    for t in range(steps):
        last = ending if t == steps - 1 else None
        writer.step(0, **life.step(number, t, last))


def make(folder: Path) -> Path:
    store = storage.create(folder / "first", life.spec(), info=life.INFO, life_loss=True)
    with store.writer(run="first", capacity=256) as writer:
        write(writer, 1, 6, 0, "terminated")
        write(writer, 2, 4, 2**63 + 5, "truncated")
        write(writer, 3, 5, 33, "truncated")
        write(writer, 4, 3, 44, None)
        shutil.copytree(folder / "first", folder / "died")
    store = storage.open(folder / "died", mode="r+")
    with store.writer(run="second", capacity=256, seal=True) as writer:  # salvages episode 4
        write(writer, 5, 1, None, "terminated")
        write(writer, 6, 5, 66, None)  # cut where the writer closes
    reward = folder / "died/steps.zarr/000000/reward/c.0"
    content = bytearray(reward.read_bytes())
    content[16384 + 8 * 13] ^= 1  # in a row of episode 3
    reward.write_bytes(content)
    repair(folder / "died")
    store = storage.open(folder / "died", mode="r+")
    with store.replay(window=64, scheme="per", overlay="learnt", seed=3) as view:
        batch = view.sample(8)
        numbers = np.arange(8, dtype=np.float32)
        view.feed_back(
            batch,
            priority_error=numbers,
            importance_ratio=numbers,
            value=numbers / 4,
            divergence=numbers / 8,
            far_bound=4.0,
        )
    with store.writer(run="third", capacity=256) as writer:
        write(writer, 7, 2, 77, None)
        shutil.copytree(folder / "died", folder / "version_1")
    owner = json.dumps({"pid": 1, "host": "elsewhere", "boot": "another boot"})
    for lock in (folder / "version_1").rglob("*.lock"):
        lock.write_text(owner)
    return folder / "version_1"


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, tarfile.open(sys.argv[1], "w:xz") as archive:
        archive.add(make(Path(place)), "version_1", filter=_plain)
