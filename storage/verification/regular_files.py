"""Files opened only if they are regular ones: a store may come from anywhere."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from storage.containment import kind_of, open_regular
from storage.errors import CorruptStoreError

__all__ = ["open_for_reading", "read_file"]


def open_for_reading(path: Path) -> int:
    """A descriptor of a regular file; OSError, too, for a link, a pipe or anything else."""
    if path.parent.is_symlink():
        raise OSError(errno.ELOOP, "its folder is a symbolic link", str(path))
    try:
        return open_regular(path, os.O_RDONLY)
    except CorruptStoreError:
        kind = kind_of(path.lstat().st_mode) or "no regular file"
        raise OSError(errno.EINVAL, f"it is {kind}", str(path)) from None


def read_file(path: Path) -> bytes:
    """The content of a regular file. Raises OSError."""
    descriptor = open_for_reading(path)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()
