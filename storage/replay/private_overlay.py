"""An overlay in memory, for copies of a view that must not disturb the one on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from storage.kernel import address_of
from storage.replay.tables import OVERLAY_DTYPES

if TYPE_CHECKING:
    from pathlib import Path

    from storage.replay.segment_table import OverlaySource
    from storage.store import Store

__all__ = ["PrivateOverlay", "PrivateSegment", "open_overlay"]


def open_overlay(store: Store, name: str, root: Path | None, private: bool) -> OverlaySource:
    """A store's overlay, below ``root`` where it is not in the store; or a private copy of it."""
    if not private:
        return store.overlay(name, root=root, mode="r+")
    return PrivateOverlay(store.overlay(name, root=root, mode="r"))


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
    """Satisfies `segment_table.OverlaySource`; a segment starts as a copy of `stored`'s.

    `stored` is an overlay opened for reading.
    """

    def __init__(self, stored: OverlaySource) -> None:
        self._stored = stored
        self._segments: dict[int, PrivateSegment] = {}

    def segment(self, segment_id: int, rows: int) -> PrivateSegment:
        """Columns with at least `rows` rows; what was there before is kept."""
        before = self._segments.get(segment_id)
        if before is None or before.array(next(iter(OVERLAY_DTYPES))).size < rows:
            columns: dict[str, np.ndarray[Any, Any]] = {}
            for name, dtype in OVERLAY_DTYPES.items():
                known = (before or self._stored.segment(segment_id, rows)).array(name)
                columns[name] = _grown(known, rows, dtype)
            self._segments[segment_id] = PrivateSegment(columns)
            self._stored.release(segment_id)
        return self._segments[segment_id]

    def publish(self, segment_id: int, rows: int) -> None:
        """Nobody else sees a private overlay."""

    def release(self, segment_id: int) -> None:
        """Forget a segment, with what was fed back to it."""
        self._segments.pop(segment_id, None)

    def close(self) -> None:
        """Forget all that was fed back."""
        self._segments.clear()


def _grown(known: Any, rows: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    array = np.zeros(max(256, 1 << (rows - 1).bit_length()), dtype)
    count = min(len(known), array.size)
    array[:count] = known[:count]
    return array
