"""Which calls a commit makes, and in which order; that they work is the power cut's business."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import pytest

import storage
from storage import syncing
from storage.errors import ConfigError, DeviceError
from tests.storage.zoo import Tiny, check_tiny, play, tiny_spec


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """What was synced, by the names of the files; everything is really done."""
    seen: list[str] = []
    sync_pages, fdatasync, fsync = syncing.sync_pages, os.fdatasync, os.fsync

    def pages(array, path: Path) -> None:
        if len(array):
            seen.append(f"rows {path.name}")
        sync_pages(array, path)

    def named(descriptor: int) -> str:
        return Path(f"/proc/self/fd/{descriptor}").readlink().name

    monkeypatch.setattr(syncing, "sync_pages", pages)
    monkeypatch.setattr(
        os, "fdatasync", lambda d: (seen.append(f"log {named(d)}"), fdatasync(d))[1]
    )
    monkeypatch.setattr(os, "fsync", lambda d: (seen.append(f"file {named(d)}"), fsync(d))[1])
    return seen


def test_process_syncs_nothing(tmp_path: Path, calls: list[str]) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer() as writer:
        play(writer, 0, 0)
        calls.clear()  # names are given to bytes that the device has: of the store, of each log
        play(writer, 0, 1)
        writer.sync()
        writer.position()
    assert calls == []


def test_rows_come_before_their_record_and_parents_once(tmp_path: Path, calls: list[str]) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    calls.clear()
    with store.writer(durability="fsync") as writer:
        assert calls[:2] == [f"file {tmp_path.name}", "file store"]
        assert {"file steps.zarr", "file log", "file store.json", "file zarr.json"} <= set(calls)
        calls.clear()
        play(writer, 0, 0)
        columns = [f"rows {column.name}" for column in store.schema.columns]
        first_row = calls.index(columns[0])
        made = calls[:first_row]
        assert made[-4].startswith("file 000000.log.")
        assert made[-3:] == ["file steps.zarr", "file log", "file locks"]
        assert "file c.0" in made
        assert calls[first_row:] == [*columns, "log 000000.log"]
        calls.clear()
        record = play(writer, 0, 1)
        assert calls == [*columns, "log 000000.log"]
    check_tiny(store, record)


def test_episodes_wait_for_each_other(tmp_path: Path, calls: list[str]) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(durability="fsync", sync_episodes=3) as writer:
        play(writer, 0, 0)
        calls.clear()
        play(writer, 0, 1)
        assert calls == []
        play(writer, 0, 2)
        assert calls[-1] == "log 000000.log"
        calls.clear()
        play(writer, 0, 3)
        assert calls == []
        writer.sync()
        assert calls[-1] == "log 000000.log"
        calls.clear()
        play(writer, 0, 4)
        writer.position()
        assert calls[-1] == "log 000000.log"


def test_rows_that_an_end_changes_are_synced_again(tmp_path: Path, calls: list[str]) -> None:
    """A position brings open rows to the device; closing the episode then changes the last."""
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(durability="fsync") as writer:
        tiny = Tiny(0, 1)
        writer.begin(0, tiny.observation(0))
        writer.step(0, **tiny.step(0) | {"terminated": False, "truncated": False})
        writer.position()
        calls.clear()
        writer.end(0)
        columns = [f"rows {column.name}" for column in store.schema.columns]
        assert calls == [*columns, "log 000000.log"]


def test_one_that_waited_long_enough_is_synced(tmp_path: Path, calls: list[str]) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    rule = {"durability": "fsync", "sync_episodes": 1000}
    with store.writer(**rule, sync_seconds=1e-9) as writer:
        play(writer, 0, 0)
        calls.clear()
        play(writer, 0, 1)
        assert "log 000000.log" in calls
    with store.writer(**rule, sync_seconds=3600) as writer:
        play(writer, 0, 2)
        calls.clear()
        play(writer, 0, 3)
        assert calls == []


def test_a_seal_is_on_the_device(tmp_path: Path, calls: list[str]) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(durability="fsync", row_budget=1) as writer:
        play(writer, 0, 0)
    assert calls.count("log 000000.log") >= 3  # the episode, what came before the seal, the seal


def test_what_the_device_refused_gets_no_more_episodes(tmp_path: Path, monkeypatch) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer(durability="fsync")
    first = play(writer, 0, 0)

    def broken(array, path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(syncing, "sync_pages", broken)
        with pytest.raises(DeviceError, match=r"device did not take .*000000/observation"):
            play(writer, 0, 1)
    third = play(writer, 0, 2)
    assert (first.segment, third.segment) == (0, 1)
    writer.close()
    assert store.n_episodes == 3  # the second as far as a process can keep it
    assert [info.sealed for info in store.segments] == [False, False]
    check_tiny(store, third)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"durability": "sometimes"}, "choose 'process' or 'fsync'"),
        ({"durability": "fsync", "sync_episodes": 0}, "sync_episodes=0"),
        ({"durability": "fsync", "sync_episodes": True}, "sync_episodes=True"),
        ({"durability": "fsync", "sync_seconds": -1.0}, "sync_seconds=-1.0"),
        ({"durability": "fsync", "sync_seconds": math.nan}, "sync_seconds=nan"),
        ({"sync_episodes": 5}, "settings of durability='fsync'"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, settings: dict, says: str) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    with pytest.raises(ConfigError, match=says):
        store.writer(**settings)
