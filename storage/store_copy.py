"""A second store that shares the column files of the first one, and puts itself in its place."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from storage.containment import require_inside, require_regular

__all__ = ["copy_store", "exchange"]

_EXCHANGE = 2
_AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)


def copy_store(root: Path, new: Path, tell: Callable[[int, int], None]) -> None:
    """Copy a store's folders and files, but link the columns' files, and locks.

    ``tell`` gets how many of them are done, and how many there are. CorruptStoreError for a link,
    or anything else that is no file or folder.
    """
    entries = list(_entries(root))
    for done, place in enumerate(entries):
        source, target = root / place, new / place
        require_inside(root, source)
        if source.is_dir():
            target.mkdir()
        elif require_regular(source) is not None:
            _copy_file(source, target)
        tell(done + 1, len(entries))


def _entries(root: Path) -> Iterator[Path]:
    """Everything of a store, from its root on, each folder before what is in it."""
    waiting = [Path()]
    while waiting:
        place = waiting.pop()
        yield place
        if (root / place).is_dir():
            waiting += [place / name for name in sorted(os.listdir(root / place), reverse=True)]


def _copy_file(source: Path, target: Path) -> None:
    if source.name.startswith("c.0") or source.suffix == ".lock":  # which name themselves
        try:
            os.link(source, target, follow_symlinks=False)
            return
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EXDEV):
                raise
    shutil.copy2(source, target, follow_symlinks=False)


def exchange(first: Path, second: Path) -> bool:
    """Swap two folders at once; False where the file system cannot."""
    names = (os.fsencode(first), os.fsencode(second))
    if not hasattr(_libc, "renameat2"):
        return False
    if _libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), os.fspath(first))
