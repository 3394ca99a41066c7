from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from storage.errors import CorruptStoreError
from storage.file_lock import FileLock, LockHeldError, held_here, is_locked, read_owner
from storage.layout import StorePaths
from storage.lock import SegmentLock, is_vouched

COUNT_LOCKED = """
import sys
from pathlib import Path
from storage.file_lock import is_locked
print(sum(is_locked(path) for path in Path(sys.argv[1]).iterdir()))
"""


def locked(folder: Path) -> int:
    """How many files of a folder another process finds locked."""
    command = [sys.executable, "-c", COUNT_LOCKED, str(folder)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_a_look_from_another_thread_drops_no_lock(tmp_path: Path) -> None:
    """The kernel drops a lock when its process closes any descriptor of the file."""
    paths = StorePaths(tmp_path)
    for folder in paths.folders():
        folder.mkdir()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for path in paths.locks.iterdir():
                is_locked(path)
                is_vouched(path)

    thread = threading.Thread(target=look)
    thread.start()
    locks = [SegmentLock.claim(paths, i) for i in range(300)]
    done.set()
    thread.join()
    assert locked(paths.locks) == len(locks)


def test_a_child_holds_nothing_and_takes_nothing_away(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    child = os.fork()
    if not child:
        here = held_here(tmp_path / "lock") or lock.held
        os._exit(1 if here else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lock.held
    assert locked(tmp_path) == 1
    with pytest.raises(LockHeldError, match=f"this process, {os.getpid()}"):
        FileLock(tmp_path / "lock")
    lock.release()
    assert locked(tmp_path) == 0


def test_a_backup_from_the_same_process_drops_no_lock(tmp_path: Path) -> None:
    """As a POSIX record lock would be, when any descriptor of the file is closed."""
    (tmp_path / "held").mkdir()
    lock = FileLock(tmp_path / "held/lock")
    shutil.copytree(tmp_path / "held", tmp_path / "copy")
    (tmp_path / "held/lock").read_bytes()
    assert locked(tmp_path / "held") == 1
    assert locked(tmp_path / "copy") == 0
    assert lock.in_place
    (tmp_path / "held/lock").unlink()
    assert not lock.in_place


def test_an_owner_that_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert read_owner(path) == (None, "")
    for content in (b"", b"\xff", b"[" * 5000, b"7"):
        path.write_bytes(content)
        assert read_owner(path)[0] in (None, 7)
        assert not is_vouched(path)


def test_only_regular_files_are_locked(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "lock").symlink_to(tmp_path / "target")
    with pytest.raises(CorruptStoreError, match="symbolic link"):
        FileLock(tmp_path / "lock")
    assert (tmp_path / "target").read_bytes() == b"precious"
