"""What an overlay holds of one segment: maps of its columns, sound ones alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from storage.checksum import crc32c
from storage.column_file import ColumnFile
from storage.containment import kind_of, open_regular
from storage.errors import CorruptStoreError, DiskFullError
from storage.layout import INNER_ROWS, align_up
from storage.schema import Column
from storage.segment_files import next_allocation

__all__ = ["OVERLAY_COLUMNS", "OverlaySegment", "column_fault", "implausible_rows"]

OVERLAY_COLUMNS = (
    Column("priority", np.dtype("<f4")),
    Column("importance_ratio", np.dtype("<f4")),
    Column("far", np.dtype("u1")),
    Column("divergence", np.dtype("<f4")),
    Column("value", np.dtype("<f4")),
    Column("value_target", np.dtype("<f4")),
    Column("draw_count", np.dtype("<u4")),
    Column("last_drawn", np.dtype("<i8")),
)
_ROW_BYTES = sum(column.row_bytes for column in OVERLAY_COLUMNS)
_BY_NAME = {column.name: column for column in OVERLAY_COLUMNS}
_FINITE = ("priority", "importance_ratio", "divergence", "value", "value_target")
_NEVER_NEGATIVE = ("priority", "importance_ratio", "divergence")

Arrays = Mapping[str, np.ndarray[Any, Any]]


def column_fault(file: ColumnFile) -> str | None:
    """Why a column's file holds no rows of this overlay, in words; None when it does.

    Looks at the file's kind, length and index, not at its rows.
    """
    try:
        mode = os.lstat(file.path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if kind_of(mode) is not None or file.path.parent.is_symlink():
        return f"is {kind_of(mode) or 'behind a link'}, where a file belongs"
    chunks = file.capacity // INNER_ROWS
    with open(file.path, "rb", opener=open_regular) as opened:
        index = opened.read(16 * chunks + 4)
        if os.fstat(opened.fileno()).st_size < file.offset:
            return "was cut before its rows"
    first = np.frombuffer(index[:16], "<u8").tolist()
    expected = [file.offset, INNER_ROWS * file.column.row_bytes]
    if first != expected or int.from_bytes(index[-4:], "little") != crc32c(index[:-4]):
        return "has a damaged index, or that of another segment"
    return None


def implausible_rows(arrays: Arrays) -> np.ndarray[Any, Any]:
    """Rows that no view stores: int64 [k].

    Their floats are not finite, or a priority, ratio or divergence is below 0, or a far flag is
    neither 0 nor 1.
    """
    bad = arrays["far"] > 1
    for name in _FINITE:
        bad |= ~np.isfinite(arrays[name])
    for name in _NEVER_NEGATIVE:
        bad |= arrays[name] < 0.0
    return np.flatnonzero(bad)


class OverlaySegment:
    """Maps of the overlay's columns over one segment; addresses stay valid while this lives."""

    def __init__(self, segment: int, folder: Path, capacity: int, writable: bool) -> None:
        self.id = segment
        self.rows = 0
        """Rows that may be touched."""
        self.fault: str | None = None
        """Why none of its rows can be read, where none can."""
        self.unset: np.ndarray[Any, Any] = np.zeros(0, np.int64)
        """Rows that held what no view stores, and read as never set."""
        self._writable = writable
        self.capacity = capacity
        self._files = [ColumnFile(folder / c.name, c, capacity) for c in OVERLAY_COLUMNS]
        self._there = os.path.lexists(folder)
        self._stored = 0
        self._copied = False
        """Whether maps are copies of the rows alone, which cannot grow."""
        self._maps: dict[str, np.ndarray[Any, Any]] = {}
        if self._there:
            self.fault = self._found_fault()

    def _found_fault(self) -> str | None:
        folder = self._files[0].path.parent.parent
        if folder.is_symlink():
            return f"{folder} is a symbolic link"
        for file in self._files:
            fault = column_fault(file)
            if fault is not None:
                return f"{file.path} {fault}"
        return None

    def ensure(self, rows: int) -> None:
        """Make ``rows`` rows touchable, zero where new; raises DiskFullError, undone."""
        if rows <= self.rows:
            return
        self._stored = self._allocated()
        known = self.rows
        if self._writable and self._stored < rows:
            self._allocate(self._stored, rows)
        elif not self._writable and (self._stored < rows or self._copied):
            self._maps.clear()
            self._copied, known = False, 0
        self.rows = rows
        if self._there and self.fault is None:
            self._unset_implausible(known)

    def _allocated(self) -> int:
        if not self._there or self.fault is not None:
            return 0
        try:
            return min(file.allocated() for file in self._files)
        except (FileNotFoundError, NotADirectoryError) as error:
            if self._writable:
                raise CorruptStoreError(
                    f"{error.filename} is gone while a view writes it; close the view and open it "
                    "again: what is missing counts as never set"
                ) from None
            return 0

    def _allocate(self, allocated: int, rows: int) -> None:
        least = min(align_up(rows, INNER_ROWS), self.capacity)
        target = next_allocation(allocated, rows, _ROW_BYTES, self.capacity)
        for size in dict.fromkeys((target, least)):
            try:
                for file in self._files:
                    file.allocate(size)
                return
            except DiskFullError:
                for file in self._files:
                    file.shrink(allocated)
                if size == least:
                    raise

    def _unset_implausible(self, first: int) -> None:
        """Make rows from ``first`` on that no view can have stored ones that were never set."""
        arrays = {name: self.array(name)[first:] for name in _BY_NAME}
        self.unset = first + implausible_rows(arrays)
        if len(self.unset):
            self.reset(self.unset)

    def trim(self, rows: int) -> None:
        """Give back the space behind ``rows`` rows, of which nobody will touch more."""
        for file in self._files:
            file.shrink(max(rows, self.rows))

    def reset(self, rows: np.ndarray[Any, Any] | slice) -> None:
        """Make rows ones that were never set; on disk only where this may write."""
        for name in _BY_NAME:
            column = self.array(name)
            if not self._writable:
                column = self._maps[name] = column.copy()
            column[rows] = 0
            column.flags.writeable = self._writable
        self._copied = not self._writable

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """A column's touchable rows, shape (rows,)."""
        return self._map(name)[: self.rows]

    def address(self, name: str) -> int:
        """Where row 0 of a column lies in memory, for kernels."""
        return int(self._map(name).ctypes.data)

    def row_bytes(self, name: str) -> int:
        """Bytes from one row to the next."""
        return _BY_NAME[name].row_bytes

    def _map(self, name: str) -> np.ndarray[Any, Any]:
        if name not in _BY_NAME:
            raise KeyError(f"no overlay column {name!r}; there are {', '.join(_BY_NAME)}")
        if name not in self._maps:
            file = self._files[list(_BY_NAME).index(name)]
            if self._writable or self._stored >= self.rows > 0:
                self._maps[name] = file.map(self.capacity, writable=self._writable)
            else:
                self._maps[name] = self._padded(file)
        return self._maps[name]

    def _padded(self, file: ColumnFile) -> np.ndarray[Any, Any]:
        """A read-only copy: what is stored, then zeros."""
        rows = np.zeros(max(self.rows, 1), file.column.dtype)
        count = min(self._stored, self.rows)
        if count:
            rows[:count] = file.map(count, writable=False)
        rows.flags.writeable = False
        return rows
