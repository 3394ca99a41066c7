"""After the machine went down: what was not on the disk is not shown, and never passed off."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

import storage
import storage.trust
from storage import segment_writer
from storage.column_file import ColumnFile
from storage.errors import CheckpointError
from storage.lock import is_vouched
from storage.salvage import salvage
from tests.storage.zoo import Tiny, check_tiny, play, tiny_spec


def reboot(path: Path) -> None:
    """Make every lock file one of another boot, as after a reboot."""
    for file in (path / "locks").glob("*.lock"):
        owner = json.loads(file.read_text())
        if owner["boot"] != "checked":
            file.write_text(json.dumps(owner | {"boot": "before"}))


def lose(store: storage.Store, segment: int, column: str, first: int, end: int) -> None:
    """Zero rows of a column, as pages that never reached the disk."""
    log = store.log(segment)
    capacity = log.header.capacity
    folder = store.paths.segment(segment) / column
    file = ColumnFile(folder, store.schema.column(column), capacity)
    file.map(file.allocated(), writable=True)[first:end] = 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer() as writer:
        for episode in range(4):
            play(writer, 0, episode)
    return tmp_path / "store"


def test_lost_rows_are_hidden_after_a_reboot_and_only_then(path: Path, caplog) -> None:
    store = storage.open(path)
    records = store.log(0).records
    lose(store, 0, "observation", int(records["start"][3]), store.n_rows)
    assert storage.open(path).n_episodes == 4  # within one boot the page cache has everything
    reboot(path)
    with caplog.at_level(logging.WARNING):
        reader = storage.open(path)
    assert "1 episodes of segment 000000 are not shown, for their checksums differ" in caplog.text
    assert "did not reach the disk before the machine went down, or a copy" in caplog.text
    assert reader.lost_episodes == {0: 1}
    assert reader.n_episodes == 3
    assert reader.n_steps == int(records["length"][:3].sum())
    for index in range(3):
        check_tiny(reader, reader.episode(index).record)
    with reader.replay(10**6, private=True) as view:
        assert view.n_episodes == 3


def test_a_writer_vouches_for_what_it_found(path: Path) -> None:
    reboot(path)
    assert not is_vouched(path / "locks/000000.lock")
    report = salvage(storage.open(path, mode="r+"))
    assert report.lost_episodes == 0
    assert is_vouched(path / "locks/000000.lock")


def test_a_writer_does_not_vouch_for_what_is_gone(path: Path) -> None:
    store = storage.open(path)
    lose(store, 0, "reward", 0, 2)
    reboot(path)
    report = salvage(storage.open(path, mode="r+"))
    assert report.lost_episodes == 1
    assert not is_vouched(path / "locks/000000.lock")
    assert storage.open(path).n_episodes == 3


def test_an_episode_open_at_the_reboot_is_not_salvaged(tmp_path: Path, caplog) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer()
    play(writer, 0, 0)
    tiny = Tiny(0, 9)
    writer.begin(0, tiny.observation(0))
    writer.step(0, **tiny.step(0) | {"terminated": False, "truncated": False})
    writer._lanes[0].segment.release()
    reboot(tmp_path / "store")
    with caplog.at_level(logging.WARNING):
        report = salvage(storage.open(tmp_path / "store", mode="r+"))
    assert report.episodes == ()
    assert "1 steps of an open episode are not kept" in caplog.text
    assert salvage(storage.open(tmp_path / "store", mode="r+")).episodes == ()
    assert storage.open(tmp_path / "store").n_episodes == 1


def test_an_empty_lock_file_vouches_for_nothing(path: Path) -> None:
    """After a power cut its name may be there and its content not."""
    lose(storage.open(path), 0, "reward", 0, 2)
    (path / "locks/000000.lock").write_bytes(b"")
    assert storage.open(path).n_episodes == 3
    assert salvage(storage.open(path, mode="r+")).lost_episodes == 1


def test_a_sealed_segment_is_on_the_disk_and_not_looked_at(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(segment_writer, "_WORTH_SYNCING", 0)
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(row_budget=1, seal=True) as writer:
        for episode in range(3):
            play(writer, 0, episode)
    reboot(tmp_path / "store")
    for segment in range(3):
        assert is_vouched(tmp_path / f"store/locks/{segment:06d}.lock")
        lose(store, segment, "reward", 0, 1)
    assert storage.open(tmp_path / "store").lost_episodes == {}  # verify's business


def test_a_sealed_segment_that_nobody_vouches_for_is_looked_at(tmp_path: Path, monkeypatch) -> None:
    """The machine went down between the seal and the disk; clocks have no say in it."""
    monkeypatch.setattr(segment_writer, "_WORTH_SYNCING", 0)
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(row_budget=1, seal=True) as writer:
        for episode in range(3):
            play(writer, 0, episode)
    (tmp_path / "store/locks/000001.lock").write_text('{"boot": "before"}')
    (tmp_path / "store/locks/000002.lock").unlink()  # a copy without locks is trusted
    for segment in range(3):
        lose(store, segment, "reward", 0, 1)
    assert storage.open(tmp_path / "store").lost_episodes == {1: 1}
    assert salvage(storage.open(tmp_path / "store", mode="r+")).lost_episodes == 1
    assert not is_vouched(tmp_path / "store/locks/000001.lock")


def test_a_copy_made_while_it_was_written_vouches_for_nothing(tmp_path: Path) -> None:
    """Its rows may be older than its log, or than the byte that says that they are whole."""
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer()
    play(writer, 0, 0)
    tiny = Tiny(0, 9)
    writer.begin(0, tiny.observation(0))
    writer.step(0, **tiny.step(0) | {"terminated": False, "truncated": False})
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    writer.close()
    assert is_vouched(tmp_path / "store/locks/000000.lock")
    assert not is_vouched(tmp_path / "copy/locks/000000.lock")
    assert salvage(storage.open(tmp_path / "copy", mode="r+")).episodes == ()
    assert storage.open(tmp_path / "copy").n_episodes == 1


def test_a_position_over_lost_rows_is_refused(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer(run="run")
    play(writer, 0, 0)
    position = writer.position()
    writer.close()
    lose(store, 0, "reward", 0, 1)
    reboot(tmp_path / "store")
    with pytest.raises(CheckpointError, match=r"episode 0 of .*000000\.log.* fails its checksums"):
        storage.rewind(storage.open(tmp_path / "store", mode="r+"), position, "run")


def test_open_rows_that_changed_are_refused(tmp_path: Path) -> None:
    store = storage.create(tmp_path / "store", tiny_spec())
    writer = store.writer(run="run")
    tiny = Tiny(0, 0)
    writer.begin(0, tiny.observation(0))
    writer.step(0, **tiny.step(0) | {"terminated": False, "truncated": False})
    position = writer.position()
    writer.close()
    storage.rewind(store, position, "run")
    lose(store, 0, "observation", 1, 2)
    with pytest.raises(CheckpointError, match="the 1 rows of the open episode in segment 0"):
        store.writer(run="run", continue_from=position)


def test_going_on_in_a_copy_with_a_changed_byte_blames_no_machine(tmp_path: Path) -> None:
    """Nobody knows which it was: all that it may have been is named."""
    store = storage.create(tmp_path / "store", tiny_spec())
    with store.writer(run="r") as writer:
        for episode in range(3):
            play(writer, 0, episode)
        position = writer.position()
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    copy = storage.open(tmp_path / "copy", mode="r+")
    lose(copy, 0, "reward", 0, 1)
    told = r"rows were changed, or did not reach the disk before the machine went down, or a copy"
    with pytest.raises(CheckpointError, match=told):
        storage.rewind(storage.open(tmp_path / "copy", mode="r+"), position, "r")


@pytest.mark.parametrize("left", ["folder", "nothing"])
def test_a_segment_that_is_dropped_while_it_is_looked_at_is_not_there(
    path: Path, monkeypatch, left: str
) -> None:
    """A drop takes the log first, then the rows."""
    reboot(path)
    read = storage.trust.failing_episodes

    def meanwhile(paths, schema, log):
        paths.log(0).rename(path / "taken")
        if left == "nothing":
            shutil.rmtree(paths.segment(0))
            raise FileNotFoundError(paths.segment(0))
        return [*read(paths, schema, log), 0]

    monkeypatch.setattr(storage.trust, "failing_episodes", meanwhile)
    store = storage.open(path)
    assert store.lost_episodes == {}
    store.refresh()
    assert (store.segments, store.n_episodes) == ((), 0)
