"""Whether a writer holds a segment, found out without changing a byte."""

from __future__ import annotations

import fcntl
import os
import struct

from storage.layout import StorePaths
from storage.lock import held_here
from storage.verification.regular_files import open_for_reading

__all__ = ["has_live_writer"]

_FLOCK = struct.Struct("hhlliI")
"""struct flock of 64-bit Linux: type, whence, start, length, pid, and padding."""


def has_live_writer(paths: StorePaths, segment: int) -> bool:
    """Whether this or another process of this host has the segment open for writing."""
    path = paths.lock(segment)
    if held_here(path):  # opening and closing the file here would drop that lock
        return True
    try:
        descriptor = open_for_reading(path)
    except OSError:
        return False
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
