"""A segment as readers see it: its log, and maps of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from storage.column_file import ColumnFile
from storage.commit_log import CommitLog
from storage.containment import require_inside
from storage.errors import CorruptStoreError
from storage.layout import StorePaths
from storage.log_header import LogHeader
from storage.schema import Schema

__all__ = ["MappedSegment", "SegmentInfo", "header_of"]


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """A segment in numbers."""

    id: int
    run: str
    lane: int
    rows: int
    steps: int
    episodes: int
    capacity: int
    sealed: bool


def header_of(log: CommitLog) -> LogHeader:
    """The log's header; CorruptStoreError when it has none."""
    if log.header is None:
        raise CorruptStoreError(f"{log.path} has no header; restore it from a copy")
    return log.header


class MappedSegment:
    """Read-only maps of a segment's columns, made when first asked for.

    A segment that may still grow is mapped once over its full capacity, so addresses stay valid;
    only committed rows are ever handed out. Addresses live as long as this object.
    """

    def __init__(self, paths: StorePaths, schema: Schema, log: CommitLog) -> None:
        header = header_of(log)
        self.id = header.segment
        self._root = paths.root
        self._folder = paths.segment(header.segment)
        self._schema = schema
        self._log = log
        self._capacity = header.capacity
        self._maps: dict[str, np.ndarray[Any, Any]] = {}
        self.rows = log.rows
        """Committed rows, as of the last refresh."""
        self.inode = log.inode
        """That of the log; another one means another segment, or one that was rewound."""

    def refresh(self) -> int:
        """Take in what was committed since; returns the committed rows."""
        self._log.refresh()
        if self._log.rows > self.rows:
            for name in self._maps:
                self._file(name).require(self._log.rows)
        self.rows = self._log.rows
        return self.rows

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """The committed rows of a column, shape (rows, *row shape), read-only, not copied."""
        return self._map(name)[: self.rows]

    def address(self, name: str) -> int:
        """Where row 0 of a column lies in memory, for kernels."""
        return int(self._map(name).ctypes.data)

    def row_bytes(self, name: str) -> int:
        """Bytes from one row of a column to the next."""
        return self._schema.column(name).row_bytes

    def _file(self, name: str) -> ColumnFile:
        return ColumnFile(self._folder / name, self._schema.column(name), self._capacity)

    def _map(self, name: str) -> np.ndarray[Any, Any]:
        mapped = self._maps.get(name)
        if mapped is None:
            file = self._file(name)
            require_inside(self._root, file.path)
            file.require(self._log.rows)
            rows = self._log.rows if self._log.sealed else self._capacity
            mapped = file.map(rows, writable=False)
            self._maps[name] = mapped
        return mapped
