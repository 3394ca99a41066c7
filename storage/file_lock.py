"""A lock on a file that ends with its process, however that ends.

It is one of the open file description (Linux): unlike a POSIX record lock it outlives other
descriptors of the file that this process opens and closes, as a backup of the folder would. A child
that was forked would share it, so it closes what it inherited at once. A lock that nothing refers
to any more, because an interrupt came before anybody took it, is dropped with its file.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import struct
from io import FileIO
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from storage.atomic import disk_full_as_error
from storage.containment import open_regular, read_regular, require_regular
from storage.errors import CorruptStoreError
from storage.forking import disown_in_children

__all__ = ["FileLock", "LockHeldError", "held_here", "is_locked", "read_owner"]

_FLOCK = struct.Struct("hhlliI")
"""struct flock of 64-bit Linux: type, whence, start, length, pid, and padding."""
_held: WeakValueDictionary[tuple[int, int], FileLock] = WeakValueDictionary()
"""(device, inode) of every file held by this process."""


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
        if mode != "x+" and held_here(path):
            raise LockHeldError(f"this process, {self.pid}")
        while True:
            with disk_full_as_error(path, 0):
                self._file = FileIO(path, mode, opener=open_regular)
            self._lock()
            if self.in_place:
                break
            self._file.close()  # its last holder had given it back with its name
        status = os.fstat(self._file.fileno())
        self._key = (status.st_dev, status.st_ino)
        _held[self._key] = self
        disown_in_children(self)
        self.found: Any = _parsed(os.pread(self._file.fileno(), 4096, 0))
        """What the file said before, as JSON; None where it said nothing."""

    def _lock(self) -> None:
        descriptor = self._file.fileno()
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _asked())
        except OSError as error:
            owner = os.pread(descriptor, 4096, 0)
            self._file.close()
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise LockHeldError(_words(owner)) from None
            raise

    @property
    def in_place(self) -> bool:
        """Whether the file is still there under its name, so that nobody else can lock another."""
        try:
            there, own = self.path.stat(), os.fstat(self._file.fileno())
        except (OSError, ValueError):
            return False
        return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)

    @property
    def identity(self) -> str:
        """Which file this is: a copy of it is another."""
        return f"{self._key[0]}:{self._key[1]}"

    @property
    def held(self) -> bool:
        """Whether this process holds it; a forked child does not."""
        return not self._file.closed and self.pid == os.getpid()

    def sign(self, **more: str) -> None:
        """Write who holds the lock into the file, as JSON; DiskFullError where there is no room."""
        who = {"pid": self.pid, "host": socket.gethostname(), "file": self.identity}
        owner = json.dumps(who | more).encode()
        with disk_full_as_error(self.path, len(owner)):
            os.ftruncate(self._file.fileno(), 0)
            os.pwrite(self._file.fileno(), owner, 0)

    def disown(self) -> None:
        """Close in a child what its parent holds: the lock is the parent's alone."""
        self.release()

    def release(self) -> None:
        """Unlock; may be called twice."""
        if not self._file.closed:
            _held.pop(self._key, None)
            self._file.close()


def held_here(path: Path) -> bool:
    """Whether this process holds the lock file."""
    status = require_regular(path)
    return status is not None and (status.st_dev, status.st_ino) in _held


def read_owner(path: Path) -> tuple[Any, str]:
    """What a lock file says, as JSON (None where it says nothing), and which file it is."""
    try:
        content, status = read_regular(path), path.stat()
    except (OSError, CorruptStoreError):
        return None, ""
    return _parsed(content), f"{status.st_dev}:{status.st_ino}"


def is_locked(path: Path) -> bool:
    """Whether this or another process of this host holds a lock file; nothing is changed.

    What is not there, or no regular file, nobody holds. Raises OSError where it may not be read.
    """
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError, CorruptStoreError):
        return False
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _asked())
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _asked() -> bytes:
    """An exclusive lock of a whole file, for fcntl."""
    return _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0, 0)


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
