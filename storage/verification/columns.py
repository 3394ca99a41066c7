"""One column file against the log: its index, its length, its checksums and its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from storage.checksum import crc32c, extend_crc32c
from storage.column_file import ColumnFile
from storage.layout import INNER_ROWS, align_up
from storage.verification.blocks import Block, read_head, row_blocks
from storage.verification.fault_kinds import BAD_ROWS, SHORT_CHUNK
from storage.verification.regular_files import judging
from storage.verification.row_places import RowPlaces
from storage.verification.rules import Rule
from storage.verification.shard import shard_head

__all__ = ["ColumnCheck", "ColumnFault", "check_column"]


@dataclass(slots=True)
class ColumnFault:
    """A kind of fault of one column, over all rows that have it."""

    kind: str
    what: str
    episodes: set[int] = field(default_factory=set)
    """Indices among the segment's episodes."""
    first: int = -1
    end: int = -1
    """Rows [first, end) reach from the first bad row to the last."""
    remedy: str = ""
    """Where it is another than that of the kind."""

    def add(self, episodes: Any, first: int, end: int) -> None:
        """More of it."""
        self.episodes.update(int(episode) for episode in episodes)
        self.first = first if self.first < 0 else min(self.first, first)
        self.end = max(self.end, end)


@dataclass(slots=True)
class ColumnCheck:
    """What one column's examination gave."""

    faults: list[ColumnFault] = field(default_factory=list)
    bytes_read: int = 0


def check_column(
    file: ColumnFile, places: RowPlaces, expected: np.ndarray[Any, Any], rules: Sequence[Rule]
) -> ColumnCheck:
    """Examine a column file; ``expected`` are the CRC32C of each episode's rows, uint32.

    Values of episodes whose checksum fails are not judged: that they are wrong is known.
    """
    check = ColumnCheck()
    everyone = range(len(places))
    try:
        head = read_head(file.path, file.capacity)
        with judging(file.path):
            size = file.path.stat().st_size
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        check.faults.append(ColumnFault("missing-column", "there is no such file", set(everyone)))
        return check
    except OSError as error:
        what = f"it cannot be read: {error.strerror}"
        check.faults.append(ColumnFault("unreadable-column", what, set(everyone)))
        return check
    check.bytes_read += len(head)
    if head != shard_head(file.column, file.capacity)[: len(head)] or len(head) < file.offset:
        check.faults.append(
            ColumnFault("shard-index", "the shard's index, or the zeros behind it, is damaged")
        )
    _check_size(check, file, places, size)
    _Scan(check, file, places, expected, rules).run()
    return check


def _check_size(check: ColumnCheck, file: ColumnFile, places: RowPlaces, size: int) -> None:
    needed = file.size(align_up(places.rows, INNER_ROWS)) if places.rows else file.offset
    if size >= needed:
        return
    there = max(0, size - file.offset) // file.column.row_bytes
    lost = [e for e in range(len(places)) if places.closings[e] >= there]
    what = f"it was cut: {size:,} bytes are there, its rows take {needed:,}"
    fault = ColumnFault("short-column", what, set(lost))
    fault.remedy = "" if lost else SHORT_CHUNK
    if lost:
        fault.first, fault.end = there, places.rows
    check.faults.append(fault)


class _Scan:
    """One pass over the rows: checksums and rules together, so that every byte is read once."""

    def __init__(
        self,
        check: ColumnCheck,
        file: ColumnFile,
        places: RowPlaces,
        expected: np.ndarray[Any, Any],
        rules: Sequence[Rule],
    ) -> None:
        self._check = check
        self._file = file
        self._places = places
        self._expected = expected
        self._rules = rules
        self._sums = np.zeros(len(places), np.uint32)
        self._read = np.zeros(len(places), np.int64)
        """Rows of each episode that were read."""
        self._broken = [ColumnFault(rule.kind, rule.what) for rule in rules]
        self._unreadable = ColumnFault("unreadable-column", "rows cannot be read")
        self._unreadable.remedy = BAD_ROWS

    def run(self) -> None:
        """Add what is found to the check."""
        file, places = self._file, self._places
        try:
            for block in row_blocks(file.path, file.column, file.capacity, places.rows):
                self._take(block)
        except OSError as error:
            self._unreadable.what = f"rows cannot be read: {error.strerror}"
            self._unreadable.add(range(len(places)), 0, places.rows)
        self._judge()

    def _take(self, block: Block) -> None:
        places = self._places
        if block.error:
            lost = places.overlapping(block.first, block.end)
            if lost:
                self._unreadable.what = f"rows cannot be read: {block.error}"
                self._unreadable.add(lost, block.first, block.end)
            return
        self._check.bytes_read += block.rows.nbytes
        self._sum(block)
        for rule, fault in zip(self._rules, self._broken, strict=True):
            mask = rule.bad(block)
            if mask.any():
                rows = block.first + np.flatnonzero(mask)
                fault.add(np.unique(places.episodes_of(rows)), int(rows[0]), int(rows[-1]) + 1)

    def _sum(self, block: Block) -> None:
        data: Any = block.rows.reshape(-1).view(np.uint8)
        size = self._file.column.row_bytes
        places = self._places
        for episode in places.overlapping(block.first, block.end):
            low = max(int(places.starts[episode]), block.first)
            high = min(int(places.closings[episode]) + 1, block.end)
            part = data[(low - block.first) * size : (high - block.first) * size]
            before = int(self._sums[episode])
            self._sums[episode] = (
                extend_crc32c(before, part) if self._read[episode] else crc32c(part)
            )
            self._read[episode] += high - low

    def _judge(self) -> None:
        places = self._places
        whole = self._read == places.closings - places.starts + 1
        wrong = np.flatnonzero(whole & (self._sums != self._expected))
        faults = self._check.faults
        if len(wrong):
            fault = ColumnFault("checksum", "its bytes are not those that were committed")
            fault.add(wrong, int(places.starts[wrong[0]]), int(places.closings[wrong[-1]]) + 1)
            faults.append(fault)
        if self._unreadable.episodes:
            faults.append(self._unreadable)
        known = set(wrong.tolist()) | set(np.flatnonzero(~whole).tolist())
        for fault in self._broken:
            unknown = fault.episodes - known
            if fault.kind == "void-rows" and fault.end > 0:
                fault.episodes = set()
                faults.append(fault)
            elif unknown:
                fault.episodes = unknown
                faults.append(fault)
