"""One writer a segment: a POSIX record lock on a lock file that is opened once.

The kernel drops the lock when its process ends, however it ends. It also drops it when the process
closes *any* descriptor of the file, so this module remembers the files it holds and never opens
one of them again. A lock that nothing refers to any more, because an interrupt came before anybody
took it, is dropped with its file.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from storage.atomic import disk_full_as_error
from storage.containment import open_regular, read_regular
from storage.errors import DiskFullError, SegmentLockedError
from storage.layout import StorePaths, segment_id

__all__ = ["SegmentLock", "held_here", "is_vouched", "next_segment"]

_CHECKED: Final = "checked"
"""Stands for the boot in lock files of segments whose rows were found on the disk."""
_held: WeakValueDictionary[tuple[int, int], SegmentLock] = WeakValueDictionary()
"""(device, inode) of every lock file held by this process, or by its parent before the fork."""


@lru_cache(maxsize=1)
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _owner(boot: str) -> bytes:
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "boot": boot}
    return json.dumps(owner).encode()


def _boot_in(content: bytes) -> str:
    """The boot id in a lock file's content; empty where it says none."""
    try:
        return str(json.loads(content)["boot"])
    except (ValueError, KeyError, TypeError):
        return ""


def _owner_words(content: bytes) -> str:
    """Who a lock file says it is held by."""
    try:
        owner = json.loads(content)
        return f"process {owner['pid']} on host {owner['host']}"
    except (ValueError, KeyError, TypeError):
        return "a process that did not say which"


def _locked(path: Path, owner: str) -> SegmentLockedError:
    return SegmentLockedError(
        f"another live writer holds {path}: {owner}. Let it finish or stop it. Only going on from "
        "a position or checkpoint needs this segment; a new run writes segments of its own."
    )


def held_here(path: Path) -> bool:
    """Whether this process holds the lock file, which then must not be opened again."""
    try:
        status = path.stat()
    except OSError:
        return False
    holder = _held.get((status.st_dev, status.st_ino))
    return holder is not None and holder.pid == os.getpid()


def is_vouched(path: Path) -> bool:
    """Whether a lock file says that no row of its segment can have been lost with the machine.

    They were written since it started, or found on the disk after it had been down.
    """
    if held_here(path):
        return True
    try:
        return _boot_in(read_regular(path)) in (_boot_id(), _CHECKED)
    except OSError:
        return False


def next_segment(paths: StorePaths) -> int:
    """The least id above all that were ever claimed."""
    files = [*paths.locks.iterdir(), *paths.logs.iterdir(), *paths.steps.iterdir()]
    taken = [segment_id(file.stem) for file in files]
    return max((segment for segment in taken if segment is not None), default=-1) + 1


class SegmentLock:
    """A held lock; ``release`` gives it back, and so does the end of the process."""

    __slots__ = ("__weakref__", "_file", "_key", "path", "pid", "segment", "vouched")

    def __init__(self, path: Path, segment: int, file: FileIO, *, new: bool) -> None:
        descriptor = file.fileno()
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(descriptor, 4096, 0)
            file.close()
            raise _locked(path, _owner_words(owner)) from None
        status = os.fstat(descriptor)
        self.path = path
        self.segment = segment
        self.pid = os.getpid()
        self._file = file
        self._key = (status.st_dev, status.st_ino)
        _held[self._key] = self
        boot = _boot_id() if new else _boot_in(os.pread(descriptor, 4096, 0))
        self.vouched = boot in (_boot_id(), _CHECKED)
        """Whether no row can have been lost with the machine."""
        try:
            self._sign(boot)
        except BaseException:
            self.release()
            raise

    @classmethod
    def acquire(cls, paths: StorePaths, segment: int) -> SegmentLock:
        """Lock an existing segment; raises SegmentLockedError naming its live writer."""
        path = paths.lock(segment)
        if held_here(path):
            raise _locked(path, f"this process, {os.getpid()}")
        with disk_full_as_error(path, 0):
            file = FileIO(path, "a+", opener=open_regular)
        return cls(path, segment, file, new=False)

    @classmethod
    def claim(cls, paths: StorePaths, first: int | None = None) -> SegmentLock:
        """Take the next free segment id, atomically among all processes, and lock it.

        ``first`` is the least id to try, where the caller knows that all below it were claimed: it
        saves looking through the folders of a store of many segments.
        """
        segment = next_segment(paths) if first is None else first
        while True:
            path = paths.lock(segment)
            try:
                with disk_full_as_error(path, 0):
                    file = FileIO(path, "x+", opener=open_regular)
            except FileExistsError:
                segment += 1
                continue
            try:
                return cls(path, segment, file, new=True)
            except SegmentLockedError:
                segment += 1
            except DiskFullError:
                path.unlink()
                raise

    def vouch(self) -> None:
        """Say that all rows were found on the disk: nobody need look again."""
        if not self.vouched:
            self._sign(_CHECKED)
            self.vouched = True

    def take_up(self) -> None:
        """Say that more rows follow, which the next boot may not find."""
        self._sign(_boot_id())

    def _sign(self, boot: str) -> None:
        owner = _owner(boot)
        with disk_full_as_error(self.path, len(owner)):
            os.ftruncate(self._file.fileno(), 0)
            os.pwrite(self._file.fileno(), owner, 0)

    def release(self) -> None:
        """Unlock; may be called twice."""
        if not self._file.closed:
            _held.pop(self._key, None)
            self._file.close()

    def discard(self) -> None:
        """Give the id back as well, for a segment that never came to be."""
        self.path.unlink(missing_ok=True)
        self.release()
