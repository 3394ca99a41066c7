"""A commit log read without trust: every record on its own, good or not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from storage.errors import CorruptStoreError, FormatVersionError
from storage.log_header import LogHeader
from storage.log_record import RecordKind, good_records, impossible, record_dtype
from storage.verification.regular_files import judging, open_for_reading

__all__ = ["RawLog", "parse_raw_log", "read_head", "read_log_bytes", "read_raw_log"]

_BLOCK = 2**24
_LARGEST_HEADER = 2**20
_LARGEST_UNKNOWN = 2**26
"""Bytes that are read of a log whose header cannot be: enough to put a flipped bit of it right."""
_LEAST_ROWS = 2
"""Of an episode: a step and the closing row."""


@dataclass(frozen=True)
class RawLog:
    """A log whose header could be read.

    Records sit in slots of one size. ``usable`` says of each slot whether its record is whole and
    in its place; what cannot be used before the last usable slot is a hole, what comes after it is
    the tail.
    """

    header: LogHeader
    header_bytes: bytes
    slots: np.ndarray[Any, Any]
    """record_dtype, as they are in the file."""
    whole: np.ndarray[Any, Any]
    """bool, one a slot: whether its checksum is right."""
    usable: np.ndarray[Any, Any]
    rest: bytes
    """What comes after the last slot: part of a record."""
    excess: int = 0
    """Bytes of the file behind all that a log of its capacity can hold, which were not read."""

    @property
    def _used(self) -> int:
        """Slots up to the last usable one."""
        found = np.flatnonzero(self.usable)
        return int(found[-1]) + 1 if len(found) else 0

    @property
    def holes(self) -> list[int]:
        """Slots of lost records that have usable ones behind them."""
        return [int(slot) for slot in np.flatnonzero(~self.usable[: self._used])]

    @property
    def tail(self) -> bytes:
        """The bytes behind the last usable record."""
        return self.slots[self._used :].tobytes() + self.rest

    @property
    def contradicting(self) -> list[int]:
        """Slots of the tail whose checksum is right: a writer that died leaves none."""
        return [int(slot) for slot in self._used + np.flatnonzero(self.whole[self._used :])]

    def _of(self, kind: RecordKind) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.slots[self.usable & (self.slots["kind"] == kind)]
        return found

    @property
    def episodes(self) -> np.ndarray[Any, Any]:
        """The usable records of episodes."""
        return self._of(RecordKind.EPISODE)

    @property
    def voids(self) -> np.ndarray[Any, Any]:
        """The usable records of episodes that a repair took out."""
        return self._of(RecordKind.VOID)

    @property
    def sealed(self) -> bool:
        """Whether the last usable record says that no more episodes come."""
        return bool(len(self._of(RecordKind.SEAL)))

    @property
    def rows(self) -> int:
        """Rows that the usable records speak of."""
        spoken = self.slots[self.usable & (self.slots["kind"] != RecordKind.SEAL)]
        return int(spoken["start"][-1] + spoken["length"][-1] + 1) if len(spoken) else 0


def read_raw_log(path: Path) -> RawLog:
    """The log at ``path``; see ``parse_raw_log``. Raises OSError, too."""
    return parse_raw_log(*read_log_bytes(path), path)


def read_log_bytes(path: Path) -> tuple[bytes, int]:
    """All of a file that a log can hold, and how many bytes it has behind that.

    However long the file is, no more is read: a header, as many records as its rows allow, and
    nothing behind MiBs of zeros. Raises OSError and CannotJudgeError.
    """
    descriptor = open_for_reading(path)
    with judging(path), os.fdopen(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        parts = [_read_up_to(file, min(size, _LARGEST_HEADER))]
        limit = _limit(parts[0], path)
        taken = len(parts[0])
        while taken < min(size, limit):
            part = _read_up_to(file, min(size, limit, taken + _BLOCK) - taken)
            if not part or (len(part) == _BLOCK and part.count(0) == _BLOCK):
                break
            parts.append(part)
            taken += len(part)
        return b"".join(parts)[:limit], max(0, size - min(taken, limit))


def read_head(path: Path) -> bytes:
    """The start of a log, with all of its header. Raises OSError and CannotJudgeError."""
    descriptor = open_for_reading(path)
    with judging(path), os.fdopen(descriptor, "rb", buffering=0) as file:
        return _read_up_to(file, _LARGEST_HEADER)


def _read_up_to(file: FileIO, count: int) -> bytes:
    """``count`` bytes, or all that there are."""
    parts = []
    while count and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _limit(head: bytes, path: Path) -> int:
    """Bytes that a log with this start may have."""
    try:
        header, size = LogHeader.decode(head, path)
    except (CorruptStoreError, FormatVersionError):
        return _LARGEST_UNKNOWN
    episodes = header.capacity // _LEAST_ROWS
    return size + (episodes + 2) * record_dtype(len(header.columns)).itemsize


def parse_raw_log(data: bytes, excess: int, path: Path) -> RawLog:
    """A log from its content, and the length of what was not read of it.

    Raises CorruptStoreError or FormatVersionError when its header cannot be read.
    """
    header, size = LogHeader.decode(data, path)
    slots, whole = good_records(data[size:], len(header.columns))
    usable = _chained(slots, whole & ~impossible(slots, header.capacity))
    rest = data[size + slots.nbytes :]
    return RawLog(header, data[:size], slots, whole, usable, rest, excess)


def _chained(slots: np.ndarray[Any, Any], whole: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which whole records fit those before them: number, ordinal, first row; none after a seal.

    A lost record leaves room for one episode of at least one step.
    """
    if whole.all() and _consecutive(slots):
        return whole
    usable = np.zeros(len(slots), bool)
    rows = ordinal = lost = 0
    sealed = False
    for place, slot in enumerate(slots):
        if not whole[place] or sealed or slot["sequence"] != place:
            lost += 1
            continue
        start, first = int(slot["start"]), int(slot["ordinal"])
        exact = not lost and start == rows and first == ordinal
        spaced = lost and start >= rows + 2 * lost and first == ordinal + lost
        if not (exact or spaced):
            lost += 1
            continue
        usable[place], lost = True, 0
        sealed = slot["kind"] == RecordKind.SEAL
        rows, ordinal = start + int(slot["length"]) + 1, first + 1
    return usable


def _consecutive(slots: np.ndarray[Any, Any]) -> bool:
    """Whether every record follows its predecessor, as almost always."""
    seal = slots["kind"] == RecordKind.SEAL
    ends = slots["start"] + slots["length"] + 1
    follows = slots["start"][1:] == ends[:-1]
    first = not len(slots) or (slots["start"][0] == 0 and slots["ordinal"][0] == 0)
    numbered = (slots["sequence"] == np.arange(len(slots))).all()
    counted = (slots["ordinal"] == np.arange(len(slots))).all()
    return bool(first and follows.all() and numbered and counted and not seal[:-1].any())
