"""What a column file holds before its rows: a pure function of row size and capacity."""

from __future__ import annotations

from storage.column_file import _index
from storage.layout import data_offset
from storage.schema import Column

__all__ = ["shard_head"]


def shard_head(column: Column, capacity: int) -> bytes:
    """The shard's index, and zeros up to the first row."""
    return _index(column.row_bytes, capacity).ljust(data_offset(capacity), b"\0")
