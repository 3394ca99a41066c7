"""A disk that really is full: a small tmpfs, where mounting one is allowed."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import storage
from storage.errors import DiskFullError, ReadOnlyStoreError, WriterStateError
from storage.layout import Ending
from storage.segment_writer import SegmentWriter
from storage.writer import Writer
from tests.storage.zoo import Tiny, check_tiny, cheetah_spec, play, tiny_spec


def fill(folder: Path) -> Path:
    """Take all space that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return filler


def write_until_full(writer: Writer) -> tuple[list, str]:
    rng = np.random.default_rng(0)
    records: list = []
    step = {"reward": 1.0, "terminated": False, "behaviour": np.ones(12), "raw_action": np.ones(6)}

    def write_episode() -> None:
        writer.begin(0, np.zeros(17))
        for t in range(100):
            observation = rng.normal(size=17)
            action = np.full(6, 0.5, np.float32)
            record = writer.step(
                0, observation=observation, action=action, truncated=t == 99, **step
            )
        records.append(record)

    while True:
        try:
            write_episode()
        except DiskFullError as error:
            return records, str(error)


def test_a_full_disk_is_one_error_and_nothing_committed_is_lost(small_disk: Path) -> None:
    """pytorch/rl: pre-allocation kills the process."""
    store = storage.create(small_disk / "store", cheetah_spec())
    writer = store.writer()
    records, message = write_until_full(writer)
    assert len(records) > 50
    assert "disk full" in message
    assert str(small_disk) in message
    assert "more bytes" in message
    assert "are free" in message
    opened = writer.open_episode(0)
    with contextlib.suppress(DiskFullError):  # there may be no room for the published table
        writer.close()
    reader = storage.open(small_disk / "store")
    lengths = reader.episodes["length"].to_pylist()
    assert lengths[: len(records)] == [100] * len(records)
    if opened is not None and opened.steps:
        assert lengths[len(records) :] == [opened.steps]
        assert reader.episode(-1).record.ending is Ending.CUT
    rng = np.random.default_rng(0)
    for episode in reader.iterate_episodes():
        for row in episode.observation[1:]:
            np.testing.assert_array_equal(row, rng.normal(size=17))


def test_the_writer_goes_on_when_there_is_room_again(small_disk: Path) -> None:
    store = storage.create(small_disk / "store", tiny_spec())
    with store.writer() as writer:
        records = [play(writer, 0, 0)]
        tiny = Tiny(0, 1)
        # An episode longer than the first allocation, so that it must grow on a full disk.
        filler = fill(small_disk)
        writer.begin(0, tiny.observation(0))
        done = 0
        step = tiny.step(0) | {"terminated": False, "truncated": False}
        while writer.open_episode(0).start + done + 2 < 1024 + 1:
            writer.step(0, **step)
            done += 1
        for _ in range(2):
            with pytest.raises(DiskFullError):
                writer.step(0, **step)
        assert writer.open_episode(0).steps == done
        filler.unlink()
        for _ in range(500):
            writer.step(0, **step)
        record = writer.end(0)
        assert record.length == done + 500
        records.append(play(writer, 0, 2))
    assert store.n_episodes == 3
    check_tiny(store, records[0])
    check_tiny(store, records[1])


def test_a_log_without_room_keeps_the_episode_pending(small_disk: Path, monkeypatch) -> None:
    store = storage.create(small_disk / "store", tiny_spec())
    with store.writer() as writer:
        first = play(writer, 0, 0)
        write = os.write

        def full(descriptor: int, data: bytes) -> int:
            if Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".log":
                return write(descriptor, data[:7])
            return write(descriptor, data)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(DiskFullError, match=r"000000\.log needs"):
                play(writer, 0, 2)
            with pytest.raises(DiskFullError):
                writer.end(0)
            with pytest.raises(DiskFullError):
                writer.begin(0, np.zeros(3))
            with pytest.raises(WriterStateError):
                writer.step(0, **Tiny(0, 2).step(0))
        second = writer.end(0)
        assert second.ending is Ending.TERMINATED
        third = play(writer, 0, 3)
    for record in (first, second, third):
        check_tiny(store, record)
    assert store.n_episodes == 3


def test_no_room_for_a_segment_leaves_nothing_of_it(small_disk: Path) -> None:
    store = storage.create(small_disk / "store", cheetah_spec())
    filler = fill(small_disk)
    with store.writer() as writer:
        with pytest.raises(DiskFullError, match="free"):
            writer.begin(0, np.zeros(17))
        assert writer.open_episode(0) is None
        left = [p for p in (small_disk / "store").rglob("*") if p.is_file()]
        assert sorted(p.name for p in left) == ["store.json", "zarr.json"]
        filler.unlink()
        writer.begin(0, np.zeros(17))
        assert writer.open_episode(0).segment == 0


def test_no_room_to_publish_loses_nothing(small_disk: Path) -> None:
    store = storage.create(small_disk / "store", tiny_spec())
    writer = store.writer(publish_interval=3600)
    play(writer, 0, 0)
    second = play(writer, 0, 1)
    filler = fill(small_disk)
    with pytest.raises(DiskFullError, match=r"000000\.arrow"):
        writer.publish()
    writer.close()  # which gives back what was allocated ahead, and then has room
    assert store.n_episodes == 2
    check_tiny(store, second)
    table = pa.ipc.open_file(small_disk / "store/episodes/000000.arrow").read_all()
    assert table.equals(store.episodes)
    filler.unlink()
    with store.writer(run="next") as again:
        play(again, 0, 2)
    assert storage.open(small_disk / "store").n_episodes == 3


def test_a_full_disk_does_not_hide_the_error_that_ended_the_run(
    tmp_path: Path, monkeypatch
) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())

    def full(*_: object) -> None:
        raise DiskFullError("disk full: no room")

    def record() -> None:
        with store.writer(publish_interval=3600) as writer:
            play(writer, 0, 0)
            play(writer, 0, 1)
            monkeypatch.setattr(SegmentWriter, "publish", full)
            raise RuntimeError("out of coffee")

    with pytest.raises(RuntimeError, match="out of coffee") as caught:
        record()
    assert any("disk full" in note for note in caught.value.__notes__)
    assert storage.open(tmp_path / "store").n_episodes == 2


def test_no_room_to_create(small_disk: Path) -> None:
    filler = fill(small_disk)
    with pytest.raises(DiskFullError):
        storage.create(small_disk / "store", tiny_spec())
    filler.unlink()
    assert list(small_disk.iterdir()) == []
    storage.create(small_disk / "store", tiny_spec())


def test_a_store_can_be_the_root_of_a_file_system(small_disk: Path) -> None:
    """Nothing can be renamed over a mount point."""
    store = storage.create(small_disk, tiny_spec())
    with store.writer() as writer:
        record = play(writer, 0, 0)
    check_tiny(storage.open(small_disk), record)
    assert not (small_disk / "staging/zarr.json").exists()


def test_a_read_only_file_system_is_one_clear_error(small_disk: Path) -> None:
    storage.create(small_disk / "store", tiny_spec())
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for path in (small_disk / "new", small_disk / "deep/er"):
        with pytest.raises(ReadOnlyStoreError, match=f"cannot create a store at {path}"):
            storage.create(path, tiny_spec())
    with pytest.raises(ReadOnlyStoreError, match=r"file system is read-only.*mode='r'"):
        storage.open(small_disk / "store", mode="r+")
    assert storage.open(small_disk / "store").n_episodes == 0
