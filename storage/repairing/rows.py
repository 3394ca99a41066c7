"""Raw bytes of rows, copied aside however damaged their file is."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from storage.checksum import extend_crc32c
from storage.column_file import ColumnFile
from storage.verification.regular_files import judging, open_for_reading

__all__ = ["RowBytes"]

_PIECE = 4096
_PIECES_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class RowBytes:
    """Rows [first, end) of a column file, as bytes; zeros where the file has none to give."""

    file: ColumnFile
    first: int
    end: int

    @property
    def size(self) -> int:
        """How many bytes."""
        return (self.end - self.first) * self.file.column.row_bytes

    def checksum(self, before: int) -> int:
        """CRC32C of what ``before`` is the CRC32C of, and then these bytes."""
        for piece in self.pieces():
            before = extend_crc32c(before, piece)
        return before

    def write_to(self, path: Path) -> None:
        """Copy the bytes into a new file; what cannot be read for good is zeros there."""
        with path.open("xb") as file:
            for piece in self.pieces():
                file.write(piece)

    def pieces(self) -> Iterator[bytes]:
        """The bytes, some MiB at a time."""
        size = self.file.column.row_bytes
        at, end = (self.file.offset + row * size for row in (self.first, self.end))
        try:
            descriptor = open_for_reading(self.file.path)
        except OSError:
            yield from _zeros(end - at)
            return
        try:
            step = _PIECE * _PIECES_AT_ONCE
            for low in range(at, end, step):
                with judging(self.file.path):
                    piece = _read(descriptor, low, min(step, end - low))
                yield piece
        finally:
            os.close(descriptor)


def _zeros(count: int) -> Iterator[bytes]:
    step = _PIECE * _PIECES_AT_ONCE
    for low in range(0, count, step):
        yield bytes(min(step, count - low))


def _read(descriptor: int, at: int, count: int) -> bytes:
    """The bytes, page by page where the device cannot give them all."""
    try:
        return os.pread(descriptor, count, at).ljust(count, b"\0")
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        if count <= _PIECE:
            return bytes(count)
        parts = (min(_PIECE, count - low) for low in range(0, count, _PIECE))
        lows = range(at, at + count, _PIECE)
        return b"".join(_read(descriptor, low, part) for low, part in zip(lows, parts, strict=True))
