"""One column of one segment: a file that is both a memory map of rows and a Zarr shard.

The file starts with the shard's index, written once and never changed: the i-th inner chunk of 256
rows lies at ``data_offset + i * chunk_bytes``. Rows follow, uncompressed. The file may be shorter
than its capacity; it grows by allocation and shrinks only above committed rows.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from storage.atomic import disk_full_as_error
from storage.checksum import crc32c
from storage.containment import open_regular, require_regular
from storage.errors import CorruptStoreError
from storage.layout import INNER_ROWS, align_up, data_offset
from storage.mapping import map_file
from storage.schema import Column

__all__ = ["ColumnFile", "shard_file_name"]


def shard_file_name(column: Column) -> str:
    """The name that Zarr gives to the one shard of the column, such as c.0.0."""
    return ".".join(["c"] + ["0"] * (1 + len(column.shape)))


@lru_cache(maxsize=256)
def _index(row_bytes: int, capacity: int) -> bytes:
    chunk_bytes = row_bytes * INNER_ROWS
    chunks = capacity // INNER_ROWS
    entries = np.empty((chunks, 2), dtype="<u8")
    entries[:, 0] = data_offset(capacity) + chunk_bytes * np.arange(chunks, dtype="<u8")
    entries[:, 1] = chunk_bytes
    index = entries.tobytes()
    return index + crc32c(index).to_bytes(4, "little")


class ColumnFile:
    """A column file at ``folder/<shard name>``, for rows ``[0, capacity)``."""

    __slots__ = ("capacity", "column", "offset", "path")

    def __init__(self, folder: Path, column: Column, capacity: int) -> None:
        self.path = folder / shard_file_name(column)
        self.column = column
        self.capacity = capacity
        self.offset = data_offset(capacity)

    def create(self) -> None:
        """Write the file with its index and no rows; its folder must exist."""
        index = _index(self.column.row_bytes, self.capacity)
        with disk_full_as_error(self.path, self.offset), self.path.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, self.offset)
            file.write(index)

    def allocated(self) -> int:
        """Rows that may be stored into now."""
        return max(0, self.path.stat().st_size - self.offset) // self.column.row_bytes

    def size(self, rows: int) -> int:
        """Bytes of the file when it holds ``rows`` rows."""
        return self.offset + rows * self.column.row_bytes

    def allocate(self, rows: int) -> None:
        """Give the file real disk blocks for ``rows`` rows; raises DiskFullError, undone."""
        before = self.path.stat().st_size
        after = self.size(rows)
        if after <= before:
            return
        descriptor = open_regular(self.path, os.O_RDWR)
        try:
            with disk_full_as_error(self.path, after - before):
                try:
                    os.posix_fallocate(descriptor, before, after - before)
                except OSError:
                    os.ftruncate(descriptor, before)
                    raise
        finally:
            os.close(descriptor)

    def fill_holes(self) -> None:
        """Give real disk blocks to what a sparse copy left out; raises DiskFullError.

        Storing into a hole on a full disk would end the process.
        """
        descriptor = open_regular(self.path, os.O_RDWR)
        try:
            size = os.fstat(descriptor).st_size
            with disk_full_as_error(self.path, size):
                os.posix_fallocate(descriptor, 0, max(size, 1))
        finally:
            os.close(descriptor)

    def shrink(self, rows: int) -> None:
        """Give back what lies above the inner chunk that holds row ``rows - 1``."""
        size = self.size(align_up(rows, INNER_ROWS))
        if self.path.stat().st_size > size:
            descriptor = open_regular(self.path, os.O_RDWR)
            try:
                os.ftruncate(descriptor, size)
            finally:
                os.close(descriptor)

    def map(self, rows: int, *, writable: bool) -> np.ndarray[Any, Any]:
        """The column's rows ``[0, rows)``, shape (rows, *row shape), over the file itself.

        Rows beyond the allocation must not be touched.
        """
        length = self.size(rows)
        memory = map_file(self.path, length, writable=writable)[self.offset :]
        return memory.view(self.column.dtype).reshape((rows, *self.column.shape))

    def require(self, rows: int) -> None:
        """Raise CorruptStoreError when the file is too short for ``rows`` committed rows."""
        status = require_regular(self.path)
        size = 0 if status is None else status.st_size
        if size < self.size(rows):
            raise CorruptStoreError(
                f"{self.path} holds {size:,} bytes, but the commit log counts {rows:,} rows "
                f"({self.size(rows):,} bytes): it is missing or was cut, unless another process "
                "took its segment away just now, which refresh() tells. `sharpwave verify` names "
                "what is damaged, and `sharpwave repair` keeps all that is good"
            )
