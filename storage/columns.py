"""Columns of a whole store: the committed rows of all segments, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from storage.schema import Column, Schema
from storage.segment import MappedSegment, SegmentInfo

__all__ = ["ColumnReader", "Columns"]

Mapped = Callable[[int], MappedSegment]
"""Maps of a segment by its id; asked for at every read, so that few need be held."""


class ColumnReader:
    """One column over all segments. Slices copy the asked rows, closing rows included."""

    def __init__(self, column: Column, segments: Sequence[SegmentInfo], mapped: Mapped) -> None:
        self._column = column
        self._segments = segments
        self._mapped = mapped
        self._ends = np.cumsum([segment.rows for segment in segments], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, *row shape)."""
        return (len(self), *self._column.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The column's dtype."""
        return self._column.dtype

    def __getitem__(self, key: int | slice) -> np.ndarray[Any, Any]:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step < 0:
                raise IndexError(f"a column is read forwards; got step {step}")
            rows = self._read(start, max(start, stop))
            return rows[::step] if step != 1 else rows
        row = key + len(self) if key < 0 else key
        if not 0 <= row < len(self):
            raise IndexError(f"row {key} of column {self._column.name!r}, which has {len(self)}")
        value: np.ndarray[Any, Any] = self._read(row, row + 1)[0]
        return value

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        out = np.empty((stop - start, *self._column.shape), self._column.dtype)
        first = int(np.searchsorted(self._ends, start, side="right"))
        for segment, end in zip(self._segments[first:], self._ends[first:].tolist(), strict=True):
            begin = end - segment.rows
            low, high = max(start, begin), min(stop, end)
            if low >= high:
                break
            rows = self._mapped(segment.id).array(self._column.name)[low - begin : high - begin]
            out[low - start : high - start] = rows
        return out


class Columns(Mapping[str, ColumnReader]):
    """Columns by name, in the schema's order."""

    def __init__(
        self, schema: Schema, segments: Callable[[], Sequence[SegmentInfo]], mapped: Mapped
    ) -> None:
        self._schema = schema
        self._segments = segments
        self._mapped = mapped

    def __getitem__(self, name: str) -> ColumnReader:
        return ColumnReader(self._schema.column(name), self._segments(), self._mapped)

    def __iter__(self) -> Iterator[str]:
        return (column.name for column in self._schema.columns)

    def __len__(self) -> int:
        return len(self._schema.columns)
