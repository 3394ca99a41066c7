"""One writer an overlay: a POSIX record lock on a file beside it.

As with segments (see ``lock``), the kernel drops the lock when its process ends, and also when the
process closes any descriptor of the file: those that this process holds are remembered and not
opened again. A child does not inherit the lock of the process that forked it.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import socket
from io import FileIO
from pathlib import Path
from weakref import WeakValueDictionary

from storage.atomic import disk_full_as_error
from storage.containment import open_regular, require_regular
from storage.errors import OverlayInUseError

__all__ = ["OverlayLock"]

_held: WeakValueDictionary[tuple[int, int], OverlayLock] = WeakValueDictionary()
"""(device, inode) of every lock file held by this process, or by its parent before the fork."""


class OverlayLock:
    """A held lock; ``release`` gives it back, and so does the end of the process.

    Raises OverlayInUseError naming who holds it.
    """

    __slots__ = ("__weakref__", "_file", "_key", "path", "pid")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pid = os.getpid()
        if _held_here(path):
            gc.collect()  # a view that nobody refers to any more, but for itself, holds nothing
            if _held_here(path):
                raise _in_use(path, f"this process, {self.pid}")
        with disk_full_as_error(path, 0):
            self._file = FileIO(path, "a+", opener=open_regular)
        self._take()
        status = os.fstat(self._file.fileno())
        self._key = (status.st_dev, status.st_ino)
        _held[self._key] = self

    def _take(self) -> None:
        descriptor = self._file.fileno()
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            owner = json.dumps({"pid": self.pid, "host": socket.gethostname()}).encode()
            with disk_full_as_error(self.path, len(owner)):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, owner, 0)
        except BaseException as error:
            holder = os.pread(descriptor, 4096, 0)
            self._file.close()
            if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EAGAIN):
                raise _in_use(self.path, _holder_words(holder)) from None
            raise

    @property
    def held(self) -> bool:
        """Whether this process holds it; a forked child does not."""
        return not self._file.closed and self.pid == os.getpid()

    def release(self) -> None:
        """Unlock; may be called twice."""
        if not self._file.closed:
            _held.pop(self._key, None)
            self._file.close()


def _held_here(path: Path) -> bool:
    status = require_regular(path)
    holder = _held.get((status.st_dev, status.st_ino)) if status else None
    return holder is not None and holder.pid == os.getpid()


def _holder_words(content: bytes) -> str:
    try:
        owner = json.loads(content)
        return f"process {owner['pid']:d} on host {owner['host'][:100]}"
    except (ValueError, KeyError, TypeError):
        return "a process that did not say which"


def _in_use(path: Path, holder: str) -> OverlayInUseError:
    name = path.name.removesuffix(".lock")
    return OverlayInUseError(
        f"the overlay {name!r} has a writing view already, of {holder} ({path} is locked). Close "
        "that view, give this one another overlay name, or open it with private=True, which keeps "
        "what is fed back in this process"
    )
