"""The segments that the window has mapped, and the table of their addresses.

Slots are lent to segments while an episode of theirs is in the window; when the last one leaves,
the slot's addresses are cleared and every reference to its maps is dropped, which unmaps them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from storage.kernel import Integers32, address_of
from storage.layout import INNER_ROWS, align_up
from storage.replay.tables import COLUMNS, OVERLAY_DTYPES, ROW_LIMIT, ROW_MAP, SEGMENT_ID

__all__ = ["Mapped", "Maps", "OverlaySource", "SegmentSource", "SegmentTable"]


class Mapped(Protocol):
    """One segment's columns in memory; an address is good while the object lives."""

    def address(self, name: str) -> int:
        """The address of the first row of a column."""

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """The rows of a column."""


class SegmentSource(Protocol):
    """Where written-once columns come from: a store."""

    def segment(self, segment_id: int) -> Mapped:
        """Map one segment for reading."""


class OverlaySource(Protocol):
    """Where mutable columns come from: an overlay, or a private one in memory.

    Contract: `segment(id, rows)` gives columns whose rows [0, rows) can be stored to without a
    fault, and which keeps their addresses good while it is alive. It is asked again when a segment
    needs more rows; the object given then shows the same rows and replaces the earlier one.
    """

    def segment(self, segment_id: int, rows: int) -> Any:
        """Columns of one segment with at least `rows` rows allocated."""

    def publish(self, segment_id: int, rows: int) -> None:
        """Let foreign readers see the first `rows` rows."""

    def release(self, segment_id: int) -> None:
        """The segment left the window: keep no reference to its maps."""

    def close(self) -> None:
        """The view is done: others may write from now on. May be called twice."""


@dataclass(slots=True)
class Maps:
    """What keeps one slot's addresses good, and how much of it the window uses."""

    segment_id: int
    columns: Mapped
    overlay: Any
    row_map: Integers32
    rows: int
    """Rows that the window's episodes have reached."""
    room: int
    """Rows that may be touched: `rows` rounded up, so that few admissions must ask for more."""
    episodes: int = 0
    published: int = 0


class SegmentTable:
    """Slots of mapped segments.

    `table` is int64 [slots, 3 + columns]; `slot_of` int32 [largest segment id + 1].
    """

    def __init__(
        self, store: SegmentSource, overlay: OverlaySource, columns: tuple[str, ...]
    ) -> None:
        self._store = store
        self._overlay = overlay
        self._columns = columns
        self._maps: list[Maps | None] = []
        self.table = np.zeros((0, COLUMNS + len(columns)), np.int64)
        self.slot_of = np.full(0, -1, np.int32)

    def __len__(self) -> int:
        """Number of segments that are mapped now."""
        return sum(maps is not None for maps in self._maps)

    @property
    def held(self) -> list[Maps]:
        """The maps of every segment of the window."""
        return [maps for maps in self._maps if maps is not None]

    @property
    def nbytes(self) -> int:
        """Bytes of the table and of the row maps, without the mapped columns."""
        rows = sum(maps.row_map.nbytes for maps in self.held)
        return self.table.nbytes + self.slot_of.nbytes + rows

    def column(self, name: str) -> int:
        """The place of a column in a row of `table`; KeyError if it has none."""
        try:
            return COLUMNS + self._columns.index(name)
        except ValueError:
            raise KeyError(name) from None

    def hold(self, segment_id: int, rows: int, episodes: int = 1) -> int:
        """The slot of a segment of which `rows` rows will be read, for `episodes` more episodes."""
        slot = int(self.slot_of[segment_id]) if segment_id < self.slot_of.size else -1
        if slot < 0:
            slot = self._lend(segment_id, rows)
        maps = self._maps[slot]
        if maps is None:
            raise RuntimeError(f"segment slot {slot} is lent to segment {segment_id} and empty")
        if rows > maps.room:
            self._extend(slot, maps, _rounded(rows))
        if rows > maps.rows:
            maps.rows = rows
            self.table[slot, ROW_LIMIT] = rows
        maps.episodes += episodes
        return slot

    def release(self, slot: int) -> None:
        """One episode of a slot has left; after its last one the segment is unmapped."""
        maps = self._maps[slot]
        if maps is None:
            raise RuntimeError(f"segment slot {slot} was released more often than held")
        maps.episodes -= 1
        if maps.episodes == 0:
            self._publish(maps)
            self._overlay.release(maps.segment_id)
            self.slot_of[maps.segment_id] = -1
            self.table[slot] = 0
            self._maps[slot] = None

    def publish(self) -> None:
        """Let foreign readers see the overlay rows of every episode that the window has held."""
        for maps in self.held:
            self._publish(maps)

    def clear(self) -> None:
        """Unmap everything."""
        for maps in self.held:
            self._overlay.release(maps.segment_id)
        self._maps = []
        self.table[:] = 0
        self.slot_of[:] = -1

    def _publish(self, maps: Maps) -> None:
        if maps.rows > maps.published:
            with suppress(
                FileNotFoundError, KeyError
            ):  # another run's retention dropped the segment
                self._overlay.publish(maps.segment_id, maps.rows)
            maps.published = maps.rows

    def _lend(self, segment_id: int, rows: int) -> int:
        columns = self._store.segment(segment_id)
        room = _rounded(rows)
        overlay = self._overlay.segment(segment_id, room)
        row_map = np.zeros(_row_map_length(room), np.int32)
        slot = self._free_slot()
        maps = Maps(segment_id, columns, overlay, row_map, rows, room)
        self._maps[slot] = maps
        if segment_id >= self.slot_of.size:
            grown = np.full(max(64, 2 * (segment_id + 1)), -1, np.int32)
            grown[: self.slot_of.size] = self.slot_of
            self.slot_of = grown
        self._fill(slot, maps)
        self.slot_of[segment_id] = slot
        return slot

    def _free_slot(self) -> int:
        for slot, maps in enumerate(self._maps):
            if maps is None:
                return slot
        self._maps.append(None)
        if len(self._maps) > len(self.table):
            grown = np.zeros((max(8, 2 * len(self._maps)), self.table.shape[1]), np.int64)
            grown[: len(self.table)] = self.table
            self.table = grown
        return len(self._maps) - 1

    def _extend(self, slot: int, maps: Maps, room: int) -> None:
        overlay = self._overlay.segment(maps.segment_id, room)
        moved = overlay is not maps.overlay
        maps.overlay, maps.room = overlay, room
        if room > maps.row_map.size:
            grown = np.zeros(_row_map_length(room), np.int32)
            grown[: maps.row_map.size] = maps.row_map
            maps.row_map = grown
            moved = True
        if moved:
            self._fill(slot, maps)

    def _fill(self, slot: int, maps: Maps) -> None:
        row = self.table[slot]
        row[SEGMENT_ID], row[ROW_LIMIT] = maps.segment_id, maps.rows
        row[ROW_MAP] = address_of(maps.row_map)
        for place, name in enumerate(self._columns):
            source = maps.overlay if name in OVERLAY_DTYPES else maps.columns
            row[COLUMNS + place] = source.address(name)


def _rounded(rows: int) -> int:
    """Up to whole inner chunks; a segment's capacity is a multiple of them."""
    return align_up(rows, INNER_ROWS)


def _row_map_length(rows: int) -> int:
    """A power of two, so that growing segments copy their map a few times only."""
    return max(1024, 1 << (rows - 1).bit_length())
