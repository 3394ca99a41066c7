from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import storage
from tests.storage.zoo import f4_spec, play, tiny_spec

WRITE = """
import sys, numpy as np, storage
store = storage.open(sys.argv[1], mode="r+")
with store.writer(run=sys.argv[2], publish_interval=3600, row_budget=700) as writer:
    for index in range(1000):
        writer.begin(0, np.array([float(index)]), seed=index)
        writer.step(0, action=1, reward=float(sys.argv[2]), observation=[index + 0.5],
                    terminated=True, truncated=False)
"""


def test_two_processes_append_at_once(tmp_path: Path) -> None:
    """zarr-python: parallel append is unsafe."""
    path = tmp_path / "store"
    storage.create(path, f4_spec())
    children = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(path), name]) for name in ("1", "2")
    ]
    assert [child.wait(timeout=120) for child in children] == [0, 0]
    store = storage.open(path)
    table = store.episodes.to_pandas()
    assert len(table) == 2000
    assert not table.duplicated(["segment", "ordinal"]).any()
    for name in ("1", "2"):
        mine = table[table.run == name]
        assert sorted(mine.seed) == list(range(1000))
        assert (mine["return"] == float(name)).all()
    starts = store.columns["observation"][:][store.columns["kind"][:] == 1][:, 0]
    assert sorted(starts) == sorted(2 * list(range(1000)))


POLL = """
import sys, time, storage
store = storage.open(sys.argv[1])
seen = []
while not seen or seen[-1] < 50:
    store.refresh()
    count = store.n_episodes
    lengths = store.episodes["length"].to_pylist()
    assert len(lengths) == count
    assert len(store.columns["reward"][:]) == sum(lengths) + count
    seen.append(count)
    time.sleep(0.01)
assert seen == sorted(seen), seen
print(len(set(seen)))
"""


def test_a_reader_polls_while_episodes_are_written(tmp_path: Path) -> None:
    """DeepRank, LeRobot: look at data while it is recorded."""
    path = tmp_path / "store"
    store = storage.create(path, tiny_spec())
    reader = subprocess.Popen([sys.executable, "-c", POLL, str(path)], stdout=subprocess.PIPE)
    with store.writer(row_budget=64) as writer:
        for episode in range(50):
            play(writer, 0, episode)
            time.sleep(0.01)
        out, _ = reader.communicate(timeout=60)
    assert reader.returncode == 0
    assert int(out) >= 1
