"""Which row of a segment is what, as its log says."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from storage.verification.raw_log import RawLog

__all__ = ["Place", "RowPlaces"]


class Place(IntEnum):
    """What a row is to the log."""

    NOBODYS = 0
    """Of an episode whose record is lost."""
    STEP = 1
    LAST_STEP = 2
    CLOSING = 3
    VOID = 4
    """Of an episode that a repair took out."""


class RowPlaces:
    """The episodes of a segment and the place of each of its rows."""

    def __init__(self, log: RawLog) -> None:
        self.records = log.episodes
        """Records as in the file (record_dtype), of the episodes that count."""
        self.starts = self.records["start"].astype(np.int64)
        self.closings = self.starts + self.records["length"].astype(np.int64)
        """The closing row of each episode."""
        self.rows = log.rows
        self.place = np.zeros(self.rows, np.uint8)
        """uint8 (rows,), a Place each."""
        opened = np.zeros(self.rows + 1, np.int8)
        opened[self.starts] += 1
        opened[self.closings + 1] -= 1
        self.place[:] = np.cumsum(opened[:-1], dtype=np.int8)
        self.place[self.closings - 1] = Place.LAST_STEP
        self.place[self.closings] = Place.CLOSING
        for void in log.voids:
            first = int(void["start"])
            self.place[first : first + int(void["length"]) + 1] = Place.VOID

    def __len__(self) -> int:
        """Number of episodes."""
        return len(self.records)

    def counting(self, first: int, end: int) -> np.ndarray[Any, Any]:
        """Which of the rows [first, end) are an episode's, bool."""
        place = self.place[first:end]
        return np.asarray((place != Place.NOBODYS) & (place != Place.VOID))

    def episodes_of(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The index of the episode of each row; the rows must be some episode's."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def overlapping(self, first: int, end: int) -> range:
        """Indices of the episodes that have a row in [first, end)."""
        low = int(np.searchsorted(self.closings, first))
        return range(low, int(np.searchsorted(self.starts, end)))

    def ordinals(self, episodes: Any) -> list[int]:
        """Their ordinals."""
        return [int(ordinal) for ordinal in self.records["ordinal"][np.asarray(episodes, int)]]
