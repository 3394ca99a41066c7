"""One writer a segment: a POSIX record lock on a lock file that is opened once.

The kernel drops the lock when its process ends, however it ends. It also drops it when the process
closes *any* descriptor of the file, so this module remembers the files it holds and never opens
one of them again.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from functools import lru_cache
from pathlib import Path

from storage.atomic import disk_full_as_error
from storage.errors import DiskFullError, SegmentLockedError
from storage.layout import StorePaths

__all__ = ["SegmentLock", "next_segment"]

_held: dict[tuple[int, int], int] = {}
"""(device, inode) of every lock file held, and the process that holds it."""


@lru_cache(maxsize=1)
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _owner() -> bytes:
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "boot": _boot_id()}
    return json.dumps(owner).encode()


def _locked(path: Path, owner: str) -> SegmentLockedError:
    return SegmentLockedError(
        f"another live writer holds {path} ({owner or 'owner unknown'}). Let it finish or stop it; "
        "a new writer without continue_from takes segments of its own."
    )


def next_segment(paths: StorePaths) -> int:
    """The least id above all that were ever claimed."""
    files = [*paths.locks.iterdir(), *paths.logs.iterdir(), *paths.steps.iterdir()]
    taken = [int(file.stem) for file in files if file.stem.isdigit()]
    return max(taken, default=-1) + 1


class SegmentLock:
    """A held lock; ``release`` gives it back, and so does the end of the process."""

    __slots__ = ("_descriptor", "_key", "path", "segment")

    def __init__(self, path: Path, segment: int, descriptor: int) -> None:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(descriptor, 4096, 0).decode(errors="replace")
            os.close(descriptor)
            raise _locked(path, owner) from None
        status = os.fstat(descriptor)
        self.path = path
        self.segment = segment
        self._descriptor = descriptor
        self._key = (status.st_dev, status.st_ino)
        _held[self._key] = os.getpid()
        try:
            with disk_full_as_error(path, len(_owner())):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, _owner(), 0)
        except OSError:
            self.release()
            raise

    @classmethod
    def acquire(cls, paths: StorePaths, segment: int) -> SegmentLock:
        """Lock an existing segment; raises SegmentLockedError naming its live writer."""
        path = paths.lock(segment)
        try:
            status = path.stat()
        except FileNotFoundError:
            status = None
        if status and _held.get((status.st_dev, status.st_ino)) == os.getpid():
            raise _locked(path, f"this process, {os.getpid()}")
        with disk_full_as_error(path, 0):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return cls(path, segment, descriptor)

    @classmethod
    def claim(cls, paths: StorePaths) -> SegmentLock:
        """Take the next free segment id, atomically among all processes, and lock it."""
        segment = next_segment(paths)
        while True:
            path = paths.lock(segment)
            try:
                with disk_full_as_error(path, 0):
                    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                    descriptor = os.open(path, flags, 0o644)
            except FileExistsError:
                segment += 1
                continue
            try:
                return cls(path, segment, descriptor)
            except SegmentLockedError:
                segment += 1
            except DiskFullError:
                path.unlink()
                raise

    def release(self) -> None:
        """Unlock; may be called twice."""
        if self._descriptor >= 0:
            _held.pop(self._key, None)
            os.close(self._descriptor)
            self._descriptor = -1

    def discard(self) -> None:
        """Give the id back as well, for a segment that never came to be."""
        self.path.unlink(missing_ok=True)
        self.release()
