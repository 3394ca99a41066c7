"""The one way by which small files reach the disk: written beside, then renamed into place."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.containment import open_regular
from storage.errors import DiskFullError

__all__ = ["append_all", "disk_full_as_error", "free_bytes", "write_atomic"]

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_serial = itertools.count()


def free_bytes(path: Path) -> int:
    """Bytes that an ordinary user can still write on the file system of ``path``."""
    while not path.exists():
        path = path.parent
    usage = os.statvfs(path)
    return usage.f_bavail * usage.f_frsize


@contextmanager
def disk_full_as_error(path: Path, needed: int) -> Iterator[None]:
    """Turn "no space left" into a DiskFullError naming the path, the bytes needed and free."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        raise DiskFullError(
            f"disk full: {path} needs {needed:,} more bytes, {free_bytes(path.parent):,} are "
            "free. Every committed episode is intact; free some space and go on, or stop here."
        ) from error


def write_atomic(path: Path, data: bytes, staging: Path, *, sync: bool = False) -> None:
    """Replace the file at ``path`` by ``data`` at once.

    ``staging`` is a folder on the same file system where the bytes are written first, so that no
    reader, ours or foreign, ever meets half a file. With ``sync`` the device has the bytes before
    they get their name: a power cut leaves the old file or the new one, and never an empty one.
    """
    temporary = staging / f"{path.name}.{os.getpid()}.{next(_serial)}"
    with disk_full_as_error(path, len(data)):
        try:
            with open(temporary, "wb", opener=open_regular) as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def append_all(descriptor: int, data: bytes, path: Path) -> None:
    """Append ``data`` by one write(2) to a file that nobody else writes.

    When the disk takes only a part, the file is cut back to its length and DiskFullError is raised.
    """
    end = os.lseek(descriptor, 0, os.SEEK_END)
    with disk_full_as_error(path, len(data)):
        try:
            written = os.write(descriptor, data)
        except OSError:
            os.ftruncate(descriptor, end)
            raise
        if written != len(data):
            os.ftruncate(descriptor, end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
