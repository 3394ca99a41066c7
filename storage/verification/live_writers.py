"""Whether a writer holds a segment, found out without changing a byte."""

from __future__ import annotations

from storage.errors import CorruptStoreError
from storage.file_lock import is_locked
from storage.layout import StorePaths
from storage.verification.regular_files import CannotJudgeError

__all__ = ["has_live_writer"]


def has_live_writer(paths: StorePaths, segment: int) -> bool:
    """Whether this or another process of this host has the segment open for writing.

    Raises CannotJudgeError where the lock file may not be looked at.
    """
    path = paths.lock(segment)
    try:
        return not paths.locks.is_symlink() and is_locked(path)
    except CorruptStoreError:  # no regular file: nobody can hold it
        return False
    except OSError as error:
        raise CannotJudgeError(path, error.strerror or "no reason was given") from error
