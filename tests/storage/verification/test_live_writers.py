from __future__ import annotations

import multiprocessing
import subprocess
from pathlib import Path

import pytest

import storage
from storage.errors import SegmentLockedError
from storage.layout import StorePaths
from storage.verification.live_writers import has_live_writer
from tests.storage.endless_writer import write_until_killed
from tests.storage.zoo import play, tiny_spec


def test_a_writer_of_this_process_is_seen_and_keeps_its_lock(tmp_path: Path) -> None:
    """Opening and closing its lock file here would drop the lock without a word."""
    with storage.create(tmp_path / "s", tiny_spec()) as store:
        writer = store.writer()
        play(writer, 0, 1, steps=1)
        paths = StorePaths(store.path)
        assert has_live_writer(paths, 0)
        assert storage.verify(store.path).findings == ()
        assert _acquire_elsewhere(store.path) == "locked"
        writer.close()
        assert not has_live_writer(paths, 0)
        assert not has_live_writer(paths, 7)
        assert _acquire_elsewhere(store.path) == "free"


def _acquire_elsewhere(path: Path) -> str:
    context = multiprocessing.get_context("spawn")
    mine, yours = context.Pipe()
    process = context.Process(target=_acquire, args=(path, yours))
    process.start()
    answer = mine.recv()
    process.join()
    return str(answer)


def _acquire(path: Path, tell) -> None:
    from storage.lock import SegmentLock

    try:
        SegmentLock.acquire(StorePaths(path), 0).release()
        tell.send("free")
    except SegmentLockedError:
        tell.send("locked")


def test_verify_beside_a_busy_writer_finds_nothing(tmp_path: Path) -> None:
    """Episodes of few steps in small segments: it commits, publishes and seals all the time."""
    path = tmp_path / "s"
    storage.create(path, tiny_spec()).close()
    context = multiprocessing.get_context("spawn")
    mine, yours = context.Pipe()
    process = context.Process(target=write_until_killed, args=(path, yours, 3), daemon=True)
    process.start()
    try:
        reports = []
        for _ in range(12):
            mine.recv()
            reports.append(storage.verify(path))
            while mine.poll():
                mine.recv()
        assert [report.findings for report in reports] == [()] * 12
        assert reports[-1].episodes > reports[0].episodes
        assert reports[-1].live_segments >= 1
    finally:
        process.kill()
        process.join()
    report = storage.verify(path)
    assert report.errors == report.warnings == ()
    assert {each.kind for each in report.notes} <= {"open-episode", "staging"}


def test_a_read_only_file_system_is_no_obstacle(tmp_path: Path) -> None:
    with storage.create(tmp_path / "s", tiny_spec()) as store, store.writer() as writer:
        play(writer, 0, 1)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for command in (["--bind", str(tmp_path / "s")], ["-o", "remount,ro,bind"]):
        done = subprocess.run(["mount", *command, str(mounted)], check=False, capture_output=True)
        if done.returncode:
            pytest.skip(f"mounting is not allowed here: {done.stderr.decode().strip()}")
    try:
        assert storage.verify(mounted).findings == ()
        with pytest.raises(OSError, match="Read-only"):
            (mounted / "x").touch()
    finally:
        subprocess.run(["umount", "-l", str(mounted)], check=True)


def test_a_rewind_between_two_reads_of_a_segment_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata was read before it, the log behind it, and nobody holds the lock afterwards."""
    from storage.verification import segment

    with storage.create(tmp_path / "s", tiny_spec()) as store:
        with store.writer(run="a") as writer:
            play(writer, 0, 0)
            position = writer.position()
            play(writer, 0, 1)
            play(writer, 0, 2)
        read_log = segment.read_log
        looks = []

        def late(*args):
            looks.append(args)
            if len(looks) == 1:
                storage.rewind(store, position, "a")
            return read_log(*args)

        monkeypatch.setattr(segment, "read_log", late)
        report = storage.verify(tmp_path / "s")
    assert report.errors == report.warnings == ()
    assert report.episodes == 1
    assert len(looks) == 2
