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
from storage.verification.regular_files import judging, open_for_reading

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
    descriptor = open_for_reading(path)
    with judging(path), os.fdopen(descriptor, "rb") as file:
        return file.read(data_offset(capacity))


def row_blocks(path: Path, column: Column, capacity: int, rows: int) -> Iterator[Block]:
    """The first ``rows`` rows, or as many as the file has. Raises OSError if it cannot be opened,
    and CannotJudgeError wherever the file is not to blame.

    Where a block cannot be read, its rows come one by one, so that the fewest are lost.
    """
    step = max(1, min(rows, _BLOCK_BYTES // column.row_bytes))
    buffer = np.empty(step * column.row_bytes, np.uint8)
    descriptor = open_for_reading(path)
    try:
        reader = _Reader(path, descriptor, column, data_offset(capacity))
        size = os.fstat(descriptor).st_size - data_offset(capacity)
        rows = min(rows, max(0, size) // column.row_bytes)
        for first in range(0, rows, step):
            count = min(step, rows - first)
            try:
                yield reader.block(buffer, first, count)
            except OSError:
                for row in range(first, first + count):
                    yield reader.row(buffer, row)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    descriptor: int
    column: Column
    offset: int

    def block(self, buffer: np.ndarray[Any, Any], first: int, count: int) -> Block:
        size = self.column.row_bytes
        taken = buffer[: count * size]
        with judging(self.path):
            _fill(self.descriptor, memoryview(taken), self.offset + first * size)  # type: ignore[arg-type]
        return Block(first, taken.view(self.column.dtype).reshape((count, *self.column.shape)))

    def row(self, buffer: np.ndarray[Any, Any], row: int) -> Block:
        try:
            return self.block(buffer, row, 1)
        except OSError as error:
            zeros = np.zeros((1, *self.column.shape), self.column.dtype)
            return Block(row, zeros, error.strerror or "unreadable")


def _fill(descriptor: int, buffer: memoryview, offset: int) -> None:
    done = 0
    while done < len(buffer):
        count = os.preadv(descriptor, [buffer[done:]], offset + done)
        if count == 0:
            raise OSError("the file was cut meanwhile")
        done += count
