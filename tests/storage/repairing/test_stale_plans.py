"""A plan is made without locks: what others do before the locks are taken must count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import storage
from storage.errors import NotReadableError, SegmentLockedError
from storage.file_lock import FileLock
from storage.layout import StorePaths
from storage.lock import SegmentLock
from tests.storage.damage import Sound, column_file, flip, make_sound, row_at, tree
from tests.storage.zoo import play, tiny_spec

EPISODES = 5


class Resumed:
    """A run of 5 episodes and a position, of which 3 more came after it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with storage.create(path, tiny_spec()) as store, store.writer(run="a") as writer:
            for episode in range(EPISODES):
                play(writer, 0, episode)
            self.position = writer.position()
            for episode in range(EPISODES, EPISODES + 3):
                play(writer, 0, episode)
        self.sound = Sound(path)
        self.done = False

    def resume(self) -> None:
        """Go back to the position and record 10 other episodes, once."""
        if self.done:
            return
        self.done = True
        with storage.open(self.path, "r+") as store:
            storage.rewind(store, self.position, "a")
            with store.writer(run="a", continue_from=self.position) as writer:
                for episode in range(10):
                    play(writer, 0, 100 + episode)

    def require_whole(self, report: storage.RepairReport) -> None:
        assert self.done
        assert report.actions == ()
        assert report.quarantined == ()
        with storage.open(self.path) as store:
            assert store.n_episodes == EPISODES + 10
        assert self.sound.kinds() == set()


def at_first_lock(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen when all is planned, and no lock of a segment is taken yet."""
    acquire = SegmentLock.acquire

    def late(paths: StorePaths, segment: int) -> SegmentLock:
        monkeypatch.setattr(SegmentLock, "acquire", acquire)
        act()
        return acquire(paths, segment)

    monkeypatch.setattr(SegmentLock, "acquire", late)


def test_episodes_of_a_run_that_was_resumed_meanwhile_are_not_taken_out(tmp_path: Path) -> None:
    run = Resumed(tmp_path / "s")
    with storage.open(run.path) as store:
        row = int(store.records(0)["start"][EPISODES + 1])
    reward = column_file(run.sound, 0, "reward").path
    flip(reward, row_at(run.sound, 0, "reward", row))
    run.require_whole(storage.repair(run.path, progress=lambda *_: run.resume()))


def test_a_corrected_log_does_not_replace_one_that_was_cut_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Resumed(tmp_path / "s")
    flip(run.sound.paths.log(0), -60, 2)
    at_first_lock(monkeypatch, run.resume)
    run.require_whole(storage.repair(run.path))


def test_a_file_that_was_restored_meanwhile_costs_no_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = make_sound(tmp_path / "s")
    reward = column_file(sound, 0, "reward").path
    data = reward.read_bytes()
    flip(reward, row_at(sound, 0, "reward", 0))
    at_first_lock(monkeypatch, lambda: reward.write_bytes(data))
    assert storage.repair(sound.path).actions == ()
    assert sound.readable() == set(sound.episodes)


def test_root_metadata_is_not_mended_before_all_locks_are_taken(sound: Sound) -> None:
    flip(column_file(sound, 0, "reward").path, row_at(sound, 0, "reward", 0))
    root = sound.paths.steps / "zarr.json"
    flip(root, 60)
    held: list[Any] = []

    def hold(*_: int) -> None:
        held[:] = held or [SegmentLock.acquire(sound.paths, 0)]

    before = tree(sound.path, "locks")
    with pytest.raises(SegmentLockedError, match="another repair or a writer holds"):
        storage.repair(sound.path, progress=lambda done, of: hold() if done == of else None)
    held[0].release()
    assert tree(sound.path, "locks") == before
    assert len(storage.repair(sound.path).actions) == 2


def test_of_two_repairs_at_once_the_second_says_so(sound: Sound) -> None:
    sound.paths.episode_table(1).write_bytes(b"")
    before = tree(sound.path)
    other = FileLock(sound.paths.locks / "repair.lock")
    with pytest.raises(SegmentLockedError, match=r"another repair .* is at work"):
        storage.repair(sound.path)
    other.release()
    (sound.paths.locks / "repair.lock").unlink()
    assert tree(sound.path) == before
    assert storage.repair(sound.path).actions
    assert not (sound.paths.locks / "repair.lock").exists()


def test_what_may_not_be_read_any_more_under_the_locks_stops_a_repair(
    sound: Sound, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    flip(column_file(sound, 0, "reward").path, row_at(sound, 0, "reward", 0))
    before = tree(sound.path, "locks")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    at_first_lock(monkeypatch, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard)))
    try:
        with pytest.raises(NotReadableError, match="Too many open files"):
            storage.repair(sound.path, workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert tree(sound.path, "locks") == before
