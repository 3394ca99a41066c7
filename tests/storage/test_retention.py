"""What is dropped, that it can be cut short anywhere, and what stays known of it."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
from storage.errors import (
    CorruptStoreError,
    ReadOnlyStoreError,
    SegmentLockedError,
    WriterStateError,
)
from storage.lock import SegmentLock, next_segment
from storage.retention import (
    drop,
    droppable,
    dropped_episodes,
    dropped_table,
    finish_drops,
    is_dropped,
    orphan_dropped,
)
from storage.writer import Writer
from tests.storage.zoo import Tiny, check_tiny, play, tiny_spec


def grown(path: Path, episodes: int = 12, **options: Any) -> tuple[storage.Store, Writer, list]:
    """A store whose every other episode seals a segment, its writer, and the records."""
    store = storage.create(path, tiny_spec())
    writer = store.writer(**{"run": "own", "row_budget": 10, "capacity": 256, **options})
    records = [play(writer, 0, episode) for episode in range(episodes)]
    store.refresh()
    return store, writer, records


def test_only_sealed_segments_of_the_run_that_nobody_needs_can_go(tmp_path: Path) -> None:
    store, writer, _ = grown(tmp_path / "store")
    other = store.writer(run="other", row_budget=1, capacity=256)
    play(other, 0, 1)
    store.refresh()
    sealed = [each.id for each in store.segments if each.sealed and each.run == "own"]
    assert len(sealed) >= 4
    assert len(sealed) < len(store.segments)
    assert droppable(store, {sealed[-1]}, {sealed[1]}, "own") == [sealed[0], *sealed[2:-1]]
    assert droppable(store, (), (), "nobody") == []
    other.close()
    writer.close()


def test_a_dropped_segment_leaves_its_table_and_its_lock_and_nothing_else(tmp_path: Path) -> None:
    store, writer, records = grown(tmp_path / "store")
    with store.replay(1000, overlay="main") as view:
        view.sample(4)
    gone = [each.id for each in store.segments][:2]
    kept = [each for each in records if each.segment not in gone]
    drop(store, gone)
    left = {
        str(file.relative_to(store.path))
        for file in store.path.rglob("*")
        if any(f"{segment:06d}" in file.name for segment in gone)
    }
    assert left == {
        f"{f}/{s:06d}.{e}" for s in gone for f, e in (("dropped", "arrow"), ("locks", "lock"))
    }
    assert [each.record for each in store.iterate_episodes()] == kept
    for record in kept:
        check_tiny(store, record)
    tables = dropped_episodes(store.paths)
    assert [table["length"].to_pylist() for table in tables] == [
        [each.length for each in records if each.segment == segment] for segment in gone
    ]
    assert next_segment(store.paths) > max(gone)
    writer.close()
    assert store.problems() == []


def test_ids_of_dropped_segments_are_never_used_again(tmp_path: Path) -> None:
    store, writer, _ = grown(tmp_path / "store")
    writer.close()
    ids = [each.id for each in store.segments]
    drop(store, [each.id for each in store.segments if each.sealed])
    with store.writer(run="next") as later:
        record = play(later, 0, 1)
    assert record.segment == max(ids) + 1


def test_an_open_or_unknown_segment_is_refused(tmp_path: Path) -> None:
    store, writer, _ = grown(tmp_path / "store", row_budget=1000)
    with pytest.raises(SegmentLockedError):
        drop(store, [0])  # its writer lives
    writer.close()
    with pytest.raises(WriterStateError, match="not sealed"):
        drop(store, [0])
    with pytest.raises(FileNotFoundError):
        drop(store, [7])
    with pytest.raises(ReadOnlyStoreError):
        drop(storage.open(store.path), [0])


def test_readers_keep_what_they_have_mapped(tmp_path: Path) -> None:
    """A live reader with an overlay of its own goes on, and lets go later, without an error."""
    store, writer, records = grown(tmp_path / "store")
    reader = storage.open(store.path, mode="r+")
    with reader.replay(1000, overlay="reader") as view:
        before = view.read("reward", [0], [records[0].start]).copy()
        drop(store, [0, 1])
        assert view.advance() == 0
        np.testing.assert_array_equal(view.read("reward", [0], [records[0].start]), before)
        assert view.n_steps == sum(each.length for each in records)
        batch = view.sample(16)
        view.feed_back(batch, importance_ratio=np.ones(16, np.float32))
    writer.close()


def test_a_reader_that_opens_just_then_takes_the_segments_that_are_left(tmp_path: Path) -> None:
    store, writer, records = grown(tmp_path / "store")
    reader = storage.open(store.path)
    drop(store, [0])
    left = sum(each.length for each in records if each.segment)
    with reader.replay(1000, private=True) as view:
        assert view.n_steps == left
    writer.close()


def drop_and_die(store: storage.Store, segment: int, after: int) -> bool:
    """Drop in a child that kills itself before its ``after``-th change of a folder; whether it did.

    Changes are renames, links, made and removed folders and files.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    done = itertools.count()

    def mortal(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if next(done) == after:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return wrapped

    for name in ("rename", "link", "mkdir", "unlink", "rmdir"):
        setattr(os, name, mortal(getattr(os, name)))
    drop(store, [segment])
    os._exit(0)


def test_a_drop_cut_short_anywhere_is_finished_or_undone(tmp_path: Path) -> None:
    original, writer, records = grown(tmp_path / "original", 6)
    with original.replay(1000, overlay="main") as view:
        view.sample(4)
    writer.close()
    finished = []
    for after in itertools.count():
        store = storage.open(shutil.copytree(original.path, tmp_path / str(after)), mode="r+")
        died = drop_and_die(store, 0, after)
        finished.append(check_cut_short(store, records))
        if not died:
            break
    assert len(finished) > 15
    assert finished == sorted(finished)  # undone before the log moved, finished after it
    assert not finished[0]


def check_cut_short(store: storage.Store, records: list) -> bool:
    """Nobody sees half of segment 0, and it is put right; whether by finishing the drop."""
    others = [each for each in records if each.segment]
    reader = storage.open(store.path)
    assert [each.record for each in reader.iterate_episodes()] in (records, others)
    assert reader.problems() == []
    finish_drops(store.paths)
    finish_drops(store.paths)
    store.refresh()
    assert list(store.paths.staging.iterdir()) == []
    assert store.problems() == []
    shown = [each.record for each in store.iterate_episodes()]
    tables = dropped_episodes(store.paths)
    if shown == records:
        assert tables == []
        assert store.paths.episode_table(0).exists()
        return False
    assert shown == others
    assert [len(table) for table in tables] == [len(records) - len(others)]
    assert is_dropped(store.paths, 0)
    assert not store.paths.segment(0).exists()
    return True


def test_the_table_is_written_anew_where_it_is_stale_or_cannot_be_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, writer, records = grown(tmp_path / "store")
    writer.close()
    store.paths.episode_table(0).write_bytes(b"torn")
    shutil.copy(store.paths.episode_table(2), store.paths.episode_table(1))

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refused)
    drop(store, [0, 1])
    lengths = [table["length"].to_pylist() for table in dropped_episodes(store.paths)]
    assert lengths == [[r.length for r in records if r.segment == s] for s in (0, 1)]


