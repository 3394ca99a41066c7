"""Appends records to a commit log, one write(2) each."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

from storage.atomic import append_all
from storage.containment import open_regular
from storage.log_record import LogRecord, RecordKind, encode_record

__all__ = ["LogAppender"]


class LogAppender:
    """Appends records to one log; holds the file open, and closes it when it is itself dropped."""

    __slots__ = ("_columns", "_file", "path")

    def __init__(self, path: Path, columns: int) -> None:
        self.path = path
        self._columns = columns
        self._file = FileIO(path, "r+", opener=open_regular)

    def episode(self, record: LogRecord) -> bytes:
        """Commit an episode; what was appended. Raises DiskFullError, the log as it was."""
        data = encode_record(RecordKind.EPISODE, record, self._columns)
        append_all(self._file.fileno(), data, self.path)
        return data

    def seal(self, sequence: int, episodes: int, rows: int, time: int) -> None:
        """Say that the segment gets no more episodes."""
        record = LogRecord(episodes, sequence, rows, 0, 0, 0.0, None, -1, -1, -1, time, time, ())
        data = encode_record(RecordKind.SEAL, record, self._columns)
        append_all(self._file.fileno(), data, self.path)

    def sync(self) -> None:
        """Wait until the device has every record; raises OSError where it cannot take them."""
        os.fdatasync(self._file.fileno())

    @property
    def in_place(self) -> bool:
        """Whether the log is still the file that is open here."""
        try:
            there, own = self.path.stat(), os.fstat(self._file.fileno())
        except (OSError, ValueError):
            return False
        return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)

    def size(self) -> int:
        """Bytes of the log now, unfinished records included; -1 once closed."""
        return -1 if self._file.closed else os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()
