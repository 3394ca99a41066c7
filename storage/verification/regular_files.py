"""Files opened only if they are regular ones: a store may come from anywhere.

What cannot be read is damaged only where the device says so, or where something else is in its
place. A missing permission, or a process that may open no more files, says nothing about the file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.containment import kind_of, open_regular
from storage.description import LARGEST_METADATA
from storage.errors import CorruptStoreError

__all__ = ["CannotJudgeError", "judging", "names_in", "open_for_reading", "read_file"]

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_DAMAGE = _ABSENT | {errno.EIO, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.EFBIG, None}
"""What an OSError says that blames the file; None is for our own."""


class CannotJudgeError(Exception):
    """Nobody knows whether ``path`` is sound, for it could not be read.

    No OSError, so that nothing that takes those for damage takes this for it.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} cannot be read: {why}")
        self.path = path
        self.why = why


@contextmanager
def judging(path: Path) -> Iterator[None]:
    """Turn an OSError that is no fault of the file into a CannotJudgeError."""
    try:
        yield
    except OSError as error:
        if error.errno in _DAMAGE:
            raise
        raise CannotJudgeError(path, error.strerror or "no reason was given") from error


def names_in(folder: Path) -> list[str]:
    """What a folder holds; nothing where there is none. Raises CannotJudgeError."""
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        if error.errno in _ABSENT:
            return []
        raise CannotJudgeError(folder, error.strerror or "no reason was given") from error


def open_for_reading(path: Path) -> int:
    """A descriptor of a regular file; OSError, too, for a link, a pipe or anything else.

    Raises CannotJudgeError where the file is not to blame.
    """
    with judging(path):
        if path.parent.is_symlink():
            raise OSError(errno.ELOOP, "its folder is a symbolic link", str(path))
        try:
            return open_regular(path, os.O_RDONLY)
        except CorruptStoreError:
            kind = kind_of(path.lstat().st_mode) or "no regular file"
            raise OSError(errno.EINVAL, f"it is {kind}", str(path)) from None


def read_file(path: Path, limit: int = LARGEST_METADATA) -> bytes:
    """The content of a regular file.

    Raises OSError, also for one of more than ``limit`` bytes, which is not read, and
    CannotJudgeError.
    """
    descriptor = open_for_reading(path)
    with judging(path), os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > limit:
            what = f"it has {size:,} bytes, and no such file has more than {limit:,}"
            raise OSError(errno.EFBIG, what, str(path))
        return file.read(size)
