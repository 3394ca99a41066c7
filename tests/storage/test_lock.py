from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from storage.errors import SegmentLockedError
from storage.layout import StorePaths
from storage.lock import SegmentLock

HOLD = """
import sys, time
from pathlib import Path
from storage.layout import StorePaths
from storage.lock import SegmentLock
lock = SegmentLock.claim(StorePaths(Path(sys.argv[1])))
print(lock.segment, flush=True)
time.sleep(60)
"""


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    made = StorePaths(tmp_path)
    for folder in made.folders():
        folder.mkdir()
    return made


def test_ids_are_claimed_once_and_never_again(paths: StorePaths) -> None:
    locks = [SegmentLock.claim(paths) for _ in range(3)]
    assert [lock.segment for lock in locks] == [0, 1, 2]
    for lock in locks:
        lock.release()
        lock.release()
    assert SegmentLock.claim(paths).segment == 3


def test_the_same_process_cannot_lock_twice(paths: StorePaths) -> None:
    lock = SegmentLock.claim(paths)
    with pytest.raises(SegmentLockedError, match=f"this process, {os.getpid()}"):
        SegmentLock.acquire(paths, 0)
    lock.release()
    SegmentLock.acquire(paths, 0).release()


def test_another_process_holds_until_it_dies(paths: StorePaths) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(paths.root)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "0\n"
        with pytest.raises(SegmentLockedError) as caught:
            SegmentLock.acquire(paths, 0)
        assert f"process {child.pid} on host " in str(caught.value)
        assert "{" not in str(caught.value)
        owner = json.loads(paths.lock(0).read_text())
        assert owner["pid"] == child.pid
        assert owner["host"]
        assert SegmentLock.claim(paths).segment == 1
    finally:
        child.kill()
        child.wait()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            SegmentLock.acquire(paths, 0).release()
            break
        except SegmentLockedError:
            time.sleep(0.01)
    else:
        pytest.fail("the lock outlived its process")
