from __future__ import annotations

import inspect
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import storage
from storage.commit_log import CommitLog
from storage.errors import (
    CorruptStoreError,
    ReadOnlyStoreError,
)
from storage.replay import ReplayView
from tests.storage.zoo import F4, f4_spec, play, tiny_spec


def test_an_empty_store_can_be_reopened_without_a_network(tmp_path: Path, monkeypatch) -> None:
    """LeRobot: resuming an empty dataset gives a network error."""
    storage.create(tmp_path / "store", f4_spec()).close()

    def refuse(*_: object) -> None:
        raise AssertionError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    store = storage.open(tmp_path / "store", mode="r+")
    assert (store.n_episodes, store.n_steps, store.n_rows, store.segments) == (0, 0, 0, ())
    assert store.episodes.num_rows == 0
    assert store.columns["observation"][:].shape == (0, 1)
    assert store.to_dask()["observation"].shape == (0, 1)
    with store.writer() as writer:
        writer.begin(0, np.zeros(1))
    assert list(store.iterate_episodes()) == []


def test_reading_never_changes_a_byte_and_cannot_write(f4: F4) -> None:
    f4.writer.close()
    before = {p: p.stat().st_mtime_ns for p in f4.path.rglob("*")}
    store = storage.open(f4.path)
    store.columns["reward"][:]
    list(store.iterate_episodes())
    assert store.episodes.num_rows == 4
    with pytest.raises(ReadOnlyStoreError, match=r"mode='r\+'"):
        store.writer()
    with pytest.raises(ReadOnlyStoreError):
        store.overlay("main", mode="r+")
    assert {p: p.stat().st_mtime_ns for p in f4.path.rglob("*")} == before
    with pytest.raises(ValueError, match="read-only"):
        store.segment(0).array("reward")[0] = 5


def test_the_episode_table(f4: F4) -> None:
    table = f4.store.episodes.to_pydict()
    assert table["segment"] == [0, 0, 0]
    assert table["ordinal"] == [0, 1, 2]
    assert table["start"] == [0, 6, 10]
    assert table["length"] == [5, 3, 1]
    assert table["ending"] == ["terminated", "truncated", "terminated"]
    assert table["return"] == [5.0, 3.0, 1.0]
    assert table["seed"] == [0, 100, 200]
    assert table["run"] == ["f4"] * 3
    assert all(b <= e for b, e in zip(table["begin_time"], table["end_time"], strict=True))


def test_a_log_of_another_store_is_named(f4: F4, tmp_path: Path) -> None:
    f4.writer.close()
    other = storage.create(tmp_path / "other", f4_spec())
    log = f4.path / "log/000000.log"
    (other.path / "log/000000.log").write_bytes(log.read_bytes())
    with pytest.raises(CorruptStoreError, match=r"000000\.log belongs to store"):
        storage.open(other.path)


MANY = """
import sys
import storage
store = storage.open(sys.argv[1])
status = open("/proc/self/status").read()
print(store.n_episodes, store.n_steps, status.split("VmHWM:")[1].split()[0])
"""


def test_many_episodes_open_without_a_scan_of_the_rows(tmp_path: Path) -> None:
    """Minari: every load scans all episodes; total_steps wrong. 100,000 episodes."""
    path = tmp_path / "store"
    store = storage.create(path, tiny_spec())
    writer = store.writer(row_budget=10)
    play(writer, 0, 0)
    writer.close()
    log = CommitLog(path / "log/000000.log")
    repeat_records(path / "log/000000.log", log, 100_000)
    out = subprocess.run(
        [sys.executable, "-c", MANY, str(path)], capture_output=True, text=True, check=True
    )
    episodes, steps, peak = out.stdout.split()
    assert int(episodes) == 100_000
    assert int(steps) == 100_000 * log.steps
    assert int(peak) < 200 * 1024


def repeat_records(path: Path, log: CommitLog, count: int) -> None:
    """Give a log ``count`` copies of its first record, one after another."""
    from storage.checksum import crc32c
    from storage.log_record import record_dtype

    dtype = record_dtype(len(log.header.columns))
    header = len(log.header.encode())
    first = np.frombuffer(path.read_bytes()[header:], dtype, count=1)
    rows = int(first["length"][0]) + 1
    records = np.repeat(first, count)
    records["sequence"] = records["ordinal"] = np.arange(count)
    records["start"] = rows * np.arange(count)
    data = records.tobytes()
    size = dtype.itemsize
    records["crc"] = [crc32c(data[at : at + size - 4]) for at in range(0, len(data), size)]
    path.write_bytes(path.read_bytes()[:header] + records.tobytes())


def test_import_is_light() -> None:
    code = "import sys, storage; print([m for m in sys.modules if m in sys.argv[1:]])"
    heavy = ["numba", "pyarrow", "zarr", "dask", "xarray", "gymnasium", "torch", "pandas"]
    out = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_few_descriptors(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    before = open_files()
    with store.writer(lanes=8, row_budget=2) as writer:
        for episode in range(13):
            for lane in range(8):
                play(writer, lane, episode)
        for lane in range(8):
            play(writer, lane, 13, steps=0)
        store.refresh()
        assert len(store.segments) > 100
        reader = storage.open(tmp_path / "store")
        for info in reader.segments:
            reader.segment(info.id).array("observation")
        assert open_files() - before <= 2 * 8 + 2  # and what is being settled
    assert open_files() == before


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_store_introduces_itself_in_a_line(f4: F4) -> None:
    size = "9 steps in 3 episodes"
    assert repr(f4.store) == f"<Store {f4.store.path} (r+): {f4.store.env_spec.id}, {size}>"


def test_replay_shows_its_settings_and_hands_them_on(f4: F4) -> None:
    """help(store.replay) is where a newcomer looks; the view's own defaults must agree."""
    own = inspect.signature(f4.store.replay).parameters
    view = inspect.signature(ReplayView).parameters
    assert own.keys() == view.keys() - {"store"}
    assert {name: each.default for name, each in own.items()} == {
        name: view[name].default for name in own
    }
    with f4.store.replay(
        9, seed=5, private=True, fields=["reward"], overlay="mine", reward_scale=2.0, discount=0.5
    ) as made:
        assert (made.reward_scale, made.discount) == (2.0, 0.5)
        drawn = made.sample(4).row.tolist()
        with f4.store.replay(9, seed=5, private=True) as same:
            assert same.sample(4).row.tolist() == drawn
    assert not (f4.store.path / "overlays" / "mine.zarr").exists()
