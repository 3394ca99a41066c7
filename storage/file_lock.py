"""A POSIX record lock on a file that is opened once.

The kernel drops the lock when its process ends, however it ends. It also drops it when the process
closes *any* descriptor of the file, so this module remembers the files it holds and never opens
one of them again, in any thread. A child does not inherit the lock of the process that forked it. A
lock that nothing refers to any more, because an interrupt came before anybody took it, is dropped
with its file.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import struct
import threading
from io import FileIO
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from storage.atomic import disk_full_as_error
from storage.containment import open_regular, read_regular, require_regular
from storage.errors import CorruptStoreError

__all__ = ["FileLock", "LockHeldError", "held_here", "is_locked", "read_owner"]

_FLOCK = struct.Struct("hhlliI")
"""struct flock of 64-bit Linux: type, whence, start, length, pid, and padding."""
_held: WeakValueDictionary[tuple[int, int], FileLock] = WeakValueDictionary()
"""(device, inode) of every file held by this process, or by its parent before the fork."""
_opening = threading.RLock()
"""Held from the look whether a file is held to the closing of its descriptor."""
os.register_at_fork(
    before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_opening.release
)


class LockHeldError(Exception):
    """Somebody holds the file; the text says who."""


class FileLock:
    """A held lock; ``release`` gives it back, and so does the end of the process.

    ``mode`` is "a+" (made where it is not there) or "x+" (must not be there). Raises LockHeldError.
    """

    __slots__ = ("__weakref__", "_file", "_key", "found", "path", "pid")

    def __init__(self, path: Path, mode: str = "a+") -> None:
        self.path = path
        self.pid = os.getpid()
        with _opening:
            if mode != "x+" and held_here(path):
                raise LockHeldError(f"this process, {self.pid}")
            with disk_full_as_error(path, 0):
                self._file = FileIO(path, mode, opener=open_regular)
            self._take()

    def _take(self) -> None:
        descriptor = self._file.fileno()
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(descriptor, 4096, 0)
            self._file.close()
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise LockHeldError(_words(owner)) from None
            raise
        status = os.fstat(descriptor)
        self._key = (status.st_dev, status.st_ino)
        _held[self._key] = self
        self.found: Any = _parsed(os.pread(descriptor, 4096, 0))
        """What the file said before, as JSON; None where it said nothing."""

    @property
    def held(self) -> bool:
        """Whether this process holds it; a forked child does not."""
        return not self._file.closed and self.pid == os.getpid()

    def sign(self, **more: str) -> None:
        """Write who holds the lock into the file, as JSON; DiskFullError where there is no room."""
        owner = json.dumps({"pid": self.pid, "host": socket.gethostname(), **more}).encode()
        with disk_full_as_error(self.path, len(owner)):
            os.ftruncate(self._file.fileno(), 0)
            os.pwrite(self._file.fileno(), owner, 0)

    def release(self) -> None:
        """Unlock; may be called twice."""
        if not self._file.closed:
            _held.pop(self._key, None)
            self._file.close()


def held_here(path: Path) -> bool:
    """Whether this process holds the lock file, which then must not be opened again."""
    status = require_regular(path)
    holder = _held.get((status.st_dev, status.st_ino)) if status else None
    return holder is not None and holder.pid == os.getpid()


def read_owner(path: Path) -> Any:
    """What a lock file that this process does not hold says, as JSON; None where it says nothing.

    Raises LockHeldError where this process holds it.
    """
    with _opening:
        if held_here(path):
            raise LockHeldError(f"this process, {os.getpid()}")
        try:
            return _parsed(read_regular(path))
        except (OSError, CorruptStoreError):
            return None


def is_locked(path: Path) -> bool:
    """Whether this or another process of this host holds a lock file; nothing is changed."""
    with _opening:
        if held_here(path):
            return True
        try:
            descriptor = open_regular(path, os.O_RDONLY)
        except (OSError, CorruptStoreError):
            return False
        try:
            asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0, 0)
            answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
        except OSError:  # a file system without locks
            return False
        finally:
            os.close(descriptor)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _words(content: bytes) -> str:
    """Who a lock file says it is held by."""
    owner = _parsed(content)
    try:
        return f"process {owner['pid']:d} on host {owner['host'][:100]}"
    except (ValueError, KeyError, TypeError):
        return "a process that did not say which"