@pytest.mark.parametrize("damage", [b"", b"no arrow", None])
def test_a_damaged_table_is_named(tmp_path: Path, damage: bytes | None) -> None:
    store, writer, _ = grown(tmp_path / "store", 4)
    writer.close()
    drop(store, [0])
    table = dropped_table(store.paths, 0)
    table.unlink()
    if damage is None:
        table.symlink_to(tmp_path / "elsewhere")
    else:
        table.write_bytes(damage)
    with pytest.raises(CorruptStoreError, match=r"dropped/000000\.arrow"):
        dropped_episodes(store.paths)


def test_a_drop_of_somebody_alive_is_left_to_him(tmp_path: Path) -> None:
    store, writer, _ = grown(tmp_path / "store")
    writer.close()
    folder = store.paths.staging / "000000.dropping"
    folder.mkdir()
    lock = SegmentLock.acquire(store.paths, 0)
    finish_drops(store.paths)
    assert folder.exists()
    lock.release()
    finish_drops(store.paths)
    assert not folder.exists()


def test_going_back_before_a_dropped_segment_forgets_its_episodes(tmp_path: Path) -> None:
    store, writer, records = grown(tmp_path / "store")
    writer.close()
    drop(store, [0, 1])
    orphan_dropped(store.paths, "another run", 0)
    assert len(dropped_episodes(store.paths)) == 2
    orphan_dropped(store.paths, "own", 1)
    assert [int(table["segment"][0].as_py()) for table in dropped_episodes(store.paths)] == [0]
    assert (store.paths.orphans / "000001.000/episodes.arrow").exists()
    assert not store.paths.lock(1).exists()
    assert dropped_table(store.paths, 0).exists()
    assert records


def test_positions_leave_out_what_is_not_retained(tmp_path: Path) -> None:
    """Rewinding to a position after a drop must not ask for the dropped segments."""
    store, writer, records = grown(tmp_path / "store")
    writer.begin(0, Tiny(0, 99).observation(0))
    writer.retain({2})
    position = writer.position()
    written = position.lanes[0].segment
    assert [each.id for each in position.segments] == sorted({2, written})
    writer.abandon(0)
    writer.close()
    drop(store, [0, 1])
    storage.rewind(store, position, "own")
    assert [e.record for e in store.iterate_episodes()] == [r for r in records if r.segment > 1]
