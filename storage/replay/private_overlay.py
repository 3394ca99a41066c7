"""An overlay in memory, for copies of a view that must not disturb the one on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from storage.kernel import address_of
from storage.replay.tables import OVERLAY_DTYPES

__all__ = ["PrivateOverlay", "PrivateSegment"]

Stored = Callable[[int, str], Any]


class PrivateSegment:
    """The overlay columns of one segment, in arrays of this process."""

    def __init__(self, columns: dict[str, np.ndarray[Any, Any]]) -> None:
        self._columns = columns

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """One column, [rows]."""
        return self._columns[name]

    def address(self, name: str) -> int:
        """Where row 0 of a column lies."""
        return address_of(self._columns[name])


class PrivateOverlay:
    """Satisfies `segment_table.OverlaySource`; starts as a copy of what `stored` gives.

    `stored(segment id, column)` is the published part of that column on disk, or None.
    """

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._segments: dict[int, PrivateSegment] = {}

    def segment(self, segment_id: int, rows: int) -> PrivateSegment:
        """Columns with at least `rows` rows; what was there before is kept."""
        before = self._segments.get(segment_id)
        if before is None or before.array(next(iter(OVERLAY_DTYPES))).size < rows:
            columns = {}
            for name, dtype in OVERLAY_DTYPES.items():
                known = self._stored(segment_id, name) if before is None else before.array(name)
                columns[name] = _grown(known, rows, dtype)
            self._segments[segment_id] = PrivateSegment(columns)
        return self._segments[segment_id]

    def publish(self, segment_id: int, rows: int) -> None:
        """Nobody else sees a private overlay."""


def _grown(known: Any, rows: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    array = np.zeros(max(256, 1 << (rows - 1).bit_length()), dtype)
    if known is not None:
        count = min(len(known), array.size)
        array[:count] = known[:count]
    return array
