"""Rows of a column file, block by block, by plain reads.

A map would do it without a copy, but a sector that the device cannot read ends the process there
(SIGBUS), and here it must become a finding.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.layout import data_offset
from storage.schema import Column
from storage.verification.regular_files import open_for_reading

__all__ = ["Block", "read_head", "row_blocks"]

_BLOCK_BYTES = 4 * 2**20
"""What is read at once: large enough to be fast, and one block a thread is all that is held."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows; ``error`` stands for those that the device could not read."""

    first: int
    """Row of the segment that row 0 here is."""
    rows: np.ndarray[Any, Any]
    """(n, *row shape); overwritten by the next block."""
    error: str = ""

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self.first + len(self.rows)


def read_head(path: Path, capacity: int) -> bytes:
    """Everything before the rows; shorter where the file is. Raises OSError."""
    with os.fdopen(open_for_reading(path), "rb") as file:
        return file.read(data_offset(capacity))


def row_blocks(path: Path, column: Column, capacity: int, rows: int) -> Iterator[Block]:
    """The first ``rows`` rows, or as many as the file has. Raises OSError if it cannot be opened.

    Where a block cannot be read, its rows come one by one, so that the fewest are lost.
    """
    step = max(1, min(rows, _BLOCK_BYTES // column.row_bytes))
    buffer = np.empty(step * column.row_bytes, np.uint8)
    descriptor = open_for_reading(path)
    try:
        size = os.fstat(descriptor).st_size - data_offset(capacity)
        rows = min(rows, max(0, size) // column.row_bytes)
        for first in range(0, rows, step):
            count = min(step, rows - first)
            try:
                yield _block(descriptor, buffer, column, capacity, first, count)
            except OSError:
                for row in range(first, first + count):
                    yield _row(descriptor, buffer, column, capacity, row)
    finally:
        os.close(descriptor)


def _block(
    descriptor: int,
    buffer: np.ndarray[Any, Any],
    column: Column,
    capacity: int,
    first: int,
    count: int,
) -> Block:
    taken = buffer[: count * column.row_bytes]
    _fill(descriptor, memoryview(taken), data_offset(capacity) + first * column.row_bytes)  # type: ignore[arg-type]
    return Block(first, taken.view(column.dtype).reshape((count, *column.shape)))


def _row(
    descriptor: int, buffer: np.ndarray[Any, Any], column: Column, capacity: int, row: int
) -> Block:
    try:
        return _block(descriptor, buffer, column, capacity, row, 1)
    except OSError as error:
        return Block(
            row, np.zeros((1, *column.shape), column.dtype), error.strerror or "unreadable"
        )


def _fill(descriptor: int, buffer: memoryview, offset: int) -> None:
    done = 0
    while done < len(buffer):
        count = os.preadv(descriptor, [buffer[done:]], offset + done)
        if count == 0:
            raise OSError("the file was cut meanwhile")
        done += count
